"""A decode worker dies while all are nearly full: its streams go on, and the others are given no more than they can bear.

The time per token of a decode worker follows from how many requests share its steps, so that number is what is watched.
"""

import os
import secrets

from support.losses import CREDIT, lose_one_when_full

SEED = int(os.environ.get("FAULT_SEED") or secrets.randbelow(10**6))


async def test_the_streams_of_a_lost_worker_wait_for_room_on_the_others():
    print(f"seed {SEED}")  # noqa: T201 - with it a failure can be repeated
    outcome = await lose_one_when_full(seed=SEED)
    assert outcome.wrong == []
    assert outcome.signals["continuations"].keys() == {"continued"}
    # Room is promised for the moment at which the prompt will have been computed, so one may come a little early.
    assert 0 < outcome.most <= CREDIT + 1
