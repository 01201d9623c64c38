"""The environment in which vLLM runs without a GPU: its CPU build beside torch's common build, with NIXL for KV transfer."""

from tandem_local.setup.environments import LockedEnvironment
from tandem_local.setup.places import Places

__all__ = ["vllm_environment"]


def vllm_environment(places: Places) -> LockedEnvironment:
    """Return the environment; requirements/vllm.in says how its lock came about, which is installed without resolving."""
    return LockedEnvironment(folder=places.vllm, lock=places.requirements / "vllm.txt", project=None, python="", log="vllm")
