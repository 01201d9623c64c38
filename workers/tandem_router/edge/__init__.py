"""Who may ask, how much and over what: keys, rates and certificates. Nothing here knows what a request asks for."""
