"""Leases: KV cache is readable while it is held, and something else afterwards."""

from support.clock import FakeClock
from tandem_simulator.engine.exports import Exports
from tandem_simulator.engine.oracle import BlockDigester

IDS = list(range(10))
BLOCKS = [7, 8, 9]


def held(clock: FakeClock, *, taint: bytes | None = None) -> Exports:
    exports = Exports("engine", block_size=4, lease=30, clock=clock.monotonic)
    exports.hold("request", blocks=BLOCKS, ids=IDS, taint=taint)
    return exports


def digests(ids: list[int]) -> list[bytes]:
    digester = BlockDigester(4)
    digester.push(ids)
    return digester.all()


def test_a_peer_reads_the_content_of_the_blocks() -> None:
    assert held(FakeClock()).read("request", BLOCKS, 10) == digests(IDS)


def test_a_peer_can_read_the_tail_alone() -> None:
    assert held(FakeClock()).read("request", BLOCKS[1:], 10) == digests(IDS)[1:]


def test_a_peer_with_a_shorter_prompt_reads_its_part_of_the_last_block() -> None:
    assert held(FakeClock()).read("request", BLOCKS, 9) == digests(IDS[:9])


def test_a_released_export_reads_as_something_else() -> None:
    exports = held(FakeClock())
    assert exports.release("request") == tuple(BLOCKS)
    again = exports.read("request", BLOCKS, 10)
    assert len(again) == len(BLOCKS)
    assert not set(again) & set(digests(IDS))
    assert exports.release("request") is None


def test_blocks_of_another_request_read_as_something_else() -> None:
    exports = held(FakeClock())
    exports.hold("other", blocks=[1, 2, 3], ids=IDS, taint=None)
    assert exports.read("request", [1, 2, 3], 10) != digests(IDS)


def test_a_wrong_kv_cache_is_handed_on_as_wrong() -> None:
    assert held(FakeClock(), taint=b"wrong").read("request", BLOCKS, 10) != digests(IDS)


def test_a_lease_runs_out() -> None:
    clock = FakeClock()
    exports = held(clock)
    clock.now += 29
    assert exports.expire() == []
    clock.now += 1
    assert exports.expire() == [tuple(BLOCKS)]
    assert len(exports) == 0


def test_a_heartbeat_adds_two_thirds_of_a_lease_from_now_and_never_shortens_it() -> None:
    clock = FakeClock()
    exports = held(clock)
    exports.extend(["request", "unknown"])
    clock.now += 29
    exports.extend(["request"])
    clock.now += 19
    assert exports.expire() == []
    clock.now += 1
    assert len(exports.expire()) == 1


def test_all_leases_can_be_ended_at_once() -> None:
    assert held(FakeClock()).expire(everything=True) == [tuple(BLOCKS)]
