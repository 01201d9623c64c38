"""Whether the model fits: attention heads over ranks, parallelism over GPUs, weights and a minimal KV cache over memory.

Every figure is a lower bound (no activations, no graphs), so a refusal is certain; what passes may still be too big for
the engine's own, exact check. Pure, but for `host_memory`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tandem_launcher.arguments import read_tokens
from tandem_launcher.failures import Failure, Reason
from tandem_launcher.models import Model

__all__ = ["Device", "Layout", "check_devices", "check_dtype", "check_heads", "check_layout", "check_memory", "host_memory"]

_GIB = 2**30
_GPU_SHARE = 0.9
"""vLLM's default of --gpu-memory-utilization."""
_BFLOAT16_CAPABILITY = (8, 0)
_SPREADS_WEIGHTS = ("enable-expert-parallel", "data-parallel-size", "cpu-offload-gb", "load-format")
"""Flags with which a rank holds another share of the weights than one in tensor x pipeline."""
_DTYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a worker is spread over devices."""

    gpus: int
    """0: the engine computes on the CPU."""
    tensor: int = 1
    pipeline: int = 1

    @property
    def ranks(self) -> int:
        """Processes that each hold a share of the model."""
        return self.tensor * self.pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU as torch sees it."""

    name: str
    capability: tuple[int, int]
    memory: int
    """Bytes in all."""


def check_layout(layout: Layout) -> None:
    """Raise `Failure` if the parallelism needs more GPUs than the container asks for."""
    if 0 < layout.gpus < layout.ranks:
        raise Failure(
            Reason.TOO_FEW_DEVICES,
            f"tensor {layout.tensor} x pipeline {layout.pipeline} needs {layout.ranks} GPUs but the container asks for"
            f" {layout.gpus}: raise resources.gpus or lower parallelism",
        )


def check_devices(layout: Layout, devices: tuple[Device, ...]) -> None:
    """Raise `Failure` if torch sees fewer GPUs than the container asks for."""
    if len(devices) < layout.gpus:
        raise Failure(
            Reason.TOO_FEW_DEVICES,
            f"{layout.gpus} GPUs are asked for but torch sees {len(devices)}: check the node's driver and device plugin,"
            " and that the image's torch is built for this GPU",
        )


def check_dtype(dtype: str, devices: tuple[Device, ...]) -> None:
    """Raise `Failure` for a dtype that does not exist or that a device cannot compute in; `auto` is the engine's choice."""
    if dtype not in _DTYPES:
        raise Failure(Reason.UNSUPPORTED_DTYPE, f"there is no dtype '{dtype}': use one of {', '.join(_DTYPES)}")
    for device in devices:
        if dtype == "bfloat16" and device.capability < _BFLOAT16_CAPABILITY:
            major, minor = device.capability
            raise Failure(
                Reason.UNSUPPORTED_DTYPE,
                f"{device.name} (compute capability {major}.{minor}) cannot compute in bfloat16, which needs 8.0:"
                " set engine.dtype to float16",
            )


def check_heads(model: Model, layout: Layout) -> None:
    """Raise `Failure` if the attention heads cannot be split evenly over the tensor-parallel ranks."""
    if model.heads is not None and model.heads % layout.tensor:
        fitting = ", ".join(str(size) for size in range(1, model.heads + 1) if model.heads % size == 0)
        raise Failure(
            Reason.INDIVISIBLE_HEADS,
            f"the model's {model.heads} attention heads cannot be divided by parallelism.tensor {layout.tensor}:"
            f" use one of {fitting}",
        )


def check_memory(model: Model, *, layout: Layout, flags: Mapping[str, str], devices: tuple[Device, ...], host: int) -> None:
    """Raise `Failure` if weights and the KV cache of one longest request exceed device memory, or `host` bytes on a CPU."""
    if model.weights is None or any(flag in flags for flag in _SPREADS_WEIGHTS):
        return
    tokens = read_tokens(flags, "max-model-len") or (model.context if "max-model-len" not in flags else None) or 0
    cache = model.cache_bytes(tokens, flags.get("kv-cache-dtype", "auto")) or 0
    if layout.gpus:
        share = _share(flags.get("gpu-memory-utilization", ""))
        room = int(min(device.memory for device in devices[: layout.gpus]) * share)
        parts, where, remedy = layout.ranks, f"of each GPU ({share:.0%} of it)", "use more GPUs (parallelism) or bigger ones"
    else:
        room, parts, where, remedy = host, 1, "of memory in this container", "raise resources.memory"
    if (model.weights + cache) / parts > room:
        raise Failure(
            Reason.TOO_LITTLE_MEMORY,
            f"weights take {_gib(model.weights / parts)} and the KV cache of one request of {tokens} tokens"
            f" {_gib(cache / parts)}, more than the {_gib(room)} {where}: {remedy}, or lower engine.maxModelLen",
        )


def _share(text: str) -> float:
    # Text that is no share is refused by the engine's own parser.
    return float(text) if re.fullmatch(r"0?\.[0-9]+|1(\.0+)?", text) else _GPU_SHARE


def _gib(size: float) -> str:
    return f"{size / _GIB:.1f} GiB"


def host_memory(root: Path = Path("/")) -> int:
    """Return the bytes that this container may use: its cgroup's limit, else the machine's memory."""
    for limit in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        path = root / limit
        text = path.read_text(encoding="ascii").strip() if path.is_file() else ""
        if text.isdecimal():
            return min(int(text), _machine_memory(root))
    return _machine_memory(root)


def _machine_memory(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise Failure(Reason.TOO_LITTLE_MEMORY, "/proc/meminfo names no MemTotal: the container's /proc is not Linux's")
