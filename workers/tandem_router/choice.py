"""Which workers serve a request: decode first, then whether to disaggregate, then prefill. Pure: no clock, no I/O.

Pairs form only inside one KV group, and a group counts only while both of its roles are routable.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tandem_api.names import Role
from tandem_router.registry import Worker

__all__ = ["Need", "Plan", "choose", "missing"]

BOUND = 1.25
"""A decode worker may carry this multiple of the mean load before a conversation moves elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a request asks of the choice.

    `local` names the reason for which one worker has to serve it alone, if there is one. `avoid` holds addresses at which
    an attempt of this request failed; `keep_prefill` an address whose prefix cache is warm for it; `group` a KV group that
    holds its KV already, so that only decode is chosen. `fallback` allows decode alone where no prefill worker is left.
    """

    conversation: bytes
    prefix: bytes
    local: str | None = None
    avoid: Collection[str] = ()
    keep_prefill: str | None = None
    group: str | None = None
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The chosen workers; `local` says why there is no prefill worker, and is None where there is one."""

    decode: Worker
    prefill: Worker | None
    local: str | None


def choose(workers: Sequence[Worker], load: Mapping[str, int], need: Need) -> Plan | None:
    """Choose among routable workers; None if no worker or pair can take the request now."""
    free = [worker for worker in workers if worker.address not in need.avoid]
    decodes = [worker for worker in free if worker.role is Role.DECODE]
    if need.group is not None:
        return _alone([worker for worker in decodes if worker.kv_group == need.group], load, need, reason="handed_over")
    if need.local is not None and decodes:
        return _alone(decodes, load, need, reason=need.local)
    prefills = [worker for worker in free if worker.role is Role.PREFILL]
    groups = {worker.kv_group for worker in prefills}
    paired = [worker for worker in decodes if worker.kv_group in groups]
    if paired:
        decode = _decode(paired, load, need.conversation)
        partners = [worker for worker in prefills if worker.kv_group == decode.kv_group]
        return Plan(decode, _prefill(partners, load, need), None)
    aggregated = [worker for worker in free if worker.role is Role.AGGREGATED]
    if aggregated:
        return _alone(aggregated, load, need, reason="aggregated")
    return _alone(decodes, load, need, reason="no_prefill_worker") if need.fallback else None


def missing(workers: Sequence[Worker]) -> str:
    """Say in words which workers a request lacks."""
    roles = {worker.role for worker in workers}
    lacking = [role.value for role in (Role.PREFILL, Role.DECODE) if role not in roles]
    if not lacking:
        return "no prefill and decode worker of one KV group could take the request"
    return f"no {' and no '.join(lacking)} worker is ready"


def _weight(key: bytes) -> Callable[[Worker], bytes]:
    def weigh(worker: Worker) -> bytes:
        return hashlib.blake2b(worker.address.encode(), key=key[:64], digest_size=8).digest()

    return weigh


def _alone(workers: list[Worker], load: Mapping[str, int], need: Need, *, reason: str) -> Plan | None:
    return Plan(_decode(workers, load, need.conversation), None, reason) if workers else None


def _decode(workers: list[Worker], load: Mapping[str, int], key: bytes) -> Worker:
    total = sum(load.get(worker.address, 0) for worker in workers) + 1
    bound = max(1.0, BOUND * total / len(workers))
    within = [worker for worker in workers if load.get(worker.address, 0) + 1 <= bound]
    return max(within or workers, key=_weight(key))


def _prefill(workers: list[Worker], load: Mapping[str, int], need: Need) -> Worker:
    for worker in workers:
        if worker.address == need.keep_prefill:
            return worker
    least = min(load.get(worker.address, 0) for worker in workers)
    return max((worker for worker in workers if load.get(worker.address, 0) == least), key=_weight(need.prefix))
