"""Canaries between simulated engines: what proves a KV path, what quarantines it, and what is no verdict."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from support.simulator import MODEL, SimulatorPair
from tandem_api.names import Role
from tandem_api.wire import Fingerprint, PairStatus, SidecarState
from tandem_sidecar.canary import Engines
from tandem_sidecar.engine import EngineReader
from tandem_sidecar.fingerprint import make_fingerprint
from tandem_sidecar.observations import Observation
from tandem_sidecar.pairs import Pairs
from tandem_sidecar.prober import Means, Peer, Prober
from tandem_sidecar.settings import Settings
from tandem_sidecar.worker import Worker


def _settings(role: Role, url: str, group: str = "g") -> Settings:
    return Settings(
        role=role,
        kv_group=group,
        engine="Simulator",
        engine_url=url,
        pod=f"{role}-1",
        host="127.0.0.1",
        port=0,
        lease=30,
        drain=60,
        settle=1,
        interval=1,
    )


class _Bench:
    """A decode worker's prober, and a prefill worker's state that a test may bend."""

    def __init__(self, pair: SimulatorPair, session: aiohttp.ClientSession) -> None:
        self.now = 0.0
        self.peer: SidecarState | None = None
        self.reader = EngineReader(session=session, url=pair.decode.url, clock=lambda: self.now)
        self.worker = Worker(_settings(Role.DECODE, pair.decode.url))
        self.addresses = [pair.prefill.url]
        means = Means(
            session=session,
            engines=Engines(session, model=MODEL, token=None),
            own=pair.decode.url,
            kv_group="g",
            resolve=self._resolve,
            read=self.reader.read,
            state=self.worker.state,
            clock=lambda: self.now,
            salts=lambda: f"salt-{self.now}",
            token=None,
        )
        self.prober = Prober(means)
        self.prober._peer_state = self._state  # noqa: SLF001 - a peer's sidecar has a test of its own

    async def _resolve(self) -> list[Peer]:
        if not self.addresses:
            raise OSError("no address")
        return [Peer(address, "http://unused") for address in self.addresses]

    async def _state(self, _url: str) -> SidecarState | None:
        return self.peer

    async def round(self) -> tuple[PairStatus, str]:
        self.worker.observe(await self.reader.read())
        self.now += 1
        await self.prober.look()
        await self.prober.once()
        (state,) = self.prober.pairs.states(self.now)
        return state.status, state.reason


@asynccontextmanager
async def _bench(policy: str = "fail") -> AsyncIterator[tuple[_Bench, SimulatorPair]]:
    async with SimulatorPair(policy=policy) as pair, aiohttp.ClientSession() as session:
        bench = _Bench(pair, session)
        prefill = Worker(_settings(Role.PREFILL, pair.prefill.url))
        prefill.observe(await EngineReader(session=session, url=pair.prefill.url, clock=lambda: 0.0).read())
        bench.peer = prefill.state()
        yield bench, pair


async def test_a_pulled_block_proves_the_path_and_again_with_another_salt() -> None:
    async with _bench() as (bench, _):
        assert await bench.round() == (PairStatus.WARM, "")
        assert await bench.round() == (PairStatus.WARM, "")
    assert bench.prober.outcomes == {"proven": 2}
    assert bench.prober.canaries.tokens > 0


@pytest.mark.parametrize(("policy", "reason"), [("fail", "own: status_500"), ("recompute", "own: recomputed")])
async def test_a_dead_path_between_healthy_engines_is_quarantined_and_recovers(policy: str, reason: str) -> None:
    async with _bench(policy) as (bench, pair):
        await bench.round()
        await pair.prefill.fault("kv-dead")
        assert (await bench.round())[0] is PairStatus.WARM
        assert await bench.round() == (PairStatus.QUARANTINED, reason)
        await pair.prefill.clear_faults()
        assert await bench.round() == (PairStatus.WARM, "")


async def test_another_engine_in_the_same_group_is_no_pair_and_both_values_are_shown() -> None:
    async with _bench() as (bench, _):
        assert bench.peer is not None
        other = bench.peer.fingerprint.model_copy(update={"engine_version": "0.33.0"})
        bench.peer = bench.peer.model_copy(update={"fingerprint": other})
        assert await bench.round() == (PairStatus.QUARANTINED, "fingerprint")
        (state,) = bench.prober.pairs.states(bench.now)
    assert state.differs == {"engine_version": ("0.32.0", "0.33.0")}
    assert bench.prober.outcomes == {"mismatch": 1}


@pytest.mark.parametrize("change", [{"kv_group": "other"}, {"draining": True}, {"engine_ready": False}])
async def test_a_peer_that_cannot_be_judged_stays_cold(change: dict[str, object]) -> None:
    async with _bench() as (bench, _):
        assert bench.peer is not None
        bench.peer = bench.peer.model_copy(update=change)
        assert await bench.round() == (PairStatus.COLD, "")
    assert not bench.prober.outcomes


async def test_peers_that_are_gone_are_forgotten_and_a_new_pod_at_the_address_is_cold() -> None:
    async with _bench() as (bench, _):
        await bench.round()
        assert bench.peer is not None
        bench.peer = bench.peer.model_copy(update={"pod": "prefill-2", "engine_ready": False})
        assert await bench.round() == (PairStatus.COLD, "")
        bench.addresses = []
        await bench.prober.look()
    assert bench.prober.pairs.states(bench.now) == ()


def test_pairs_in_doubt_are_tried_between_the_turns_of_all_and_engines_that_differ_are_not() -> None:
    pairs = Pairs()
    pairs.keep(["warm", "new", "failed", "other"])
    pairs.proven("warm", pod="p0", at=0.0)
    pairs.proven("failed", pod="p1", at=3.0)
    pairs.failed("failed", pod="p1", at=4.0, reason="own: status_500")
    pairs.mismatched("other", pod="p2", at=1.0, differs={"dtype": ("a", "b")})
    assert pairs.next(doubtful=True) == "new"
    pairs.proven("new", pod="p3", at=5.0)
    assert (pairs.next(doubtful=True), pairs.next()) == ("failed", "warm")
    pairs.proven("failed", pod="p1", at=6.0)
    assert not pairs.doubtful


async def test_a_request_that_was_not_pulled_puts_every_pair_in_doubt_and_a_canary_does_not() -> None:
    async with _bench("recompute") as (bench, pair):
        await bench.round()
        bench.prober.listen()
        await pair.prefill.fault("kv-dead")
        await bench.round()
        bench.worker.observe(await bench.reader.read())
        bench.prober.listen()
        await pair.prefill.clear_faults()
        await bench.round()
        assert not bench.prober.pairs.doubtful
        seen = bench.worker.latest.counters
        failed = seen.model_copy(update={"failed_transfers": (seen.failed_transfers or 0) + 1})
        bench.worker.observe(replace(bench.worker.latest, counters=failed))
        bench.prober.listen()
        assert bench.prober.pairs.doubtful
        await bench.round()
        assert not bench.prober.pairs.doubtful


@pytest.mark.parametrize(("hidden", "status"), [(1, PairStatus.WARM), (99, PairStatus.QUARANTINED)])
async def test_a_canary_that_the_counts_of_other_requests_may_hide_is_sent_again(hidden: int, status: PairStatus) -> None:
    async with _bench() as (bench, _):
        read, reads = bench.prober._means.read, itertools.count()  # noqa: SLF001 - other requests would come as luck has it

        async def among_others() -> Observation:
            seen = await read()
            failed = float(min(next(reads), hidden))
            return replace(seen, counters=seen.counters.model_copy(update={"failed_transfers": failed}))

        salts = map(str, itertools.count())
        bench.prober._means = replace(bench.prober._means, read=among_others, salts=lambda: next(salts))  # noqa: SLF001 - the same
        await bench.round()
        assert (await bench.round())[0] is status


async def test_canaries_that_fail_are_told_apart_from_requests_that_do() -> None:
    async with _bench("recompute") as (bench, pair):
        await pair.prefill.fault("kv-dead")
        await bench.round()
        assert (await bench.reader.read()).counters.failed_transfers == 1
    assert (bench.prober.canaries.failures, bench.prober.canaries.running) == (1, False)


async def test_a_decode_engine_that_is_deaf_to_one_peer_hears_it_again_when_the_fault_is_gone() -> None:
    async with _bench() as (bench, pair):
        await pair.decode.fault("kv-deaf", text="127.0.0.1:1")
        assert await bench.round() == (PairStatus.WARM, "")
        await pair.decode.fault("kv-deaf", text=f"127.0.0.1:{pair.prefill.channel_port}")
        await bench.round()
        assert await bench.round() == (PairStatus.QUARANTINED, "own: status_500")
        await pair.decode.clear_faults()
        assert await bench.round() == (PairStatus.WARM, "")


def test_the_engine_is_believed_before_its_argument_line_and_silence_is_unknown() -> None:
    metrics = 'vllm:cache_config_info{block_size="32",cache_dtype="fp8",engine="0",sliding_window="None"} 1.0\n'
    line = [
        "--model",
        "/m",
        "--dtype=bfloat16",
        "--block-size",
        "16",
        "--kv-transfer-config",
        '{"kv_connector":"NixlConnector"}',
    ]
    found = make_fingerprint(line, version="0.32.0", model=None, metrics=metrics)
    assert found == Fingerprint(
        engine_version="0.32.0", model="/m", dtype="bfloat16", kv_dtype="fp8", block_size="32", connector="NixlConnector"
    )
    assert make_fingerprint([], version=None, model=None, metrics="") == Fingerprint()
