"""Asks torch for the GPUs, in a child process that is gone before the engine starts.

Torch opens a CUDA context on each device, starts threads and changes the environment. Were it loaded in the launcher's
own process, the engine that this process becomes would begin with another's open devices and settings. The child is
forked from a small, single-threaded process.
"""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection

from tandem_launcher.capacity import Device
from tandem_launcher.failures import Failure, Reason

__all__ = ["ask", "devices"]


def devices() -> tuple[Device, ...]:
    """Return the GPUs that torch sees."""
    import torch  # noqa: PLC0415 -- only in the child: the launcher's own process must stay small

    found = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return tuple(Device(name=each.name, capability=(each.major, each.minor), memory=each.total_memory) for each in found)


def ask(question: Callable[[], tuple[Device, ...]] = devices) -> tuple[Device, ...]:
    """Return what the question finds in a child process.

    Raises:
        Failure: torch is not installed or broken, or the child died.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, question), daemon=True)
    child.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        child.join()
        raise Failure(Reason.CHECK_DIED, _death(child.exitcode)) from None
    finally:
        child.kill()
        child.join()
    if isinstance(answer, str):
        raise Failure(Reason.MISSING_PACKAGE, answer)
    return tuple(answer)


def _answer(sender: Connection, question: Callable[[], tuple[Device, ...]]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        sender.send(question())
    except ImportError as error:
        sender.send(f"torch cannot be imported ({error}): set engine.image to one whose torch works on this node")


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        ended = signal.Signals(-code).name
        return f"asking torch for the GPUs was ended by {ended}: raise resources.memory if the kernel killed it"
    return f"asking torch for the GPUs ended with exit code {code}: the lines above in this log say why"
