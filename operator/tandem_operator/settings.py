"""What the installation configures, read once from the environment variables that the chart sets (`TANDEM_*`)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tandem_api import ports
from tandem_api.durations import parse_duration
from tandem_operator import __version__
from tandem_operator.policies.scaling.decision import ScalingPolicy
from tandem_operator.render.context import NetworkSettings
from tandem_operator.render.context import Settings as RenderSettings

__all__ = ["Settings", "SettingsError", "read_settings"]

_PREFIX = "TANDEM_"


class SettingsError(Exception):
    """An environment variable is missing or wrong; the message names it and says what is allowed."""


def _words(value: Any) -> Any:
    return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value


def _seconds(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Settings(BaseModel):
    """All settings; the name of a field in upper case after `TANDEM_` is its variable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workers_image: Annotated[str, Field(min_length=1)]
    """Image of launcher, sidecar, router and simulator."""
    watch_namespaces: Words = ()
    """Namespaces, comma-separated; empty for all."""
    allow_node_paths: bool = False
    """Whether `file://` models may mount a path of the node."""
    image_pull_policy: str | None = None
    """Pull policy of Tandem's own containers."""
    image_pull_secrets: Words = ()
    """Secrets in the service's namespace with which Tandem's own image is pulled, comma-separated."""
    router_cluster_role: str = "tandem-router"
    """ClusterRole of the routers."""
    key_file: Path | None = None
    """Where the operator's key is mounted; absent: a new key in each process, so that routers of before are not read."""
    key_secret: str = "tandem-operator-key"  # noqa: S105 - the name of an object
    """Secret with the operator's key."""
    namespace: str = "default"
    """The operator's own namespace, where its key, its Lease and the webhook's certificate are kept."""
    webhook_folder: Path | None = None
    """Where the webhook's certificate is mounted; absent: there is no webhook."""
    webhook_secret: str = "tandem-operator-webhook"  # noqa: S105 - the name of an object
    """Secret with the webhook's certificate."""
    webhook_service: str = "tandem-operator-webhook"
    """Service by which the API server reaches the webhook."""
    webhook_configuration: str = "tandem-operator"
    """ValidatingWebhookConfiguration that is told whom to trust."""
    webhook_port: Port = ports.OPERATOR_WEBHOOK
    network_policies: bool = True
    """Whether each service gets NetworkPolicies."""
    monitoring_namespaces: Words = ()
    """Namespaces whose pods may read metrics, comma-separated; empty for none besides the operator's own."""
    client_namespaces: Words = ()
    """Namespaces whose pods may send requests to routers, comma-separated; empty for everybody."""
    lease: str = "tandem-operator"
    """Lease, in the operator's own namespace, whose holder works."""
    lease_duration: Annotated[Seconds, Field(ge=3, multiple_of=1)] = 15.0
    """How long a standby leaves a Lease alone of which it sees no change; whole seconds."""
    concurrency: Annotated[int, Field(ge=1, le=64)] = 8
    """Services that are worked on at once."""
    router_rollouts: Annotated[int, Field(ge=1, le=1000)] = 5
    """Services whose routers are rolled out at once when an upgrade of the operator changes them all."""
    resync_period: Seconds = 300.0
    """Between two complete lists of everything; a GEP-2257 duration, like all times here."""
    watch_silence: Seconds = 70.0
    """Without an event or bookmark for so long, a watch is made anew; the API server sends a bookmark a minute."""
    scaling_interval: Seconds = 15.0
    """Between two readings of the routers."""
    scaling_window: Seconds = 120.0
    """Span over which requests are judged."""
    scaling_down_stabilisation: Seconds = 300.0
    """The highest count wanted in so long is kept."""
    bind: str | None = None
    """Address on which probes and metrics are answered; absent: all of the pod's."""
    health_port: Port = ports.OPERATOR_HEALTH
    metrics_port: Port = ports.OPERATOR_METRICS
    log_level: Annotated[str, Field(pattern="^(DEBUG|INFO|WARNING|ERROR)$")] = "INFO"
    pod_name: str = "tandem-operator"
    """Name under which Events are reported."""

    @property
    def render(self) -> RenderSettings:
        """The part that rendering needs."""
        return RenderSettings(
            workers_image=self.workers_image,
            operator_version=__version__,
            allow_node_paths=self.allow_node_paths,
            image_pull_policy=self.image_pull_policy or None,
            image_pull_secrets=self.image_pull_secrets,
            router_cluster_role=self.router_cluster_role,
            network=NetworkSettings(
                operator_namespace=self.namespace,
                monitoring_namespaces=self.monitoring_namespaces,
                client_namespaces=self.client_namespaces,
            )
            if self.network_policies
            else None,
        )

    @property
    def scaling(self) -> ScalingPolicy:
        """The constants of the scaler."""
        return ScalingPolicy(
            interval=self.scaling_interval,
            window=self.scaling_window,
            down_stabilisation=self.scaling_down_stabilisation,
            stale_after=max(60.0, 4 * self.scaling_interval),
        )


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings of an environment.

    Raises:
        SettingsError: a variable is missing or wrong.
    """
    variables = {f"{_PREFIX}{name.upper()}": name for name in Settings.model_fields}
    given = {variables[name]: value for name, value in environment.items() if name in variables}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(f"{_PREFIX}{'_'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in error.errors())
        raise SettingsError(f"the operator's environment is not usable: {problems}") from error
