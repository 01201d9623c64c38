"""Continuous batching: budgets, limits, prefix cache, preemption."""

import asyncio

from tandem_simulator.engine.blocks import BlockPool
from tandem_simulator.engine.oracle import BlockDigester
from tandem_simulator.engine.scheduler import Plan, Scheduler
from tandem_simulator.engine.sequences import RemoteBlocks, Sampling, Sequence, State
from tandem_simulator.timing import StepLoad

BLOCK = 4
REMOTE = RemoteBlocks(engine_id="e", request_id="r", host="h", port=1, block_ids=(1, 2, 3))


def scheduler(*, blocks: int = 100, sequences: int = 8, tokens: int = 1000) -> Scheduler:
    pool = BlockPool(total=blocks, block_size=BLOCK, caching=True)
    return Scheduler(pool, max_sequences=sequences, max_batched_tokens=tokens)


def sequence(prompt: list[int], *, salt: str = "", remote: RemoteBlocks | None = None) -> Sequence:
    return Sequence(
        request_id="r",
        index=0,
        prompt=prompt,
        sampling=Sampling(max_tokens=100),
        sink=asyncio.Queue(),
        digester=BlockDigester(BLOCK),
        arrived=0.0,
        salt=salt,
        remote=remote,
    )


def step(engine: Scheduler) -> Plan:
    """One step; whoever gets a token gets the token 1."""
    plan = engine.plan()
    for one, count in plan.work:
        if engine.advance(one, count):
            one.output.append(1)
            one.digester.push((1,))
    return plan


def counts(plan: Plan) -> list[int]:
    return [count for _, count in plan.work]


def test_a_prompt_is_computed_at_once_and_then_one_token_a_step() -> None:
    engine = scheduler()
    engine.add(sequence([1] * 10))
    assert [counts(step(engine)) for _ in range(3)] == [[10], [1], [1]]


def test_a_long_prompt_is_computed_in_portions_beside_those_that_decode() -> None:
    engine = scheduler(tokens=8)
    engine.add(sequence([1] * 5))
    step(engine)
    engine.add(sequence([2] * 20))
    assert [counts(step(engine)) for _ in range(4)] == [[1, 7], [1, 7], [1, 6], [1, 1]]


def test_the_load_of_a_step_tells_prefill_from_decode() -> None:
    engine = scheduler(tokens=8)
    engine.add(sequence([1] * 5))
    step(engine)
    engine.add(sequence([2] * 20))
    assert engine.plan().load() == StepLoad(prefill_tokens=7, decode_sequences=1, context_tokens=5)


def test_no_more_sequences_run_than_allowed() -> None:
    engine = scheduler(sequences=2)
    for at in range(3):
        engine.add(sequence([at] * 5))
    step(engine)
    assert (len(engine.running), len(engine.waiting)) == (2, 1)


def test_a_sequence_waits_until_its_whole_prompt_finds_blocks() -> None:
    engine = scheduler(blocks=5)
    first, second = sequence([1] * 9), sequence([2] * 9)
    engine.add(first)
    engine.add(second)
    step(engine)
    assert (first.state, second.state) == (State.RUNNING, State.WAITING)
    engine.pool.release(engine.remove(first))
    step(engine)
    assert second.state is State.RUNNING


def test_a_known_prefix_is_not_computed_again() -> None:
    engine = scheduler()
    engine.add(sequence(list(range(12))))
    step(engine)
    second = sequence([*range(8), 50, 51, 52])
    engine.add(second)
    assert counts(step(engine)) == [1, 3]
    assert second.cached_local == 8


def test_the_last_token_of_a_known_prompt_is_computed_all_the_same() -> None:
    engine = scheduler()
    engine.add(sequence(list(range(8))))
    step(engine)
    second = sequence(list(range(8)))
    engine.add(second)
    step(engine)
    assert second.cached_local == 4


def test_another_salt_finds_nothing() -> None:
    engine = scheduler()
    engine.add(sequence(list(range(12)), salt="mine"))
    step(engine)
    second = sequence(list(range(12)), salt="yours")
    engine.add(second)
    step(engine)
    assert second.cached_local == 0


def test_who_came_last_gives_its_blocks_to_who_came_first() -> None:
    engine = scheduler(blocks=4)
    first, second = sequence([1] * 7), sequence([2] * 7)
    engine.add(first)
    engine.add(second)
    step(engine)
    step(engine)
    plan = step(engine)
    assert plan.preempted == [second]
    assert (second.state, second.computed, second.blocks) == (State.WAITING, 0, [])
    engine.pool.release(engine.remove(first))
    step(engine)
    assert second.state is State.RUNNING


def test_a_sequence_with_kv_cache_elsewhere_reserves_its_blocks_and_computes_nothing() -> None:
    engine = scheduler()
    remote = sequence([1] * 9, remote=REMOTE)
    engine.add(remote)
    plan = step(engine)
    assert (plan.work, plan.loading, len(remote.blocks)) == ([], [remote], 3)
    remote.remote = None
    engine.loaded(remote, 9)
    assert counts(step(engine)) == [1]
    assert len(remote.output) == 1


def test_a_failed_pull_computes_the_prompt_here() -> None:
    engine = scheduler()
    remote = sequence([1] * 9, remote=REMOTE)
    engine.add(remote)
    step(engine)
    remote.remote = None
    engine.loaded(remote, 0)
    assert counts(step(engine)) == [9]


def test_what_is_taken_out_leaves_no_block_behind() -> None:
    engine = scheduler()
    states: list[State] = []
    for one in (sequence([1] * 9), sequence([2] * 9, remote=REMOTE), sequence([3] * 9)):
        engine.add(one)
        if len(states) < 2:
            step(engine)
        states.append(one.state)
        engine.pool.release(engine.remove(one))
    assert states == [State.RUNNING, State.LOADING, State.WAITING]
    assert engine.pool.usage == 0
    assert engine.unfinished == []


def test_wrong_kv_cache_in_the_prefix_cache_spoils_who_finds_it() -> None:
    engine = scheduler()
    first = sequence(list(range(8)))
    engine.add(first)
    plan = engine.plan()
    first.taint = b"wrong"
    engine.advance(first, plan.work[0][1])
    second = sequence([*range(8), 9])
    engine.add(second)
    engine.plan()
    assert second.taint is not None
