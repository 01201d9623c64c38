"""Who may come in, who waits, who is next and where to: credits, lanes, the fair queue and the prediction at arrival."""
