"""What requests teach about workers: how fast they are, what they hold, how many tokens a byte makes. Pure."""
