"""What the scaler remembers comes back as it was."""

from support.feed import Load, Router
from support.served import served
from tandem_api.names import Role
from tandem_operator.cluster.packing import Packed
from tandem_operator.policies.scaling.decision import History
from tandem_operator.policies.scaling.learning import Learned
from tandem_operator.policies.scaling.signals import Reading
from tandem_operator.reconcile.scaling_memory import ScalingMemory, ServiceScaling

KEY = ("team", "chat")


def reading(time: float, router: Router) -> Reading:
    return Reading(time=time, routers=(router.measure(Load(requests=50), now=time, routable={Role.DECODE: 1}),))


def test_a_service_that_was_never_read_or_is_gone_has_nothing() -> None:
    memory = ScalingMemory()
    memory.set(KEY, ServiceScaling(history=History(readings=(reading(1, Router()),))))
    memory.forget(KEY)
    assert memory.get(KEY) == memory.get(("team", "other")) == ServiceScaling()


def test_what_is_remembered_comes_back_in_order_and_only_what_was_remembered_last() -> None:
    memory, router = ScalingMemory(), Router()
    first, second, third = (reading(time, router) for time in (1, 16, 31))
    memory.set(KEY, ServiceScaling(history=History(readings=(first, second))))
    assert memory.get(KEY).history.readings == (first, second)
    memory.set(KEY, ServiceScaling(history=History(readings=(second, third))))
    assert memory.get(KEY).history.readings == (second, third)


def test_the_sample_comes_back_as_it_was() -> None:
    memory = ScalingMemory()
    learned = Learned(rows=tuple(served(arrived=number / 3).asked for number in range(5)), until=7.0)
    memory.set(KEY, ServiceScaling(history=History(learned=learned)))
    assert memory.get(KEY).history.learned == learned


def test_a_packed_value_is_not_changed_by_what_is_done_to_it_afterwards() -> None:
    tree = {"spec": {"replicas": 1}}
    packed = Packed(tree)
    tree["spec"]["replicas"] = 2
    packed.unpack()["spec"]["replicas"] = 3
    assert packed.unpack() == {"spec": {"replicas": 1}}
