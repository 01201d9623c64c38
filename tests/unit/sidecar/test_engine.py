"""Whatever the engine answers, reading it is an observation, counted by how it went."""

import aiohttp
import pytest

from support.scraped_engine import ScrapedEngine
from tandem_sidecar import engine as reading
from tandem_sidecar.engine import EngineReader
from tandem_sidecar.observations import Link, Load


async def test_an_engine_that_does_not_listen_is_refused_and_one_that_does_not_answer_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "_TIMEOUT", 0.05)
    async with aiohttp.ClientSession() as session:
        async with ScrapedEngine() as engine:
            reader = EngineReader(session=session, url=engine.url, clock=lambda: 7.0)
            engine.silent = True
            silent = await reader.read()
        gone = await reader.read()
    assert (silent.link, silent.healthy, silent.load, silent.at) == (Link.SILENT, False, Load(), 7.0)
    assert (gone.link, gone.healthy) == (Link.REFUSED, False)
    assert reader.outcomes == {"timeout": 1, "refused": 1}


async def test_metrics_that_are_malformed_or_endless_leave_the_load_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScrapedEngine() as engine, aiohttp.ClientSession() as session:
        reader = EngineReader(session=session, url=engine.url, clock=lambda: 0.0)
        engine.extra = "vllm:num_requests_running oops\n"
        assert (await reader.read()).load == Load()
        monkeypatch.setattr(reading, "_LONGEST_ANSWER", 10)
        seen = await reader.read()
    assert (seen.link, seen.healthy, seen.load) == (Link.UP, True, Load())
    assert reader.outcomes == {"malformed": 2}
