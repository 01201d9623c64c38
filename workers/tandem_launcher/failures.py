"""What can be wrong with a worker before its engine starts, said in one line.

Kubernetes shows the line as the container's termination message (`kubectl describe pod`, and the operator's condition).
It begins with the reason as one CamelCase word, so that a program can tell failures apart too.

| exit code | reasons |
|---|---|
| 64 | `BadArgument`, `UnknownArgument`: the engine's own parser refused the argument line |
| 65 | `BadModel`, `IndivisibleHeads`: the model's files contradict themselves or the parallelism |
| 66 | `ModelMissing` |
| 69 | `TooFewDevices`, `UnsupportedDtype`, `MissingPackage`: the image or the node lacks something |
| 70 | `CheckDied`: the process that asked torch was ended |
| 71 | `TooLittleMemory` |
| 75 | `PortTaken` |
| 78 | `BadRole`, `BadTransfer`, `NoSideChannel`, `NoToken`: role, KV transfer and environment disagree |
"""

import os
import sys
from collections.abc import Mapping
from enum import Enum

__all__ = ["TERMINATION_LOG", "Failure", "Reason", "report"]

TERMINATION_LOG = "/dev/termination-log"
_LONGEST_LINE = 2048
"""Characters; Kubernetes keeps 4096 bytes of a termination message."""


class Reason(Enum):
    """Kind of failure: the word that begins the line, and the exit code."""

    BAD_ARGUMENT = ("BadArgument", 64)
    UNKNOWN_ARGUMENT = ("UnknownArgument", 64)
    BAD_MODEL = ("BadModel", 65)
    INDIVISIBLE_HEADS = ("IndivisibleHeads", 65)
    MODEL_MISSING = ("ModelMissing", 66)
    TOO_FEW_DEVICES = ("TooFewDevices", 69)
    UNSUPPORTED_DTYPE = ("UnsupportedDtype", 69)
    MISSING_PACKAGE = ("MissingPackage", 69)
    CHECK_DIED = ("CheckDied", 70)
    TOO_LITTLE_MEMORY = ("TooLittleMemory", 71)
    PORT_TAKEN = ("PortTaken", 75)
    BAD_ROLE = ("BadRole", 78)
    NO_TOKEN = ("NoToken", 78)
    BAD_TRANSFER = ("BadTransfer", 78)
    NO_SIDE_CHANNEL = ("NoSideChannel", 78)

    @property
    def word(self) -> str:
        """First word of the line."""
        return self.value[0]

    @property
    def exit_code(self) -> int:
        """Exit code of the container, 64 to 78."""
        return self.value[1]


class Failure(Exception):  # noqa: N818 -- it is an answer for the user, not a defect of the program
    """The worker cannot start; `detail` says what happened and what to change."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    @property
    def line(self) -> str:
        """The whole message as one line."""
        return " ".join(f"{self.reason.word}: {self.detail}".split())[:_LONGEST_LINE]


def report(failure: Failure, environment: Mapping[str, str] = os.environ) -> int:
    """Write the failure's line to the termination message and to stderr; return the exit code.

    `TERMINATION_LOG` in the environment names another file than the kubelet's default.
    """
    sys.stderr.write(f"{failure.line}\n")
    path = environment.get("TERMINATION_LOG", TERMINATION_LOG)
    try:
        with open(path, "w", encoding="utf-8") as log:  # noqa: PTH123 -- a device-like file, written in place
            log.write(failure.line + "\n")
    except OSError as error:
        sys.stderr.write(f"The termination message could not be written to {path}: {error.strerror}\n")
    return failure.reason.exit_code
