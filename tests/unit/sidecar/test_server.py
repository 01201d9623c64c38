"""The sidecar against a fake engine: what it publishes, and when it lets a draining pod go."""

import asyncio

import pytest

from support.scraped_engine import ScrapedEngine
from support.sidecar import DEADLINE, sidecar
from tandem_api.names import Role
from tandem_sidecar.main import serve
from tandem_sidecar.settings import Settings


async def readings(engine: ScrapedEngine, count: int) -> None:
    """Return when the engine was read so many times more."""
    wanted = engine.asked["/metrics"] + count
    async with asyncio.timeout(DEADLINE):
        while engine.asked["/metrics"] < wanted:
            await asyncio.sleep(0.01)


async def test_the_state_is_the_engines_own() -> None:
    async with ScrapedEngine() as engine:
        engine.running, engine.waiting, engine.kv_usage = 2, 1, 0.5
        engine.extra = "vllm:nixl_bytes_transferred_sum 4096.0\n"
        async with sidecar(engine.url) as client:
            state = await client.until(lambda state: state.engine_ready)
    assert (state.pod, state.role, state.kv_group, state.engine) == ("chat-prefill-worker-1", Role.PREFILL, "g1", "VLLM")
    assert (state.engine_version, state.running, state.waiting, state.kv_usage) == ("0.32.0", 2, 1, 0.5)
    assert (state.kv.transferred_bytes, state.kv.failed_transfers, state.draining) == (4096, None, False)


async def test_readiness_is_the_engines_and_liveness_is_the_sidecars_own() -> None:
    async with ScrapedEngine() as engine:
        engine.healthy = False
        async with sidecar(engine.url) as client:
            assert (await client.get("/readyz"))[0] == 503
            assert (await client.get("/healthz"))[0] == 200
            engine.healthy = True
            await client.until(lambda state: state.engine_ready)
            assert (await client.get("/readyz"))[0] == 200
            await engine.stop()
            await client.until(lambda state: not state.engine_ready)
            assert (await client.get("/readyz"))[0] == 503
            assert (await client.get("/healthz"))[0] == 200


async def test_metrics_hold_what_is_known_and_leave_out_what_is_not() -> None:
    async with ScrapedEngine() as engine:
        engine.extra = "vllm:nixl_bytes_transferred_sum 4096.0\n"
        async with sidecar(engine.url) as client:
            await client.until(lambda state: state.engine_ready)
            _, text = await client.get("/metrics")
    assert "tandem_kv_transferred_bytes_total 4096.0\n" in text
    assert "tandem_kv_engine_up 1.0\n" in text
    assert "tandem_kv_draining 0.0\n" in text
    assert 'tandem_kv_engine_reads_total{outcome="ok"}' in text
    assert "tandem_kv_transfers_total" not in text


async def test_the_version_is_asked_once_for_each_life_of_an_engine() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url) as client:
        await client.until(lambda state: state.engine_version == "0.32.0")
        await engine.stop()
        await client.until(lambda state: state.engine_version is None)
        engine.version = "0.33.0"
        await engine.start()
        await client.until(lambda state: state.engine_version == "0.33.0")
        await readings(engine, 2)
    assert engine.asked["/version"] == 2


async def test_a_drain_waits_for_requests_and_then_for_kv_that_was_not_pulled() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url) as client:
        engine.running, engine.kv_usage = 1, 0.5
        await client.until(lambda state: state.running == 1)
        draining = asyncio.create_task(client.drain())
        await client.until(lambda state: state.draining)
        assert (await client.get("/readyz"))[0] == 503
        engine.running = 0
        await client.until(lambda state: state.running == 0)
        await readings(engine, 20)
        assert not draining.done(), "the export has not been pulled"
        engine.kv_usage = 0.0
        assert await draining == (200, {"drained": True, "reason": "no request runs or waits and no KV is held"})


async def test_a_drain_ends_when_the_lease_has_run_out() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url, lease=0.1) as client:
        engine.kv_usage = 0.5
        await client.until(lambda state: state.kv_usage == 0.5)
        status, answer = await client.drain()
    assert (status, answer["drained"]) == (200, True)
    assert "longer than the lease" in answer["reason"]


async def test_a_drain_ends_with_its_timeout_and_says_what_is_still_owed() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url) as client:
        engine.running, engine.kv_usage = 3, 0.5
        await client.until(lambda state: state.running == 3)
        _, answer = await client.drain("?timeout=0.05")
        assert answer == {"drained": False, "reason": "not drained within 0.05 s: running 3, waiting 0, KV usage 0.5"}
        assert 'tandem_kv_drains_total{outcome="timeout"} 1.0' in (await client.get("/metrics"))[1]


async def test_no_caller_may_drain_for_longer_than_the_worker_allows() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url, drain=0.05) as client:
        engine.running = 1
        await client.until(lambda state: state.running == 1)
        for query in ("?timeout=3600", ""):
            _, answer = await client.drain(query)
            assert answer["reason"].startswith("not drained within 0.05 s")


async def test_a_drain_ends_when_the_engine_dies() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url) as client:
        engine.running = 1
        await client.until(lambda state: state.running == 1)
        draining = asyncio.create_task(client.drain())
        await client.until(lambda state: state.draining)
        await engine.stop()
        _, answer = await draining
    assert answer == {"drained": False, "reason": "the engine is not running, so it holds nothing that could be waited for"}


async def test_a_second_drain_joins_the_first_and_a_later_one_is_answered_at_once() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url) as client:
        engine.running = 1
        await client.until(lambda state: state.running == 1)
        both = asyncio.gather(client.drain(), client.drain())
        await client.until(lambda state: state.draining)
        engine.running = 0
        first, second = await both
        assert first == second
        assert await client.drain() == first
        assert (await client.state()).draining


async def test_an_engine_that_is_started_anew_after_a_drain_serves_again() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url) as client:
        await client.until(lambda state: state.engine_ready)
        await client.drain()
        assert (await client.get("/readyz"))[0] == 503
        await engine.stop()
        await client.until(lambda state: not state.engine_ready)
        await engine.start()
        await client.until(lambda state: not state.draining)
        assert (await client.get("/readyz"))[0] == 200


@pytest.mark.parametrize("text", ["x", "-1", "0", "nan", "inf", ""])
async def test_a_timeout_that_is_no_time_is_refused_and_drains_nothing(text: str) -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url) as client:
        status, answer = await client.drain(f"?timeout={text}")
        assert (status, list(answer)) == (400, ["error"])
        assert not (await client.state()).draining


async def test_a_taken_port_ends_the_sidecar() -> None:
    async with ScrapedEngine() as engine, sidecar(engine.url) as client:
        settings = Settings(
            role=Role.DECODE,
            kv_group="g",
            engine="VLLM",
            engine_url=engine.url,
            pod="p",
            host="127.0.0.1",
            port=int(client.url.rpartition(":")[2]),
            lease=1,
            drain=1,
            settle=0,
            interval=1,
        )
        with pytest.raises(OSError, match="address already in use"):
            await serve(settings, asyncio.Event())
