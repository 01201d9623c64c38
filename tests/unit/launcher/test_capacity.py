"""What cannot fit is refused with what to change; what might fit is left to the engine."""

from dataclasses import replace
from pathlib import Path

import pytest

from tandem_launcher.capacity import (
    Device,
    Layout,
    check_devices,
    check_dtype,
    check_heads,
    check_layout,
    check_memory,
    host_memory,
)
from tandem_launcher.failures import Failure
from tandem_launcher.models import Model

GIB = 2**30
H100 = Device(name="NVIDIA H100", capability=(9, 0), memory=80 * GIB)
T4 = Device(name="Tesla T4", capability=(7, 5), memory=16 * GIB)
BIG = Model(weights=140 * GIB, heads=64, dtype="bfloat16", context=131_072, cache_elements=2 * 80 * 8 * 128)


def test_more_parallel_ranks_than_gpus_are_refused() -> None:
    check_layout(Layout(gpus=4, tensor=2, pipeline=2))
    check_layout(Layout(gpus=0, tensor=2))
    with pytest.raises(Failure, match="tensor 4 x pipeline 2 needs 8 GPUs but the container asks for 4"):
        check_layout(Layout(gpus=4, tensor=4, pipeline=2))


def test_fewer_gpus_than_asked_for_are_refused() -> None:
    check_devices(Layout(gpus=1), (H100, H100))
    check_devices(Layout(gpus=0), ())
    with pytest.raises(Failure, match="2 GPUs are asked for but torch sees 1"):
        check_devices(Layout(gpus=2), (H100,))


@pytest.mark.parametrize("dtype", ["auto", "half", "float16", "float32"])
def test_dtypes_that_an_old_gpu_computes_in_pass(dtype: str) -> None:
    check_dtype(dtype, (T4,))


def test_a_dtype_that_the_device_lacks_or_nobody_knows_is_refused() -> None:
    check_dtype("bfloat16", (H100,))
    with pytest.raises(Failure, match=r"Tesla T4 \(compute capability 7\.5\) cannot compute in bfloat16"):
        check_dtype("bfloat16", (H100, T4))
    with pytest.raises(Failure, match="there is no dtype 'bf16': use one of auto,"):
        check_dtype("bf16", ())


def test_heads_that_cannot_be_divided_are_refused_with_the_sizes_that_can() -> None:
    check_heads(Model(), Layout(gpus=3, tensor=3))
    check_heads(replace(BIG, heads=9), Layout(gpus=3, tensor=3))
    with pytest.raises(Failure, match=r"9 attention heads cannot be divided by parallelism\.tensor 2: use one of 1, 3, 9"):
        check_heads(replace(BIG, heads=9), Layout(gpus=2, tensor=2))


def memory(model: Model, layout: Layout, host: int = 0, **flags: str) -> None:
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    check_memory(model, layout=layout, flags=named, devices=(H100,) * layout.gpus, host=host)


def test_a_model_that_fits_over_its_ranks_passes() -> None:
    memory(BIG, Layout(gpus=4, tensor=4))


def test_weights_and_the_cache_of_one_longest_request_must_fit_each_gpu() -> None:
    with pytest.raises(Failure, match=r"weights take 140\.0 GiB and the KV cache of one request of 131072 tokens 40\.0 GiB"):
        memory(BIG, Layout(gpus=1))
    with pytest.raises(Failure, match=r"more than the 72\.0 GiB of each GPU \(90% of it\): use more GPUs"):
        memory(BIG, Layout(gpus=2, tensor=2))
    memory(BIG, Layout(gpus=2, tensor=2), max_model_len="1k")


def test_a_smaller_share_of_the_gpu_leaves_less_room() -> None:
    small = replace(BIG, weights=50 * GIB)
    memory(small, Layout(gpus=1), max_model_len="8192")
    with pytest.raises(Failure, match="50% of it"):
        memory(small, Layout(gpus=1), max_model_len="8192", gpu_memory_utilization="0.5")


def test_a_cpu_worker_is_measured_against_its_containers_memory() -> None:
    memory(BIG, Layout(gpus=0), host=200 * GIB)
    with pytest.raises(Failure, match=r"100\.0 GiB of memory in this container: raise resources\.memory"):
        memory(BIG, Layout(gpus=0), host=100 * GIB)


@pytest.mark.parametrize("flag", ["enable-expert-parallel", "data-parallel-size", "cpu-offload-gb", "load-format"])
def test_a_model_that_is_spread_in_another_way_is_left_to_the_engine(flag: str) -> None:
    check_memory(BIG, layout=Layout(gpus=1), flags={flag: "1"}, devices=(H100,), host=0)


def test_a_context_that_the_engine_chooses_counts_no_cache() -> None:
    memory(replace(BIG, weights=70 * GIB), Layout(gpus=1), max_model_len="auto")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, 8 * GIB), ("max", 8 * GIB), (str(2 * GIB), 2 * GIB), (str(2**63), 8 * GIB)],
)
def test_a_containers_memory_is_its_cgroups_limit_or_the_machines(tmp_path: Path, limit: str | None, expected: int) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(f"MemFree: 1 kB\nMemTotal: {8 * GIB // 1024} kB\n")
    if limit:
        (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
        (tmp_path / "sys/fs/cgroup/memory.max").write_text(f"{limit}\n")
    assert host_memory(tmp_path) == expected
