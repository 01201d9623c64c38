"""Which workers serve a request: decode first, then whether to disaggregate, then prefill. Pure: no clock, no I/O.

Pairs form only inside one KV group, and a group counts only while both of its roles are routable. A worker without room,
or one that health leaves out, is not there.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tandem_api.names import Role
from tandem_router.health.scores import Kind, Subject
from tandem_router.membership.registry import Worker

__all__ = ["Need", "Outlook", "Plan", "choose", "missing"]

BOUND = 1.25
"""A decode worker may carry this multiple of the mean load before a conversation moves elsewhere."""
LOCAL_TOKENS = 2048
"""Prompt tokens that may wait on one decode worker to be computed there, beyond which even short prompts are sent away."""

ASTRAY = 0.5
"""Share by which computing tokens counts as dearer away from the conversation's home: later turns look for them there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a request asks of the choice.

    `local` names the reason for which one worker has to serve it alone, if there is one. `avoid` holds addresses at which
    an attempt of this request failed; `keep_prefill` an address whose prefix cache is warm for it; `group` a KV group that
    holds its KV already, so that only decode is chosen. `fallback` allows decode alone where no prefill worker is left.
    `tokens` is the estimated prompt, `chunks` the keys of its beginning, and a decode worker that lacks fewer than
    `least` tokens of it computes them itself.
    """

    conversation: bytes
    local: str | None = None
    avoid: Collection[str] = ()
    keep_prefill: str | None = None
    group: str | None = None
    fallback: bool = False
    tokens: int = 0
    chunks: Sequence[bytes] = ()
    least: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The chosen workers; `local` says why there is no prefill worker, and is None where there is one."""

    decode: Worker
    prefill: Worker | None
    local: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is known of the workers beside their load; without anything known every worker is as good as any other.

    Attributes:
        barred: Workers and pairs that health leaves out.
        cold: Pairs over which no KV cache was seen to move yet: they are used last.
        room: Whether a decode worker will have room at hand-over for a prompt of so many uncached tokens.
        credit: Whether another prompt may be sent to a worker that computes prompts.
        seconds: Expected seconds until the first token of so many uncached tokens on a worker, its queue included.
        matched: How many chunks of a prompt's beginning the worker at an address holds.
        waiting: Prompt tokens sent to an address and not computed yet.
        chunk_tokens: Estimated tokens of a chunk.
        sample: The prefill workers to compare: all, or a few where others choose at the same moment.
    """

    barred: Collection[Subject] = frozenset()
    cold: Collection[Subject] = frozenset()
    room: Callable[[Worker, int], bool] = lambda _worker, _tokens: True
    credit: Callable[[Worker], bool] = lambda _worker: True
    seconds: Callable[[Worker, int], float] = lambda _worker, _tokens: 0.0
    matched: Callable[[str, Sequence[bytes]], int] = lambda _address, _keys: 0
    waiting: Callable[[str], int] = lambda _address: 0
    chunk_tokens: float = 0.0
    sample: Callable[[Sequence[Worker]], Sequence[Worker]] = lambda workers: workers

    def uncached(self, worker: Worker, need: Need) -> int:
        """Return the tokens of a prompt that a worker would have to compute."""
        return max(round(need.tokens - self.matched(worker.address, need.chunks) * self.chunk_tokens), 0)

    def well(self, worker: Worker) -> bool:
        """Whether health lets requests go to a worker."""
        if not self.barred:
            return True
        if worker.role is Role.PREFILL:
            return Subject(Kind.PREFILL, worker.address) not in self.barred
        return Subject(Kind.DECODE, "", worker.address) not in self.barred

    def moves(self, prefill: Worker, decode: Worker) -> bool:
        """Whether KV cache can be handed from one worker to the other."""
        if prefill.kv_group != decode.kv_group:
            return False
        return not self.barred or Subject(Kind.PAIR, prefill.address, decode.address) not in self.barred

    def proven(self, prefill: Worker, decode: Worker) -> bool:
        """Whether it can, and nothing says that this was never seen."""
        return self.moves(prefill, decode) and Subject(Kind.PAIR, prefill.address, decode.address) not in self.cold


_NOTHING_KNOWN = Outlook()


def choose(workers: Sequence[Worker], load: Mapping[str, int], need: Need, outlook: Outlook = _NOTHING_KNOWN) -> Plan | None:
    """Choose among routable workers; None if no worker or pair can take the request now."""
    free = [worker for worker in workers if worker.address not in need.avoid and outlook.well(worker)]
    decodes = [worker for worker in free if worker.role is Role.DECODE]
    if need.group is not None:
        return _alone([worker for worker in decodes if worker.kv_group == need.group], load, need, "handed_over", outlook)
    if need.local is not None and decodes:
        return _alone(decodes, load, need, need.local, outlook)
    prefills = [worker for worker in free if worker.role is Role.PREFILL]
    paired = [decode for decode in decodes if any(outlook.moves(prefill, decode) for prefill in prefills)]
    if paired:
        return _pair(paired, prefills, load, need, outlook)
    aggregated = [worker for worker in free if worker.role is Role.AGGREGATED]
    if aggregated:
        return _alone(aggregated, load, need, "aggregated", outlook)
    return _alone(decodes, load, need, "no_prefill_worker", outlook) if need.fallback else None


def missing(workers: Sequence[Worker]) -> str:
    """Say in words which workers a request lacks."""
    roles = {worker.role for worker in workers}
    lacking = [role.value for role in (Role.PREFILL, Role.DECODE) if role not in roles]
    if not lacking:
        return "no prefill and decode worker of one KV group could take the request"
    return f"no {' and no '.join(lacking)} worker is ready"


def _pair(decodes: list[Worker], prefills: list[Worker], load: Mapping[str, int], need: Need, outlook: Outlook) -> Plan | None:
    """Choose decode by conversation; then it computes what it lacks itself if that is little, else a prefill worker does."""
    left = decodes
    while (decode := _decode_of_pair(left, prefills, load, need, outlook)) is not None:
        lacks = outlook.uncached(decode, need)
        short = lacks < need.least and outlook.waiting(decode.address) + lacks <= LOCAL_TOKENS
        if short:
            return Plan(decode, None, "cached")
        partners = [prefill for prefill in prefills if outlook.moves(prefill, decode)]
        proven = [prefill for prefill in partners if outlook.proven(prefill, decode)] if outlook.cold else partners
        prefill = _prefill(proven, load, need, outlook)
        if prefill is None and proven is not partners:
            prefill = _prefill(partners, load, need, outlook)
        if prefill is not None:
            return Plan(decode, prefill, None)
        # Another decode worker helps only where its partners are others.
        others = [each for each in prefills if each not in partners]
        left = [each for each in left if any(outlook.moves(other, each) for other in others)]
    return None


def _decode_of_pair(
    decodes: list[Worker], prefills: list[Worker], load: Mapping[str, int], need: Need, outlook: Outlook
) -> Worker | None:
    if outlook.cold:
        proven = [decode for decode in decodes if any(outlook.proven(prefill, decode) for prefill in prefills)]
        if (decode := _decode(proven, load, need, outlook)) is not None:
            return decode
    return _decode(decodes, load, need, outlook)


def _weight(key: bytes) -> Callable[[Worker], bytes]:
    def weigh(worker: Worker) -> bytes:
        return hashlib.blake2b(worker.address.encode(), key=key[:64], digest_size=8).digest()

    return weigh


def _alone(workers: list[Worker], load: Mapping[str, int], need: Need, reason: str, outlook: Outlook) -> Plan | None:
    if need.group is None:
        workers = [worker for worker in workers if outlook.credit(worker)]
    decode = _decode(workers, load, need, outlook)
    return None if decode is None else Plan(decode, None, reason)


def _decode(workers: list[Worker], load: Mapping[str, int], need: Need, outlook: Outlook) -> Worker | None:
    total = sum(load.get(worker.address, 0) for worker in workers) + 1
    bound = max(1.0, BOUND * total / len(workers)) if workers else 0.0
    roomy = [worker for worker in workers if outlook.room(worker, need.tokens)]
    within = [worker for worker in roomy if load.get(worker.address, 0) + 1 <= bound]
    return max(within or roomy, key=_weight(need.conversation), default=None)


def _prefill(workers: list[Worker], load: Mapping[str, int], need: Need, outlook: Outlook) -> Worker | None:
    """Choose by the expected time to first token: what the worker lacks of the prompt, behind what it has to do.

    The worker that holds most of the prompt and the one where the conversation is at home are considered even while they
    have no credit: waiting there may be shorter than computing everything elsewhere. The home is the same for all routers.
    """
    for worker in workers:
        if worker.address == need.keep_prefill:
            return worker
    open_workers = [worker for worker in workers if outlook.credit(worker)]
    if not open_workers:
        return None
    lacks = {worker.address: outlook.uncached(worker, need) for worker in workers}
    weigh = _weight(need.conversation)
    home = max(workers, key=weigh)
    warmest = min(workers, key=lambda worker: lacks[worker.address])

    def cost(worker: Worker) -> tuple[float, int, int]:
        seconds = outlook.seconds(worker, lacks[worker.address])
        if worker is not home:
            seconds += ASTRAY * (seconds - outlook.seconds(worker, 0))
        return seconds, load.get(worker.address, 0), -int.from_bytes(weigh(worker), "big")

    return min({*outlook.sample(open_workers), warmest, home}, key=cost)
