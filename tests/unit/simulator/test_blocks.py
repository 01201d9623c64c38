"""KV memory: usage shows what is referenced; what is not stays cached until its place is needed."""

import pytest

from tandem_simulator.engine.blocks import BlockPool

A, B, C = ("", b"a"), ("", b"b"), ("", b"c")


def pool(total: int = 4, *, caching: bool = True) -> BlockPool:
    return BlockPool(total=total, block_size=16, caching=caching)


def fill(blocks: BlockPool, *keys: tuple[str, bytes]) -> list[int]:
    taken = blocks.allocate(len(keys))
    assert taken is not None
    for block, key in zip(taken, keys, strict=True):
        blocks.publish(block, key, None)
    return taken


@pytest.mark.parametrize(("token_count", "blocks"), [(0, 0), (1, 1), (16, 1), (17, 2)])
def test_a_block_is_needed_for_each_begun_one(token_count: int, blocks: int) -> None:
    assert pool().blocks_for(token_count) == blocks


def test_released_blocks_are_free_and_still_found() -> None:
    memory = pool()
    taken = fill(memory, A, B)
    assert memory.usage == 0.5
    memory.release(taken)
    assert memory.usage == 0
    assert memory.match([A, B, C]) == taken


def test_a_match_ends_at_the_first_block_that_is_missing() -> None:
    memory = pool()
    taken = fill(memory, A, C)
    assert memory.match([A, B, C]) == taken[:1]


def test_the_least_recently_used_tail_goes_first() -> None:
    memory = pool(total=3)
    memory.release(fill(memory, A, B))
    assert memory.allocate(2) is not None
    assert len(memory.match([A, B])) == 1


def test_a_shared_block_is_not_evicted() -> None:
    memory = pool(total=2)
    first = fill(memory, A)
    memory.release(first)
    memory.share(memory.match([A]))
    assert memory.allocate(2) is None
    assert memory.allocate(1) is not None
    assert memory.match([A]) == first


def test_too_many_blocks_are_not_given_at_all() -> None:
    memory = pool(total=2)
    assert memory.allocate(3) is None
    assert memory.free == 2


def test_without_prefix_caching_nothing_is_found() -> None:
    memory = pool(caching=False)
    fill(memory, A)
    assert memory.match([A]) == []


def test_salts_keep_equal_prompts_apart() -> None:
    memory = pool()
    fill(memory, ("mine", b"a"))
    assert memory.match([("yours", b"a")]) == []


def test_wrong_content_stays_wrong_until_its_block_is_used_for_something_else() -> None:
    memory = pool(total=1)
    taken = memory.allocate(1)
    assert taken is not None
    memory.publish(taken[0], A, b"wrong")
    memory.release(taken)
    assert memory.taint(taken[0]) == b"wrong"
    memory.allocate(1)
    assert memory.taint(taken[0]) is None
