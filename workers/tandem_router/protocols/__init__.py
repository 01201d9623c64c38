"""What each KV connector wants said on its two legs. One module a connector; none does I/O."""
