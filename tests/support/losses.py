"""Many streams at once through a router whose decode workers are killed, each compared with the undisturbed answer.

    outcome = await lose_decode_workers(streams=100, seed=7)
    assert outcome.wrong == []

Every stream is of another kind: chat or completion, with a stop string or without, with usage or without, short or long.
"""

import asyncio
import json
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from support.router_process import RouterProcess
from support.simulator import MODEL, Simulator
from tandem_sidecar.observations import parse_metrics

__all__ = ["Answer", "Outcome", "gone_on", "lose_decode_workers", "lose_one_when_full"]

TOKENS = 240
SLOW = ("--sim-time-scale", "1", "--max-num-seqs", "2048", "--sim-mean-output-tokens", "400")
TOKENS_PER_SECOND = 6_000
"""Of all engines together: what one core can still pass on, so that nothing fails for want of a processor."""
PREFILLS, DECODES, KILLS = 2, 4, 3
FULL, CREDIT = 0.9, 10
"""Share of what decode workers may have at once, and what one of them may have."""
PATIENT = ("--max-wait", "300s", "--connect-timeout", "60s")
"""Everything runs on a few cores: what is slow because of that is no fault."""
ASK_AT_ONCE = 64
SETTLED = 3
"""Looks in a row that must find nobody trying again."""


@dataclass(frozen=True)
class Answer:
    """What a client makes of an answer, streamed or whole; its counts are None where it did not ask for them."""

    text: str
    finish: str | None
    stop_reason: Any
    counts: tuple[int, int, int] | None


@dataclass
class Outcome:
    """What became of the streams; `wrong` holds number, expected and received answer of each that differs.

    `most` is the greatest number of requests that a surviving decode worker had at once, where that was watched.
    """

    wrong: list[tuple[int, Answer, Answer]] = field(default_factory=list)
    signals: dict[str, Any] = field(default_factory=dict)
    kills: int = 0
    most: float = 0

    def compare(self, expected: list[Answer], answers: list[Answer]) -> None:
        """Note which answers are not the expected ones."""
        self.wrong = [
            (number, wanted, got)
            for number, (wanted, got) in enumerate(zip(expected, answers, strict=True))
            if (wanted.text, wanted.finish, wanted.stop_reason) != (got.text, got.finish, got.stop_reason)
            or got.counts not in (None, wanted.counts)
        ]


def entry(pod: str, simulator: Simulator) -> dict[str, Any]:
    """A worker as the workers file has it."""
    return {"pod": pod, "address": simulator.address, "role": simulator.role, "kv_group": "g"}


