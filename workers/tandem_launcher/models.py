"""What a model's files say before anything is loaded: present, complete, how big, how its KV cache is shaped.

Only sizes and `config.json` are read, never weights. What a file does not say stays None, and checks that need it are
left to the engine; a wrong guess here would refuse a model that works.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_launcher.failures import Failure, Reason

__all__ = ["Model", "find_model", "read_model"]

_SIZES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_UNLIKE_PLAIN_ATTENTION = (
    "sliding_window",
    "layer_types",
    "layers_block_type",
    "hybrid_override_pattern",
    "mamba_d_state",
    "ssm_cfg",
)
"""Keys of configurations whose KV cache is smaller than layers x tokens; its size is then not computed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Facts of one model's files; bytes, tokens and counts of the whole model."""

    weights: int | None = None
    heads: int | None = None
    dtype: str | None = None
    context: int | None = None
    """Longest context that the configuration names, tokens."""
    cache_elements: int | None = None
    """KV cache elements a token over all layers; None where attention is not plain."""

    def cache_bytes(self, tokens: int, cache_dtype: str) -> int | None:
        """Bytes of KV cache that `tokens` tokens take."""
        if self.cache_elements is None:
            return None
        size = 1 if cache_dtype.startswith("fp8") else _SIZES.get(cache_dtype) or _SIZES.get(self.dtype or "")
        return None if size is None else self.cache_elements * tokens * size


def find_model(name: str, *, revision: str, environment: Mapping[str, str]) -> Path | None:
    """Return the folder of a model; None for a hub name that the engine itself may download.

    Raises:
        Failure: a path that is no folder, or a hub name that is not cached while the hub is switched off.
    """
    if name.startswith(("/", "./", "../")) or Path(name).is_dir():
        if Path(name).is_dir():
            return Path(name)
        raise Failure(
            Reason.MODEL_MISSING,
            f"there is no folder '{name}' in this container: check model.uri, and that the volume with the model is mounted",
        )
    snapshot = _snapshot(name, revision=revision, environment=environment)
    if snapshot is None and "1" in {environment.get("HF_HUB_OFFLINE"), environment.get("TRANSFORMERS_OFFLINE")}:
        raise Failure(
            Reason.MODEL_MISSING,
            f"'{name}' at revision '{revision}' is not in the cache and HF_HUB_OFFLINE forbids a download:"
            " fill the cache or unset it",
        )
    return snapshot


def _snapshot(name: str, *, revision: str, environment: Mapping[str, str]) -> Path | None:
    home = environment.get("HF_HOME") or str(Path(environment.get("HOME", "/root")) / ".cache" / "huggingface")
    cache = Path(environment.get("HF_HUB_CACHE") or Path(home) / "hub") / f"models--{name.replace('/', '--')}"
    reference = cache / "refs" / revision
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    snapshot = cache / "snapshots" / commit
    return snapshot if (snapshot / "config.json").is_file() else None


def read_model(folder: Path, *, weights_needed: bool) -> Model:
    """Return what the files of a folder say.

    Raises:
        Failure: no `config.json` or no weights although they are needed, one that is no JSON object, a missing shard.
    """
    path = folder / "config.json"
    if not path.is_file():
        if weights_needed:
            raise Failure(Reason.MODEL_MISSING, f"'{folder}' holds no config.json: name the folder that a model was saved to")
        return Model()
    config = _read_json(path)
    inner = config.get("text_config")
    text = {**config, **inner} if isinstance(inner, dict) else config
    return Model(
        weights=_weights(folder) if weights_needed else None,
        heads=_count(text, "num_attention_heads"),
        dtype=next((str(text[key]).removeprefix("torch.") for key in ("dtype", "torch_dtype") if text.get(key)), None),
        context=_count(text, "max_position_embeddings"),
        cache_elements=_cache_elements(text),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise Failure(Reason.BAD_MODEL, f"'{path}' cannot be read as JSON ({error}): copy the model again") from error
    if not isinstance(content, dict):
        raise Failure(Reason.BAD_MODEL, f"'{path}' holds no JSON object: copy the model again")
    return content


def _count(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and value > 0 else None


def _cache_elements(text: Mapping[str, Any]) -> int | None:
    layers, heads, hidden = (_count(text, key) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    if layers is None or heads is None or any(text.get(key) for key in _UNLIKE_PLAIN_ATTENTION):
        return None
    latent = _count(text, "kv_lora_rank")
    if latent is not None:
        return layers * (latent + (_count(text, "qk_rope_head_dim") or 0))
    width = _count(text, "head_dim") or (hidden // heads if hidden else None)
    return None if width is None else 2 * layers * (_count(text, "num_key_value_heads") or heads) * width


def _weights(folder: Path) -> int:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return _indexed_weights(folder, _read_json(index))
    for pattern in _WEIGHTS:
        files = sorted(folder.glob(pattern))
        if files:
            return sum(file.stat().st_size for file in files)
    raise Failure(Reason.MODEL_MISSING, f"'{folder}' holds no weights ({', '.join(_WEIGHTS)}): copy the whole model")


def _indexed_weights(folder: Path, index: Mapping[str, Any]) -> int:
    shards = sorted(set(index["weight_map"].values())) if isinstance(index.get("weight_map"), dict) else []
    missing = [shard for shard in shards if not (folder / shard).is_file()]
    if missing:
        raise Failure(
            Reason.MODEL_MISSING,
            f"{len(missing)} of {len(shards)} weight files are missing in '{folder}', first '{missing[0]}': finish the copy",
        )
    return sum((folder / shard).stat().st_size for shard in shards)
