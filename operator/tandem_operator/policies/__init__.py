"""Decisions of the operator as pure functions: what is accepted, advised, rolled out, scaled and reported.

No I/O, no clock, no randomness: callers pass what they observed and the time, and get the decision with its reason.
"""