def request(number: int, luck: random.Random) -> tuple[str, dict[str, Any]]:
    """Path and body of one request, not streamed."""
    body: dict[str, Any] = {"model": MODEL, "max_tokens": luck.choice([TOKENS, TOKENS // 2, TOKENS])}
    text = f"Question {number}: " + "tell me more. " * luck.randint(2, 20)
    if luck.random() < 0.3:
        body["min_tokens"] = luck.randint(1, TOKENS // 2)
    if number % 3 == 0:
        return "/v1/completions", {**body, "prompt": text}
    return "/v1/chat/completions", {**body, "messages": [{"role": "user", "content": text}]}


def long(number: int) -> tuple[str, dict[str, Any]]:
    """Path and body of a request whose answer takes as long as that of any other."""
    messages = [{"role": "user", "content": f"Question {number}: tell me more."}]
    return "/v1/chat/completions", {"model": MODEL, "max_tokens": TOKENS, "min_tokens": TOKENS, "messages": messages}


def with_stop(body: dict[str, Any], text: str, luck: random.Random) -> dict[str, Any]:
    """Add a stop string that occurs in the answer, over several tokens as often as not."""
    at = luck.randint(len(text) // 3, max(len(text) // 3, len(text) - 12))
    stop = text[at : at + luck.randint(2, 12)]
    return {**body, "stop": [stop, "never said"], "include_stop_str_in_output": luck.random() < 0.3} if stop else body


async def whole(session: aiohttp.ClientSession, url: str, path: str, body: dict[str, Any]) -> Answer:
    """The undisturbed answer of one engine."""
    async with session.post(url + path, json=body) as response:
        content = await response.json()
        if response.status != 200:
            raise AssertionError(content)
    choice = content["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    return Answer(text, choice["finish_reason"], choice["stop_reason"], counts(content["usage"]))


def counts(usage: dict[str, int]) -> tuple[int, int, int]:
    """The three counts that a client is billed by."""
    return usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]


async def streamed(session: aiohttp.ClientSession, url: str, path: str, body: dict[str, Any]) -> Answer:
    """An answer read event by event; everything a client may rely on is checked on the way."""
    wants = bool(body.get("stream_options"))
    async with session.post(url + path, json={**body, "stream": True}) as response:
        raw = await response.read()
        if response.status != 200:
            raise AssertionError(raw)
    events = [event[6:] for event in raw.split(b"\n\n") if event.startswith(b"data: ")]
    if events.pop() != b"[DONE]":
        return Answer("no closing event", None, raw[-300:], None)
    contents = [json.loads(event) for event in events]
    heads = {(content.get("id"), content.get("created"), content.get("model"), content.get("object")) for content in contents}
    usage = contents.pop()["usage"] if wants else None
    choices = [content["choices"][0] for content in contents]
    roles = sum("role" in choice.get("delta", {}) for choice in choices)
    if (
        len(heads) != 1
        or roles != ("messages" in body)
        or [choice["finish_reason"] for choice in choices[:-1]].count(None) != len(choices) - 1
    ):
        return Answer("not one stream", None, raw[:300], None)
    text = "".join(choice["delta"].get("content") or "" if "delta" in choice else choice["text"] for choice in choices)
    return Answer(text, choices[-1]["finish_reason"], choices[-1]["stop_reason"], counts(usage) if usage else None)


async def lose_decode_workers(*, streams: int, seed: int) -> Outcome:
    """Start so many streams at once and kill decode workers under them, one after another."""
    luck, outcome = random.Random(seed), Outcome()  # noqa: S311 - the same luck on every run
    async with AsyncExitStack() as stack:
        pace = (*SLOW, "--sim-decode-base-ms", str(max(15, 1000 * streams // TOKENS_PER_SECOND)))
        simulators = [Simulator("prefill", arguments=pace) for _ in range(PREFILLS)]
        simulators += [Simulator("decode", arguments=pace) for _ in range(DECODES)]
        oracle = Simulator(arguments=("--sim-mean-output-tokens", "400"))
        await asyncio.gather(*(stack.enter_async_context(simulator) for simulator in (*simulators, oracle)))
        workers = [entry(f"{simulator.role}-{number}", simulator) for number, simulator in enumerate(simulators)]
        flags = (*PATIENT, "--max-queue", str(2 * streams), "--decode-requests", str(streams))
        router = await stack.enter_async_context(RouterProcess(model=MODEL, workers=workers, arguments=flags))
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))
        )
        requests, expected = await prepared(session, oracle, streams, luck)
        killing = asyncio.ensure_future(kill(simulators[PREFILLS:], router, luck, outcome))
        try:
            answers = await asyncio.gather(*(streamed(session, router.url, path, body) for path, body in requests))
        finally:
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
        outcome.signals = await router.signals()
    outcome.compare(expected, answers)
    return outcome


async def prepared(
    session: aiohttp.ClientSession, oracle: Simulator, streams: int, luck: random.Random
) -> tuple[list[tuple[str, dict[str, Any]]], list[Answer]]:
    """The requests and their undisturbed answers."""
    bound = asyncio.Semaphore(ASK_AT_ONCE)

    async def ask(path: str, body: dict[str, Any]) -> Answer:
        async with bound:
            return await whole(session, oracle.url, path, body)

    plain = [request(number, luck) for number in range(streams)]
    texts = await asyncio.gather(*(ask(path, body) for path, body in plain))
    requests = []
    for number, ((path, body), answer) in enumerate(zip(plain, texts, strict=True)):
        asked = with_stop(body, answer.text, luck) if number % 2 else body
        requests.append((path, asked))
    expected = await asyncio.gather(*(ask(path, body) for path, body in requests))
    wants = {"stream_options": {"include_usage": True}}
    return [(path, body | wants if luck.random() < 0.5 else body) for path, body in requests], list(expected)


async def kill(decodes: list[Simulator], router: RouterProcess, luck: random.Random, outcome: Outcome) -> None:
    """One decode worker after another dies in the middle of its streams and comes back.

    Each dies when the streams of the one before go on again: a request that is in flight at two deaths in a row without
    a token in between is rightly taken for their cause.
    """
    while (await router.signals())["roles"].get("decode", {}).get("in_flight", 0) == 0:
        await asyncio.sleep(0.02)
    async with asyncio.TaskGroup() as restarts:
        for victim in luck.sample(decodes, KILLS):
            await asyncio.sleep(luck.uniform(0.3, 0.8))
            await victim.kill()
            outcome.kills += 1
            await gone_on(router)
            restarts.create_task(victim.start())


async def lose_one_when_full(*, seed: int) -> Outcome:
    """Kill one of several decode workers that have nearly all the streams they may have; it does not come back.

    `Outcome.most` is the most that any of the others had at once.
    """
    luck, outcome = random.Random(seed), Outcome()  # noqa: S311 - the same luck on every run
    streams = round(FULL * DECODES * CREDIT)
    async with AsyncExitStack() as stack:
        pace = (*SLOW, "--sim-decode-base-ms", "30")
        simulators = [Simulator("prefill", arguments=pace), *(Simulator("decode", arguments=pace) for _ in range(DECODES))]
        oracle = Simulator(arguments=("--sim-mean-output-tokens", "400"))
        await asyncio.gather(*(stack.enter_async_context(simulator) for simulator in (*simulators, oracle)))
        workers = [entry(f"{simulator.role}-{number}", simulator) for number, simulator in enumerate(simulators)]
        flags = (*PATIENT, "--decode-requests", str(CREDIT))
        router = await stack.enter_async_context(RouterProcess(model=MODEL, workers=workers, arguments=flags))
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)))
        requests = [long(number) for number in range(streams)]
        expected = await asyncio.gather(*(whole(session, oracle.url, path, body) for path, body in requests))
        asking = [asyncio.ensure_future(streamed(session, router.url, path, body)) for path, body in requests]
        async with asyncio.timeout(60):
            while sum([await running(session, simulator) for simulator in simulators[1:]]) < streams:
                await asyncio.sleep(0.02)
        victim = luck.choice(simulators[1:])
        await victim.kill()
        outcome.kills = 1
        while not all(one.done() for one in asking):
            others = [await running(session, simulator) for simulator in simulators[1:] if simulator is not victim]
            outcome.most = max(outcome.most, *others)
            await asyncio.sleep(0.02)
        outcome.compare(list(expected), [one.result() for one in asking])
        outcome.signals = await router.signals()
    return outcome


async def running(session: aiohttp.ClientSession, simulator: Simulator) -> float:
    """Requests that an engine computes answers for."""
    async with session.get(f"{simulator.url}/metrics") as response:
        return parse_metrics(await response.text())[0].running


async def gone_on(router: RouterProcess) -> None:
    """Wait until no request is being tried again any more."""
    quiet = 0
    while quiet < SETTLED:
        quiet = quiet + 1 if await router.metric("tandem_router_retrying_requests") == 0 else 0
        await asyncio.sleep(0.1)
