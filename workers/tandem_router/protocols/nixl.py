"""vLLM's NixlConnector, pull mode: prefill answers with a reference to its KV blocks, decode pulls them.

The reference is single-use. A consumed or stale one can yield garbage or another request's answer with HTTP 200, so it
is handed over as an object that gives its content away once.
"""

from collections.abc import Mapping
from typing import Any

from tandem_api.nixl import ASK_TO_EXPORT
from tandem_router.errors import EngineFailure, Kind
from tandem_router.requests.call import Call
from tandem_router.requests.members import write

__all__ = ["Handover", "decode_body", "local_body", "parameters", "prefill_body"]

_ONE_TOKEN = {"stream": False, "max_tokens": 1, "min_tokens": 1, "kv_transfer_params": ASK_TO_EXPORT}
_NO_PREFILL = frozenset({"stream_options", "return_token_ids", "logprobs", "top_logprobs"})


class Handover:
    """KV parameters of one prefill leg."""

    __slots__ = ("_parameters", "cached")

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters: Mapping[str, Any] | None = parameters
        cached = parameters.get("remote_prefill_cached_tokens")
        self.cached = cached if isinstance(cached, int) and cached >= 0 else None

    @property
    def offered(self) -> int | None:
        """How many tokens' KV the prefill worker offers; None where it does not say, or the parameters are taken."""
        tokens = (self._parameters or {}).get("remote_num_tokens")
        return tokens if isinstance(tokens, int) else None

    @property
    def unused(self) -> bool:
        """No engine may have seen the parameters yet."""
        return self._parameters is not None

    def take(self) -> Mapping[str, Any]:
        """Return the parameters, once.

        Raises:
            ValueError: they were taken before; the caller must make a new attempt.
        """
        parameters, self._parameters = self._parameters, None
        if parameters is None:
            raise ValueError("KV parameters are single-use and were used already")
        return parameters


def prefill_body(call: Call) -> bytes:
    """Body of the prefill leg: the client's, for exactly one token and with its blocks kept for a peer."""
    own = _ONE_TOKEN if "max_completion_tokens" not in call.members else {**_ONE_TOKEN, "max_completion_tokens": 1}
    return write(call.members, own, without=_NO_PREFILL)


def decode_body(call: Call, parameters: Mapping[str, Any]) -> bytes:
    """Body of the decode leg: the client's, with the prefill worker's parameters untouched."""
    return write(call.members, {**_asking(call), "kv_transfer_params": parameters})


def local_body(call: Call) -> bytes:
    """Body for a worker that computes the prompt itself."""
    return write(call.members, _asking(call))


def parameters(answer: Mapping[str, Any]) -> Handover:
    """Find the KV parameters in a prefill worker's answer.

    Raises:
        EngineFailure: there are none that a decode worker could pull from; decode would compute the prompt again unseen.
    """
    found = answer.get("kv_transfer_params")
    if not isinstance(found, dict) or found.get("do_remote_prefill") is not True:
        raise EngineFailure(Kind.NO_PARAMETERS, "the prefill worker returned no KV parameters")
    return Handover(found)


def _asking(call: Call) -> dict[str, Any]:
    """What the router itself needs of a stream."""
    own: dict[str, Any] = {}
    if call.stream:
        options = call.body.get("stream_options") or {}
        own["stream_options"] = {**options, "include_usage": True}
        if not call.wants_usage and "continuous_usage_stats" in options:
            # Without the router's own question it would have had no effect.
            own["stream_options"]["continuous_usage_stats"] = False
    if call.keeps_ids:
        own["return_token_ids"] = True
    return own
