"""A thousand streams at once while decode workers are killed: `make test-faults`.

`FAULT_STREAMS` sets another number, `FAULT_SEED` repeats a run.
"""

import os
import secrets

import pytest

from support.losses import lose_decode_workers

STREAMS = int(os.environ.get("FAULT_STREAMS", "1000"))
SEED = int(os.environ.get("FAULT_SEED") or secrets.randbelow(10**6))


@pytest.mark.timeout(900)
async def test_no_stream_of_a_thousand_is_lost_or_changed():
    print(f"seed {SEED}, {STREAMS} streams")  # noqa: T201 - with it a failure can be repeated
    outcome = await lose_decode_workers(streams=STREAMS, seed=SEED)
    assert outcome.wrong == []
    assert outcome.kills > 1
    assert outcome.signals["continuations"].keys() == {"continued"}
    assert (outcome.signals["completed"], outcome.signals["failed"]) == (STREAMS, 0)
