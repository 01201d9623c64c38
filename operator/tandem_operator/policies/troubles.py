"""What is wrong with pods, in words that say what to do.

Texts hold nothing that changes while the trouble stays the same (restart counts, back-off times), so that a status is
written once for it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tandem_operator.policies.observation import ContainerState, PodState
from tandem_operator.policies.reasons import Reason

__all__ = ["Trouble", "troubles"]

_NORMAL = {"", "ContainerCreating", "PodInitializing"}
_SAME = {"ErrImagePull": "ImagePullBackOff"}
"""Reasons between which kubelet alternates."""
_VAGUE = {"CrashLoopBackOff", "ImagePullBackOff"}
"""Their own message counts seconds of back-off."""
_HINTS = {
    "OOMKilled": "raise `resources.memory`, or lower `maxSequences` or `maxModelLen`",
    "ImagePullBackOff": "check the image's name and the pull secret",
    "InvalidImageName": "check the image's name",
    "CreateContainerConfigError": "create the Secret or ConfigMap that it names",
    "FailedMount": "check the path in `model.uri`, and create the Secret or volume that it names",
    "Unhealthy": "see the log of the container that its probe asks",
    "Unschedulable": "add nodes, free devices, or ask for less in `resources`",
}
_SHOWN = 3
"""Most different troubles in one message."""
_LONGEST = 400
"""Characters of a pod's own words."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One kind of trouble, with the pods that have it."""

    reason: Reason
    text: str
    pods: tuple[str, ...]

    @property
    def message(self) -> str:
        """One sentence that names the first pod and how many more there are."""
        more = f" and {len(self.pods) - 1} more" if len(self.pods) > 1 else ""
        return f"pod '{self.pods[0]}'{more}: {self.text}"


def troubles(pods: Iterable[PodState]) -> tuple[Trouble, ...]:
    """Return what keeps pods from being ready, alike ones together, at most three kinds."""
    found: dict[tuple[Reason, str], list[str]] = {}
    for pod in sorted(pods, key=lambda pod: pod.name):
        for reason, text in _of_pod(pod):
            found.setdefault((reason, text), []).append(pod.name)
    return tuple(Trouble(reason, text, tuple(names)) for (reason, text), names in found.items())[:_SHOWN]


def _of_pod(pod: PodState) -> Iterator[tuple[Reason, str]]:
    if pod.ready or pod.terminating:
        return
    if pod.unschedulable:
        yield Reason.UNSCHEDULABLE, f"no node can take it: {_short(pod.unschedulable)}; {_HINTS['Unschedulable']}"
        return
    if pod.unmounted:
        yield Reason.POD_FAILING, f"its volumes cannot be mounted: {_short(pod.unmounted)}; {_HINTS['FailedMount']}"
        return
    if pod.unhealthy:
        yield Reason.POD_FAILING, f"it runs and is not ready: {_short(pod.unhealthy)}; {_HINTS['Unhealthy']}"
        return
    for container in pod.containers:
        if text := _of_container(container):
            yield Reason.POD_FAILING, f"container '{container.name}': {text}"


def _of_container(container: ContainerState) -> str:
    waiting = _SAME.get(container.waiting_reason, container.waiting_reason)
    failed = container.exit_code not in (None, 0)
    if waiting in _NORMAL and not failed:
        return ""
    cause = container.terminated_reason if failed else ""
    parts = [part for part in (waiting if waiting not in _NORMAL else "", _ended(container) if failed else "") if part]
    own = container.terminated_message if failed else ""
    if not own and waiting not in _VAGUE:
        own = container.waiting_message
    hint = _HINTS.get(cause) or _HINTS.get(waiting) or ("" if own else f"see its log: `kubectl logs -c {container.name}`")
    return "; ".join(part for part in (", ".join(parts) + (f": {_short(own)}" if own else ""), hint) if part)


def _ended(container: ContainerState) -> str:
    return f"{container.terminated_reason or 'ended'} with exit code {container.exit_code}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
