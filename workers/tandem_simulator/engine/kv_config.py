"""`--kv-transfer-config` as vLLM reads it: unknown fields are refused, a connector needs a role."""

import json
import uuid
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

__all__ = ["KVTransfer", "parse_kv_transfer"]

_CONNECTORS = ("NixlConnector", "NixlPullConnector")


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kv_connector: str | None = None
    engine_id: str | None = None
    kv_buffer_device: str = "cuda"
    kv_role: Literal["kv_producer", "kv_consumer", "kv_both"] | None = None
    kv_port: int = 14579
    kv_connector_extra_config: dict[str, Any] = Field(default_factory=dict)
    kv_connector_module_path: str | None = None
    enable_permute_local_kv: bool = False
    kv_load_failure_policy: Literal["recompute", "fail"] = "fail"

    @model_validator(mode="after")
    def _check(self) -> "_Config":
        if self.kv_connector is not None and self.kv_role is None:
            raise ValueError("Please specify kv_role when kv_connector is set: kv_producer, kv_consumer or kv_both")
        if self.kv_connector is not None and self.kv_connector not in _CONNECTORS:
            raise ValueError(f"the simulator has no kv_connector {self.kv_connector!r}; it has {', '.join(_CONNECTORS)}")
        return self


class _Extra(BaseModel):
    # The real connector ignores keys that it does not know.
    model_config = ConfigDict(extra="ignore")

    kv_lease_duration: float = Field(30, gt=0)
    enforce_handshake_compat: bool = True


@dataclass(frozen=True, slots=True)
class KVTransfer:
    """KV transfer of one engine.

    Attributes:
        engine_id: Name of this process's KV memory; another one after each restart unless it was configured.
        consumer: Whether the engine publishes what it pulled.
        recompute: Whether a failed pull is computed locally instead of failing the request.
        lease: Seconds for which finished prompts are held for a peer.
        check_peer: Whether a peer with another compatibility hash is refused.
        host: Host that peers are told to dial.
        port: Port of the side channel.
    """

    engine_id: str
    consumer: bool
    recompute: bool
    lease: float
    check_peer: bool
    host: str
    port: int


def parse_kv_transfer(text: str, *, host: str, port: int) -> KVTransfer | None:
    """KV transfer from the flag's JSON; None when it names no connector.

    Raises:
        ValueError: The JSON is not an object of known fields, or contradicts itself.
    """
    try:
        config = _Config.model_validate(json.loads(text))
        extra = _Extra.model_validate(config.kv_connector_extra_config)
    except ValidationError as error:
        details = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}".lstrip(": ") for item in error.errors())
        raise ValueError(f"--kv-transfer-config: {details}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"--kv-transfer-config is not JSON: {error}") from error
    if config.kv_connector is None:
        return None
    return KVTransfer(
        engine_id=config.engine_id or str(uuid.uuid4()),
        consumer=config.kv_role in ("kv_consumer", "kv_both"),
        recompute=config.kv_load_failure_policy == "recompute",
        lease=extra.kv_lease_duration,
        check_peer=extra.enforce_handshake_compat,
        host=host,
        port=port,
    )
