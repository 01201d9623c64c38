"""Canaries between simulated engines: what proves a KV path, what quarantines it, and what is no verdict."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from support.simulator import MODEL, SimulatorPair
from tandem_api.names import Role
from tandem_api.wire import Fingerprint, PairStatus, SidecarState
from tandem_sidecar.canary import Engines
from tandem_sidecar.engine import EngineReader
from tandem_sidecar.fingerprint import make_fingerprint
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
    assert bench.prober.tokens > 0


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
        await bench.prober.once()
    assert bench.prober.pairs.states(bench.now) == ()


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
