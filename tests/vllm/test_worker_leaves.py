"""A prefill worker that is told to go stays until its KV cache was pulled, and the service comes back by itself.

Runs last by its file's name: it costs a new start of an engine.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.deployed import get, wait_for
from support.real_engines import CHAT, Pair, Reply, salted, send
from tandem_api.names import Role
from tandem_local.cluster import kubectl_program

_START_SECONDS = 400
_FACTS = " ".join(f"Box {n} holds {n * 3} apples and stands in room {n % 4}." for n in range(12))
_QUESTION = {"messages": [{"role": "user", "content": f"{_FACTS} How many apples are in box 2?"}]}
_EXPORT = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


def _body(pair: Pair, **more: Any) -> dict[str, Any]:
    return {"model": pair.model, "temperature": 0, "max_tokens": 8, **_QUESTION, **more}


def _export(pair: Pair) -> dict[str, Any]:
    """Let the prefill engine compute the prompt; return the reference to the KV cache that it holds for a reader."""
    answer = pair.alone(Role.PREFILL, CHAT, _body(pair, max_tokens=1, kv_transfer_params=_EXPORT))
    reference: dict[str, Any] = answer.json["kv_transfer_params"]
    return reference


@contextmanager
def _sidecar_log(pair: Pair, pod: str) -> Iterator["subprocess.Popen[str]"]:
    """Follow the log of a pod's sidecar, which ends with the pod."""
    command = [kubectl_program(), "--kubeconfig", str(pair.cluster.kubeconfig), "-n", pair.namespace]
    with subprocess.Popen([*command, "logs", "-f", pod, "-c", "kv-transfer"], stdout=subprocess.PIPE, text=True) as following:
        try:
            yield following
        finally:
            following.kill()


def _holds(pair: Pair, pod: str) -> bool:
    state = pair.sidecar(pod)
    return state.draining and state.engine_ready and bool(state.kv_usage)


def _pull(pair: Pair, reference: dict[str, Any]) -> Reply:
    return pair.alone(Role.DECODE, CHAT, salted(_body(pair, kv_transfer_params=reference)))


def test_a_deleted_prefill_worker_waits_for_its_reader_and_is_replaced(pair: Pair) -> None:
    alone = pair.alone(Role.DECODE, CHAT, salted(_body(pair)))
    tokens = pair.counted(Role.DECODE)[1].external_tokens or 0
    pod = pair.pod(Role.PREFILL)["metadata"]["name"]
    with _sidecar_log(pair, pod) as following:
        reference = _export(pair)
        pair.cluster.kubectl("-n", pair.namespace, "delete", "pod", pod, "--wait=false")
        wait_for(lambda: _holds(pair, pod), what="the worker drains and holds its KV", seconds=20)

        pulled = _pull(pair, reference)

        assert pulled.text == alone.text
        wait_for(
            lambda: (pair.counted(Role.DECODE)[1].external_tokens or 0) > tokens, what="the decode engine counts what it pulled"
        )
        wait_for(lambda: not get(pair.cluster, pair.namespace, "pod", pod), what="the pod is gone", seconds=120)
        log, _ = following.communicate(timeout=30)
    assert "Drain ended (drained)" in log
    _answers_by_the_policy(pair)
    _comes_back(pair)


def _answers_by_the_policy(pair: Pair) -> None:
    """Without a prefill worker a request waits for a moment, then is asked to come again; it never hangs."""
    answer = send(pair.router, CHAT, salted(_body(pair)))

    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json["error"]["code"] == "no_capacity"


def _comes_back(pair: Pair) -> None:
    wait_for(
        lambda: Role.PREFILL in pair.signals().roles,
        what="the router has a prefill worker again",
        seconds=_START_SECONDS,
    )

    answer = send(pair.router, CHAT, salted(_body(pair)))

    assert answer.text
    assert answer.headers["x-tandem-prefill"] == pair.pod(Role.PREFILL)["metadata"]["name"]
