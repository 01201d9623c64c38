"""What a user writes about the router's edge: who may ask, how much, and over what."""

from typing import Annotated

from pydantic import ConfigDict, Field

from tandem_api.fields import Name, Object, rule

__all__ = ["Auth", "RateLimits", "RouterTLS", "SecretReference"]


class SecretReference(Object):
    """A Secret in the same namespace."""

    name: Name = Field(description="Name of the Secret.")


class Auth(Object):
    """Who may ask. Absent: everyone who reaches the router."""

    secret_ref: SecretReference = Field(
        description="Secret with the API keys: one entry a client, whose name stands in logs and metrics; each line of an "
        "entry is one key. Changes are taken over without a restart."
    )


class RateLimits(Object):
    """What one API key may use, over all routers of the service; without `auth` all clients together."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                rule(
                    "has(self.requestsPerMinute) || has(self.tokensPerMinute)",
                    "`rateLimits` needs `requestsPerMinute`, `tokensPerMinute` or both",
                )
            ]
        }
    )

    requests_per_minute: Annotated[int, Field(ge=1, le=100_000_000)] | None = Field(None, description="Requests.")
    tokens_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = Field(
        None,
        description="Tokens of prompts and answers: prompts as estimated when they arrive, corrected when they were counted.",
    )


class RouterTLS(Object):
    """HTTPS of the public port."""

    secret_name: Name = Field(
        description="Secret of type `kubernetes.io/tls`. A renewed certificate is taken over without a restart or a dropped "
        "connection."
    )
