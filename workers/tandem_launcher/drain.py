"""Holds a leaving pod until its KV cache was pulled: the engine container's preStop hook.

It asks the sidecar, which knows the engine, and waits for the answer, never longer than its timeout. Whatever happens it
ends well, since a failing hook would only hide the reason; the reason goes to pid 1's stdout, the pod's log.
"""

import http.client
import json
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from urllib.parse import urlsplit

__all__ = ["POD_LOG", "drain", "log"]

POD_LOG = Path("/proc/1/fd/1")
_MARGIN = 0.9
"""Share of the time that the sidecar may use, so that its answer arrives before this process gives up."""
_LONGEST_ANSWER = 4096


def drain(url: str, timeout: float, *, token_file: Path | None = None) -> str:
    """Return one line that says how the drain ended, after at most `timeout` seconds."""
    began = time.monotonic()
    previous = signal.signal(signal.SIGALRM, _expire)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        outcome = _outcome(_ask(url, timeout, _headers(token_file)))
    except TimeoutError:
        outcome = f"the sidecar did not answer within {timeout:g} s; going on"
    except (OSError, http.client.HTTPException, ValueError) as error:
        outcome = f"the sidecar at {url} cannot be asked ({error}); going on without waiting for KV that was not pulled"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    return f"Drain after {time.monotonic() - began:.1f} s: {outcome}"


def log(line: str, path: Path = POD_LOG) -> None:
    """Write a line to the pod's log, and to stdout where that cannot be opened; a log that is a file only grows."""
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")
    except OSError:
        sys.stdout.write(f"{line}\n")


def _expire(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError


def _headers(token_file: Path | None) -> dict[str, str]:
    return {} if token_file is None else {"Authorization": f"Bearer {token_file.read_text(encoding='ascii').strip()}"}


def _ask(url: str, timeout: float, headers: dict[str, str]) -> Any:
    # http.client, not urllib: a proxy in the environment must not come between two containers of one pod.
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=timeout)
    try:
        connection.request("POST", f"{parts.path.rstrip('/')}/drain?timeout={timeout * _MARGIN:.3f}", headers=headers)
        response = connection.getresponse()
        body = response.read(_LONGEST_ANSWER)
        if response.status != http.client.OK:
            raise ValueError(f"status {response.status}")
        return json.loads(body)
    finally:
        connection.close()


def _outcome(answer: Any) -> str:
    if not isinstance(answer, dict) or "drained" not in answer:
        return f"the sidecar gave an answer that is not understood ({str(answer)[:200]}); going on"
    return f"{'drained' if answer['drained'] else 'not drained'}: {answer.get('reason', 'no reason given')}"
