"""A model's files are read without loading it; what they do not say stays unknown."""

import json
from pathlib import Path
from typing import Any

import pytest

from tandem_launcher.failures import Failure, Reason
from tandem_launcher.models import Model, find_model, read_model

LLAMA = {
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


def save(folder: Path, config: Any, **files: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    for name, size in files.items():
        (folder / name.replace("__", ".")).write_bytes(bytes(size))
    return folder


def test_a_plain_model_is_read_whole(tmp_path: Path) -> None:
    model = read_model(save(tmp_path, LLAMA, model__safetensors=1000), weights_needed=True)
    assert model == Model(weights=1000, heads=9, dtype="bfloat16", context=8192, cache_elements=2 * 30 * 3 * 64)
    assert model.cache_bytes(100, "auto") == 2 * 30 * 3 * 64 * 2 * 100
    assert model.cache_bytes(100, "fp8_e4m3") == 2 * 30 * 3 * 64 * 100


def test_a_text_model_inside_a_multimodal_one_is_read(tmp_path: Path) -> None:
    model = read_model(save(tmp_path, {"text_config": LLAMA, "dtype": "float16"}), weights_needed=False)
    assert (model.heads, model.dtype) == (9, "float16")


def test_a_latent_cache_is_counted_once_a_token(tmp_path: Path) -> None:
    config = {**LLAMA, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert read_model(save(tmp_path, config), weights_needed=False).cache_elements == 30 * 576


@pytest.mark.parametrize("extra", [{"sliding_window": 4096}, {"layer_types": ["full_attention"]}, {"num_hidden_layers": None}])
def test_the_cache_of_a_model_that_is_not_plain_is_unknown(tmp_path: Path, extra: dict[str, Any]) -> None:
    assert read_model(save(tmp_path, {**LLAMA, **extra}), weights_needed=False).cache_bytes(10, "auto") is None


def test_an_indexed_model_is_as_big_as_its_shards_and_not_as_stray_files(tmp_path: Path) -> None:
    folder = save(tmp_path, LLAMA, a__safetensors=10, b__safetensors=20, consolidated__safetensors=30)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})
    )
    assert read_model(folder, weights_needed=True).weights == 30


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = save(tmp_path, LLAMA, a__safetensors=10)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})
    )
    with pytest.raises(Failure, match=r"1 of 2 weight files are missing in .*, first 'b\.safetensors'"):
        read_model(folder, weights_needed=True)


@pytest.mark.parametrize(
    ("config", "reason"), [("{", Reason.BAD_MODEL), ("[]", Reason.BAD_MODEL), (LLAMA, Reason.MODEL_MISSING)]
)
def test_a_broken_configuration_or_absent_weights_are_refused(tmp_path: Path, config: Any, reason: Reason) -> None:
    with pytest.raises(Failure) as failure:
        read_model(save(tmp_path, config), weights_needed=True)
    assert failure.value.reason is reason


def test_an_empty_folder_is_no_model_but_enough_for_an_engine_that_needs_no_weights(tmp_path: Path) -> None:
    assert read_model(tmp_path, weights_needed=False) == Model()
    with pytest.raises(Failure, match=r"holds no config\.json"):
        read_model(tmp_path, weights_needed=True)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"check model\.uri, and that the volume"):
        find_model(str(tmp_path / "typo"), revision="main", environment={})


def test_a_hub_name_is_left_to_the_engine_unless_the_hub_is_off(tmp_path: Path) -> None:
    environment = {"HF_HOME": str(tmp_path)}
    assert find_model("org/name", revision="main", environment=environment) is None
    with pytest.raises(Failure, match="'org/name' at revision 'main' is not in the cache"):
        find_model("org/name", revision="main", environment={**environment, "HF_HUB_OFFLINE": "1"})


def test_a_hub_name_in_the_cache_is_found_by_branch_and_by_commit(tmp_path: Path) -> None:
    cache = tmp_path / "hub" / "models--org--name"
    snapshot = save(cache / "snapshots" / "c0ffee", LLAMA)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("c0ffee\n")
    environment = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    assert find_model("org/name", revision="main", environment=environment) == snapshot
    assert find_model("org/name", revision="c0ffee", environment=environment) == snapshot
