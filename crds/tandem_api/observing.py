"""What a user writes about looking into a service from outside."""

from typing import Annotated

from pydantic import ConfigDict, Field

from tandem_api.fields import Object, rule

__all__ = ["Observability", "Tracing"]

_PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
# Neither `@`, `?` nor `#`: a credential in an address would be seen by everyone who may read the service or its pods.
_ENDPOINT = rf"^https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:{_PORT})?(/[A-Za-z0-9._~-]+)*/?$"


class Tracing(Object):
    """Where the routers send spans of requests."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                rule(
                    "!self.endpoint.matches('/v1/traces/?$')", "`endpoint` must not end in '/v1/traces', which is added to it"
                ),
            ]
        }
    )

    endpoint: Annotated[str, Field(min_length=8, max_length=512, pattern=_ENDPOINT)] = Field(
        description="Base address of a collector that speaks OTLP over HTTP, such as `http://collector.monitoring:4318`, "
        "without credentials."
    )
    sampling: Annotated[int, Field(ge=0, le=100)] = Field(
        100,
        description="Percent of requests that are traced, of those whose client did not decide it in `traceparent`.",
    )


class Observability(Object):
    """Looking into a service from outside."""

    tracing: Tracing | None = Field(None, description="Spans of requests. Absent: there are none.")
