"""The engine's loop: plan a step, let its time pass, hand out tokens. KV transfer is beside it, in Producer and Consumer."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from random import Random

from tandem_simulator.engine.config import EngineConfig
from tandem_simulator.engine.consuming import Consumer
from tandem_simulator.engine.faults import Fault, Faults
from tandem_simulator.engine.metrics import LoadReading, Metrics
from tandem_simulator.engine.oracle import Oracle
from tandem_simulator.engine.producing import Producer
from tandem_simulator.engine.records import record_finish, record_lookup, record_token
from tandem_simulator.engine.scheduler import Plan, Scheduler
from tandem_simulator.engine.sequences import Delta, Finish, RemoteBlocks, Sequence, State
from tandem_simulator.engine.tokens import EOS

__all__ = ["EngineCore"]

_LEASE_POLL = 0.05
_STALL_POLL = 0.02


class EngineCore:
    """One engine's work.

    Args:
        config: The engine's settings.
        scheduler: Decides each step.
        metrics: Told about everything.
        faults: Asked at the points where something can go wrong.
        random: Noise of the step times.
        clock: Seconds, monotonic.
        sleep: Lets time pass.
    """

    def __init__(
        self,
        config: EngineConfig,
        scheduler: Scheduler,
        *,
        metrics: Metrics,
        faults: Faults,
        random: Random,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config = config
        self._scheduler = scheduler
        self._metrics = metrics
        self._faults = faults
        self._random = random
        self._clock = clock
        self._sleep = sleep
        self._work = asyncio.Event()
        self._due = 0.0
        self.producer: Producer | None = None
        self._consumer: Consumer | None = None
        if (transfer := config.kv_transfer) is not None:
            self.producer = Producer(transfer, config, pool=scheduler.pool, metrics=metrics, clock=clock, freed=self._work.set)
            self._consumer = Consumer(
                transfer,
                config,
                metrics=metrics,
                sleep=sleep,
                deaf=lambda peer: faults.hits(Fault.KV_DEAF, peer, clock()),
                loaded=self._loaded,
                failed=self._failed,
            )

    @property
    def idle(self) -> bool:
        """No sequence is unfinished and no KV cache waits for a peer."""
        return not self._scheduler.unfinished and not (self.producer and self.producer.holding)

    def load(self) -> LoadReading:
        """What the gauges show now."""
        scheduler = self._scheduler
        return LoadReading(
            running=len(scheduler.running),
            capacity=len(scheduler.waiting),
            loading=len(scheduler.loading),
            kv_usage=scheduler.pool.usage,
        )

    def submit(self, sequence: Sequence) -> None:
        """Queue a sequence; its deltas come through its sink."""
        self._scheduler.add(sequence)
        if sequence.remote is not None and self._consumer is not None:
            self._consumer.expect(sequence, sequence.remote)
        self._work.set()

    def abort(self, sequence: Sequence) -> None:
        """End a sequence that nobody wants any more; nothing when it has ended."""
        if sequence.state is not State.FINISHED:
            self._finish(sequence, Delta(sequence.index, finish=Finish.ABORT))

    def reject(self, remote: RemoteBlocks) -> None:
        """A request was refused before it was queued: its KV cache must not stay on the peer."""
        if self._consumer is not None:
            self._consumer.drop(remote)

    async def run(self) -> None:
        """Step until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                if self.producer is not None:
                    watch = group.create_task(self._watch_leases(self.producer))
                    watch.set_name("leases")
                while True:
                    await self._step()
        finally:
            if self._consumer is not None:
                await self._consumer.close()

    async def _step(self) -> None:
        while self._faults.on(Fault.STALL, self._clock()):
            await self._sleep(_STALL_POLL)
        plan = self._scheduler.plan()
        self._note(plan)
        if not plan.work:
            await self._idle()
            return
        await self._pass_time(plan)
        for sequence, count in plan.work:
            # Its client may have left while the time passed.
            if sequence.state is State.RUNNING and self._scheduler.advance(sequence, count):
                self._emit(sequence)
        self._metrics.observe_step(sum(count for _, count in plan.work))

    def _note(self, plan: Plan) -> None:
        for sequence in plan.looked_up:
            record_lookup(self._metrics, sequence, connected=self.producer is not None)
        for sequence in plan.loading:
            if sequence.remote is not None and self._consumer is not None:
                self._consumer.load(sequence, sequence.remote)
        for _ in plan.preempted:
            self._metrics.observe_preemption()
        now = self._clock()
        for sequence, _ in plan.work:
            if sequence.scheduled_at is None:
                sequence.scheduled_at = now

    async def _idle(self) -> None:
        self._work.clear()
        await self._work.wait()

    async def _pass_time(self, plan: Plan) -> None:
        # Due times add up without the timer's own delay, so that short steps do not run slow.
        now = self._clock()
        behind = now - self._due
        start = self._due if behind < _LEASE_POLL else now
        self._due = start + self._config.timing.step(plan.load(), self._random)
        await self._sleep(max(0.0, self._due - now))

    def _emit(self, sequence: Sequence) -> None:
        sampling = sequence.sampling
        may_end = not sampling.ignore_eos and len(sequence.output) >= sampling.min_tokens
        token = self._oracle(sequence).next(may_end=may_end)
        sequence.output.append(token)
        sequence.digester.push((token,))
        record_token(self._metrics, sequence, self._clock())
        by_id = token in sampling.stop_token_ids and len(sequence.output) > sampling.min_tokens
        stopped = by_id or (token == EOS and may_end)
        stop_string = sequence.detokenizer.push(token, silent=stopped and not sampling.include_stop)
        finish = self._finish_reason(sequence, stopped=stopped or stop_string is not None)
        delta = Delta(
            sequence.index,
            token_ids=(token,),
            text=sequence.detokenizer.take(finished=finish is not None),
            finish=finish,
            stop_reason=token if by_id else stop_string,
            cached_tokens=sequence.reported_cached,
        )
        if finish is None:
            sequence.sink.put_nowait(delta)
        else:
            self._finish(sequence, delta)

    def _oracle(self, sequence: Sequence) -> Oracle:
        if sequence.oracle is None:
            sequence.oracle = Oracle([*sequence.prompt, *sequence.output], sequence.taint, self._config.mean_output_tokens)
        return sequence.oracle

    def _finish_reason(self, sequence: Sequence, *, stopped: bool) -> Finish | None:
        if stopped:
            return Finish.STOP
        if len(sequence.output) >= sequence.sampling.max_tokens or sequence.known >= self._config.max_model_len:
            return Finish.LENGTH
        return None

    def _finish(self, sequence: Sequence, delta: Delta) -> None:
        remote, load = sequence.remote, sequence.load
        blocks = self._scheduler.remove(sequence)
        if self.producer is not None and sequence.export and delta.finish in (Finish.STOP, Finish.LENGTH):
            delta = dataclasses.replace(delta, kv_transfer_params=self.producer.hold(sequence, blocks))
        else:
            self._scheduler.pool.release(blocks)
        if load is not None:
            load.cancel()
        if remote is not None:
            self.reject(remote)
        if delta.finish is not None:
            record_finish(self._metrics, sequence, delta.finish, self._clock())
        sequence.sink.put_nowait(delta)
        self._work.set()

    def _loaded(self, sequence: Sequence, computed: int) -> None:
        self._scheduler.loaded(sequence, computed)
        self._work.set()

    def _failed(self, sequence: Sequence) -> None:
        self._finish(sequence, Delta(sequence.index, finish=Finish.ERROR))

    async def _watch_leases(self, producer: Producer) -> None:
        while True:
            await self._sleep(_LEASE_POLL)
            producer.expire()
