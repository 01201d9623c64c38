"""The layout of the simulator's memory: requests, workers and the fleet as records of arrays, without an object in them.

Numbers of requests and slots of workers are all of one width: the core is compiled anew for each other one.
Only numbers live here. What they mean in terms of a service is in `engines` (figures) and `loads` (requests).
"""

import numpy as np
from numpy.typing import NDArray

from tandem_api.wire import LATENCY_BOUNDS

__all__ = [
    "AWAY",
    "BOUNDS",
    "DECODE",
    "DECODE_FIRST",
    "DONE",
    "DRAINING",
    "END",
    "FLEET",
    "FREE",
    "HANDOVER",
    "HISTOGRAMS",
    "NOBODY",
    "PREFILL",
    "QUEUED",
    "RATIO",
    "READY",
    "REFUSED",
    "REQUEST",
    "STAGE_PREFILL",
    "STARTING",
    "TPOT",
    "TTFT",
    "WAIT",
    "WORKER",
    "Array",
]

Array = NDArray[np.generic]
BOUNDS = np.array(LATENCY_BOUNDS)

NOBODY = -1
"""No request, no worker."""

PREFILL, DECODE = 0, 1
"""Roles. In an aggregated fleet there are only decode workers, and they compute prompts too."""
FREE, STARTING, READY, DRAINING = 0, 1, 2, 3
"""States of a worker's slot."""
QUEUED, DONE, REFUSED = 0, 1, 2
"""States of a request."""
TTFT, RATIO, TPOT, WAIT, STAGE_PREFILL, HANDOVER, DECODE_FIRST, AWAY = range(8)
"""Rows of the histograms; refused requests are in `AWAY` + role."""
HISTOGRAMS = AWAY + 2

REQUEST = np.dtype(
    [
        ("arrival", "f8"),
        ("sent", "f8"),  # from the router to its prefill worker
        ("prefilled", "f8"),  # its prompt was computed
        ("handed", "f8"),  # its KV cache is on the decode worker
        ("first", "f8"),  # its first token came
        ("ended", "f8"),
        ("compute", "f8"),  # seconds that the engine computed its prompt
        ("noise", "f8"),
        ("area_batch", "f8"),  # the decode worker's areas when it was handed over; their means over its stay once it ended
        ("area_kv", "f8"),
        ("prompt", "i4"),
        ("uncached", "i4"),
        ("output", "i4"),
        ("ahead", "i4"),  # prompt tokens pending on its prefill worker when it was sent
        ("worker", "i8"),  # its decode worker
        ("next", "i8"),  # the one behind it in its queue
        ("state", "i4"),
    ]
)
WORKER = np.dtype(
    [
        ("created", "f8"),
        ("event", "f8"),  # when something happens here next
        ("slowness", "f8"),
        ("pending", "i8"),  # prompt tokens sent here and not computed
        ("role", "i4"),
        ("state", "i4"),
        ("head", "i8"),  # first and last of the requests that wait here: for computing, on a decode worker for room
        ("tail", "i8"),
        ("waiting", "i4"),
        ("current", "i8"),  # whose prompt is being computed
        ("flight", "i4"),  # requests sent here that have not left
        ("changes", "i4"),  # of its batch: its place in the table of steps' chance
        ("passed", "f8"),  # decode steps so far
        ("since", "f8"),  # up to when they were counted
        ("step", "f8"),
        ("kv", "f8"),  # tokens of context of the batch
        ("reserved", "i8"),  # tokens for which it keeps room
        ("batch", "i4"),
        ("area_batch", "f8"),  # batch and context summed over time
        ("area_kv", "f8"),
        ("prompt_at", "f8"),  # aggregated: the step at which the current prompt is computed, and seconds of it a step
        ("prompt_share", "f8"),
    ]
)
FLEET = np.dtype(
    [
        ("now", "f8"),
        ("horizon", "f8"),
        ("cursor", "i8"),  # arrivals so far
        ("transfers", "i8"),
        ("head", "i8"),  # requests that wait in the router
        ("tail", "i8"),
        ("queued", "i8"),
        ("slots", "i4"),  # slots of workers that were ever used
        ("created", "i4", (2,)),
        ("desired", "i4", (2,)),
        ("worker_seconds", "f8", (2,)),
        ("completed", "i8"),
        ("refused", "i8"),
        ("slo_met", "i8"),
        ("ttft_met", "i8"),
        ("tpot_met", "i8"),
        ("offered_tokens", "i8"),  # prompt tokens of all that came; the next ones of those that were answered
        ("prompt_tokens", "i8"),
        ("uncached_tokens", "i8"),
        ("output_tokens", "i8"),
    ]
)
END = np.dtype([("at", "f8"), ("request", "i8")])
"""An entry of a heap: when, and which request."""
