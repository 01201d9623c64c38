"""What the runtime knows: pod sandboxes and containers, in memory only. A restarted runtime starts from nothing."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem_local.runtime.logs import ContainerLog
from tandem_local.runtime.protocol import messages

__all__ = ["Container", "Sandbox", "State", "matches"]


@dataclass(slots=True, eq=False)
class Sandbox:
    """One pod: its configuration as the kubelet gave it and its network, both empty for hostNetwork pods."""

    id: str
    config: Any
    created: int
    address: str = ""
    network: str = ""
    state: int = messages.SANDBOX_READY


@dataclass(slots=True, eq=False)
class Container:
    """One container; `done` is set once when it has ended or could not start."""

    id: str
    sandbox: Sandbox
    config: Any
    folder: Path
    created: int
    log: ContainerLog
    state: int = messages.CONTAINER_CREATED
    started: int = 0
    finished: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    process: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def running(self) -> bool:
        """Whether its first process runs."""
        return bool(self.state == messages.CONTAINER_RUNNING)


@dataclass(slots=True)
class State:
    """All sandboxes and containers of the node, and who wants to hear of ended containers."""

    folder: Path
    sandboxes: dict[str, Sandbox] = field(default_factory=dict)
    containers: dict[str, Container] = field(default_factory=dict)
    listeners: set["asyncio.Queue[Container]"] = field(default_factory=set)

    def of(self, sandbox: Sandbox) -> list[Container]:
        """Containers of one sandbox."""
        return [each for each in self.containers.values() if each.sandbox is sandbox]


def matches(query: Any, identifier: str, labels: Any) -> bool:
    """Whether a CRI list filter's id prefix and labels select an object."""
    wanted = query.label_selector.items()
    return identifier.startswith(query.id) and all(labels.get(key) == value for key, value in wanted)
