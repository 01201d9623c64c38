"""A fleet of simulated workers in simulated time: what a way to choose workers does to a recorded load, in seconds.

Which worker serves a request is decided by an injected `Routing`, so that the code that decides in production decides
here. Nothing in this package reads a clock, waits, or draws a number from anything but the generator it was given.
"""
