"""What moves the role hash and the KV group, and what must not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import specs
from tandem_api.names import Role
from tandem_operator.render.hashes import kv_group, role_hash


def _hashes(tree: dict[str, Any]) -> tuple[str, str]:
    spec = specs.read(tree)
    return role_hash(spec, Role.PREFILL), role_hash(spec, Role.DECODE)


def _group(tree: dict[str, Any]) -> str:
    return kv_group(specs.read(tree))


def test_hashes_are_those_of_the_first_release() -> None:
    """A change here restarts every model of every user: it must be wanted."""
    tree = specs.changed(specs.disaggregated(), "engine.maxModelLen", 32768)
    tree = specs.changed(tree, "decode.template", {"spec": {"nodeSelector": {"gpu": "h200"}}})
    assert (*_hashes(tree), _group(tree)) == ("1db95567", "c25e5217", "457c40c5")
    assert role_hash(specs.read(specs.aggregated()), Role.AGGREGATED) == "38c6d6cc"


_DEFAULTS = {
    "profile": "Chat",
    "engine.type": "VLLM",
    "engine.prefixCaching": True,
    "engine.args": [],
    "engine.maxModelLen": None,
    "prefill.parallelism": {"tensor": 1, "pipeline": 1, "expert": False},
    "prefill.resources": {"gpuResource": "nvidia.com/gpu"},
    "prefill.resources.gpus": 1,
    "prefill.engine": {"args": []},
    "prefill.drain": "1m",
    "prefill.startup": "1200s",
    "prefill.template": {},
    "decode.resources": {},
    "kvTransfer": {},
    "runtimeVersion": None,
    "kvTransfer.lease": "30s",
    "kvTransfer.device": "Auto",
    "kvTransfer.transports": [],
}


@pytest.mark.parametrize("path", _DEFAULTS)
def test_writing_a_default_out_changes_nothing(path: str) -> None:
    tree = specs.changed(specs.disaggregated(), path, _DEFAULTS[path])
    assert _hashes(tree) == _hashes(specs.disaggregated())
    assert _group(tree) == _group(specs.disaggregated())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("prefill.replicas", 7),
        ("decode.replicas", 3),
        ("router.replicas", 5),
        ("router.drain", "5s"),
        ("slo", {"objective": 90, "ttft": {"target": "1s"}, "tpot": {"target": "9ms"}}),
        ("autoscaling", {"mode": "Recommend", "decode": {"min": 1, "max": 3}}),
        ("kvTransfer.minPromptTokens", 0),
        ("kvTransfer.onPrefillFailure", "Fail"),
        ("kvTransfer.allowMismatch", ["MaxModelLen"]),
    ],
)
def test_counts_router_and_targets_restart_no_engine(path: str, value: Any) -> None:
    assert _hashes(specs.changed(specs.disaggregated(), path, value)) == _hashes(specs.disaggregated())


@pytest.mark.parametrize("role", ["prefill", "decode"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parallelism.tensor", 2),
        ("parallelism.pipeline", 2),
        ("parallelism.expert", True),
        ("resources.gpus", 0),
        ("resources.cpu", 4),
        ("resources.memory", "8Gi"),
        ("resources.gpuResource", "amd.com/gpu"),
        ("engine.maxModelLen", 100),
        ("engine.maxBatchedTokens", 100),
        ("engine.maxSequences", 10),
        ("engine.args", ["--seed", "1"]),
        ("drain", "61s"),
        ("startup", "21m"),
        ("template", {"spec": {"nodeSelector": {"a": "b"}}}),
    ],
)
def test_what_shapes_one_role_changes_that_role_alone(role: str, field: str, value: Any) -> None:
    before, after = _hashes(specs.disaggregated()), _hashes(specs.changed(specs.disaggregated(), f"{role}.{field}", value))
    changed, same = (0, 1) if role == "prefill" else (1, 0)
    assert after[changed] != before[changed]
    assert after[same] == before[same]


@pytest.mark.parametrize(
    ("path", "value", "regroups"),
    [
        ("model.uri", "hf://Qwen/Qwen3-14B", True),
        ("model.revision", "1" * 40, True),
        ("engine.image", "vllm/vllm-openai:v0.34.0", True),
        ("engine.type", "Simulator", True),
        ("engine.dtype", "float16", True),
        ("engine.kvCacheDtype", "fp8", True),
        ("engine.blockSize", 32, True),
        ("engine.args", ["--attention-backend=FLASHINFER"], True),
        ("engine.args", ["--enable-log-requests"], False),
        ("engine.maxModelLen", 2048, False),
        ("engine.maxSequences", 7, False),
        ("engine.maxBatchedTokens", 700, False),
        ("engine.prefixCaching", False, False),
        ("model.servedName", "qwen", False),
        ("model.secretRef", {"name": "token"}, False),
        ("model.cache", {"claimName": "models"}, False),
        ("profile", "Batch", False),
        ("kvTransfer.lease", "31s", False),
        ("kvTransfer.device", "CPU", False),
        ("kvTransfer.transports", ["tcp"], False),
        ("runtimeVersion", "1", False),
    ],
)
def test_what_both_roles_share_changes_both_and_the_group_only_where_kv_would_not_fit(
    path: str, value: Any, *, regroups: bool
) -> None:
    tree = specs.changed(specs.disaggregated(), path, value)
    assert all(new != old for new, old in zip(_hashes(tree), _hashes(specs.disaggregated()), strict=True))
    assert (_group(tree) != _group(specs.disaggregated())) is regroups


@given(st.lists(st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", fullmatch=True), min_size=2, unique=True))
def test_each_runtime_version_is_a_revision_of_both_roles_in_one_group(versions: list[str]) -> None:
    trees = [specs.disaggregated(), *(specs.changed(specs.disaggregated(), "runtimeVersion", each) for each in versions)]
    assert len({name for tree in trees for name in _hashes(tree)}) == 2 * len(trees)
    assert {_group(tree) for tree in trees} == {_group(specs.disaggregated())}


def test_a_runtime_version_that_renews_the_engine_too_regroups() -> None:
    own = specs.changed(specs.disaggregated(), "engine", {"type": "Simulator"})
    given = specs.changed(specs.disaggregated(), "engine", {"type": "Simulator", "image": "simulator:1"})
    assert _group(specs.changed(own, "runtimeVersion", "1")) != _group(own)
    assert _group(specs.changed(given, "runtimeVersion", "1")) == _group(given)


def test_parallelism_may_differ_inside_a_group() -> None:
    assert _group(specs.changed(specs.disaggregated(), "decode.parallelism.tensor", 4)) == _group(specs.disaggregated())


def test_prefill_and_decode_never_share_a_hash() -> None:
    prefill, decode = _hashes(specs.disaggregated())
    assert prefill != decode


def test_it_does_not_matter_where_a_number_is_written() -> None:
    shared = specs.changed(specs.disaggregated(), "engine.maxModelLen", 4096)
    own = specs.changed(specs.disaggregated(), "prefill.engine.maxModelLen", 4096)
    assert _hashes(shared)[0] == _hashes(own)[0]


def test_a_shared_number_that_a_role_overrides_does_not_move_that_role() -> None:
    own = specs.changed(specs.disaggregated(), "prefill.engine.maxSequences", 8)
    both = specs.changed(own, "engine.maxSequences", 16)
    assert _hashes(both)[0] == _hashes(own)[0]
    assert _hashes(both)[1] != _hashes(own)[1]


@given(st.permutations(["nodeSelector", "priorityClassName", "runtimeClassName", "tolerations"]))
def test_the_order_of_keys_means_nothing(order: list[str]) -> None:
    pod = {"nodeSelector": {"a": "b"}, "priorityClassName": "p", "runtimeClassName": "r", "tolerations": [{"key": "k"}]}
    straight = specs.changed(specs.disaggregated(), "prefill.template", {"spec": pod})
    shuffled = specs.changed(specs.disaggregated(), "prefill.template", {"spec": {name: pod[name] for name in order}})
    assert _hashes(dict(reversed(shuffled.items()))) == _hashes(straight)
