"""Whether KV cache moves, as the condition tells it: a dead pair is named with both pods, whatever the other requests do."""

from tandem_api.wire import PairHealth, RouterSignals
from tandem_operator.policies.scaling.signals import Reading, Window, window
from tandem_operator.policies.transfer_health import transfer_condition

_PAIR = PairHealth(prefill="chat-p-1", decode="chat-d-2", reason="recomputed", seconds=4.0, left_out=True)


def _router(name: str, *pairs: PairHealth) -> RouterSignals:
    return RouterSignals(router=name, started=0.0, now=10.0, dead_pairs=pairs)


def _window(*routers: RouterSignals) -> Window:
    return window([Reading(time=10.0, routers=routers)])


def test_a_dead_pair_is_named_with_both_pods_and_how_it_fails() -> None:
    found = transfer_condition(_window(_router("r0"), _router("r1", _PAIR)), None)
    assert (found.status, found.reason) == ("False", "PairFailing")
    assert "from 'chat-p-1' to 'chat-d-2' (recomputed)" in found.message
    assert "Requests take other pairs" in found.message


def test_a_pair_that_several_routers_report_is_named_once_and_a_few_are_enough() -> None:
    others = [_PAIR.model_copy(update={"prefill": f"p{number}"}) for number in range(5)]
    message = transfer_condition(_window(_router("r0", _PAIR, *others), _router("r1", _PAIR)), None).message
    assert message.count("'chat-p-1'") == 1
    assert "and 2 more" in message


def test_a_pair_without_another_is_said_to_be_the_only_one() -> None:
    alone = _PAIR.model_copy(update={"left_out": False})
    assert "There is no other pair" in transfer_condition(_window(_router("r0", alone)), None).message


_OTHER = PairHealth(
    prefill="chat-p-1",
    decode="chat-d-3",
    reason="fingerprint",
    seconds=1.0,
    left_out=True,
    differs={"engine_version": ("0.33.0", "0.32.0"), "dtype": ("float16", "bfloat16")},
)


def test_engines_that_differ_have_their_own_reason_and_both_pods_and_both_values_are_named() -> None:
    found = transfer_condition(_window(_router("r0", _OTHER)), None)
    assert (found.status, found.reason) == ("False", "FingerprintMismatch")
    assert "'chat-p-1' and 'chat-d-3'" in found.message
    assert "dtype is 'float16' and 'bfloat16', engine_version is '0.33.0' and '0.32.0'" in found.message


def test_a_failing_pair_is_not_forgotten_beside_one_that_differs() -> None:
    found = transfer_condition(_window(_router("r0", _PAIR, _OTHER)), None)
    assert found.reason == "FingerprintMismatch"
    assert "from 'chat-p-1' to 'chat-d-2' (recomputed)" in found.message


def test_canaries_alone_show_that_kv_cache_moves_and_that_a_dead_pair_is_mended() -> None:
    dead = transfer_condition(_window(_router("r0", _PAIR)), None)
    proven = RouterSignals(router="r0", started=0.0, now=10.0, proven_pairs=2)
    for previous in (None, dead):
        found = transfer_condition(_window(proven), previous)
        assert (found.status, found.reason) == ("True", "Transferring")
    assert transfer_condition(_window(_router("r0")), dead) == dead
