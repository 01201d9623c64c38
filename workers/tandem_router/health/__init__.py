"""Which workers and pairs fail, and what that leaves out of the choice."""
