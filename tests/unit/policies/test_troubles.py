"""What keeps a pod from being ready, in words that say what to do."""

from tandem_operator.policies.observation import ContainerState, PodState
from tandem_operator.policies.reasons import Reason
from tandem_operator.policies.troubles import troubles


def test_volumes_that_cannot_be_mounted_are_named_with_what_to_do() -> None:
    said = 'MountVolume.SetUp failed for volume "tandem-hf-token" : secret "hf-token" not found'
    engine = ContainerState(name="engine", waiting_reason="PodInitializing")
    (found,) = troubles([PodState(name="p-1", ready=False, unmounted=said, containers=(engine,))])
    assert found.reason is Reason.POD_FAILING
    hint = "check the path in `model.uri`, and create the Secret or volume that it names"
    assert found.message == f"pod 'p-1': its volumes cannot be mounted: {said}; {hint}"
