"""The one error of the command line: what happened, where, what to do. `main` prints it as a single line."""

__all__ = ["CommandError"]


class CommandError(Exception):
    """A command could not do what it was asked to; the message is meant for the user's eyes."""
