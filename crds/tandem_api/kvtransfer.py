"""What a user writes about moving KV cache between the roles: typed once, rendered for both alike."""

from typing import Annotated

from pydantic import Field

from tandem_api.choices import Connector, KVDevice, Mismatch, OnPrefillFailure
from tandem_api.fields import Duration, Object

__all__ = ["KVTransfer"]


class KVTransfer(Object):
    """How KV cache moves from prefill to decode workers; rendered for both roles alike."""

    connector: Connector = Field(Connector.NIXL, description="Connector of the engine.")
    device: KVDevice = Field(
        KVDevice.AUTO,
        description="Memory from which KV cache is sent: `GPU`, `CPU` (staged through host memory), or `Auto`: the device "
        "that the workers compute on.",
    )
    transports: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=32, pattern=r"^[a-z0-9_^]+$")]],
        Field(max_length=16, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = Field(
        default_factory=list, description="UCX transports (`UCX_TLS`), such as `rc`, `cuda_copy`, `tcp`. Empty: UCX chooses."
    )
    lease: Duration = Field("30s", description="How long a prefill worker keeps KV cache that nobody has pulled.")
    min_prompt_tokens: Annotated[int, Field(ge=0, le=1_048_576)] = Field(
        256,
        description="Estimated prompt tokens below which the decode worker computes the prompt itself; 0 always disaggregates.",
    )
    on_prefill_failure: OnPrefillFailure = Field(
        OnPrefillFailure.RETRY_OTHER,
        description="`RetryOther`: other prefill workers, else 503. `FallbackLocal`: then the decode worker computes the "
        "prompt. `Fail`: 503 at once.",
    )
    allow_mismatch: Annotated[list[Mismatch], Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "set"})] = Field(
        default_factory=list,
        description="Checks between the roles that become warnings, for an engine or model that can do more than others: "
        "`TensorParallelism` (decode's is a multiple of prefill's), `MaxModelLen` (the same for both).",
    )
