"""One request: its life, its legs, its failures, and the stream that its client reads."""
