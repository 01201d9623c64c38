"""The two engines as programs: how each is run, and what it brings along or stands in for."""

from dataclasses import dataclass

__all__ = ["ENGINES", "Engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How one engine is run; the argument line of both is vLLM's."""

    name: str
    module: str
    """Run as `python3 -m module`."""
    computes: bool
    """Loads weights and needs devices and their memory; the simulator stands in for them."""


ENGINES = {
    "vllm": Engine(name="vLLM", module="vllm.entrypoints.openai.api_server", computes=True),
    "simulator": Engine(name="simulator", module="tandem_simulator", computes=False),
}
