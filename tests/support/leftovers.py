"""What a local cluster could leave on the machine: taken before and after, and compared."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Traces", "host_traces", "mentions", "processes_in"]

_WATCHED = ("/run", "/var/lib", "/var/log", "/etc")


@dataclass(frozen=True, slots=True)
class Traces:
    """Mounts, network links, nft tables and the names in the system's folders, as the host sees them."""

    mounts: frozenset[str]
    links: frozenset[str]
    tables: str
    names: frozenset[str]


def host_traces() -> Traces:
    """Look at the host."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    links = [path.name for path in Path("/sys/class/net").iterdir()]
    tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout
    names = [str(path) for folder in _WATCHED for path in Path(folder).iterdir()]
    return Traces(frozenset(mounts), frozenset(links), tables, frozenset(names))


def mentions(folder: Path) -> list[str]:
    """Argument lines of processes, and unix sockets, that name a folder."""
    found = [line for line in Path("/proc/net/unix").read_text().splitlines() if str(folder) in line]
    for process in _processes():
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if str(folder) in line:
            found.append(line)
    return found


def processes_in(namespace: str, kind: str) -> list[int]:
    """Processes in a namespace, which is written as the kernel does: `pid:[4026531836]`."""
    found = []
    for process in _processes():
        try:
            if str((process / "ns" / kind).readlink()) == namespace:
                found.append(int(process.name))
        except OSError:  # it has just ended
            continue
    return found


def _processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]
