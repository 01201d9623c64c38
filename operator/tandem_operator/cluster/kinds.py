"""The kinds of objects that the operator reads or writes, and where the API server keeps them."""

from dataclasses import dataclass

from tandem_api import GROUP, VERSION

__all__ = [
    "CHILDREN",
    "CONTROLLER_REVISION",
    "CUSTOM_RESOURCE_DEFINITION",
    "DEPLOYMENT",
    "EVENT",
    "INFERENCE_SERVICE",
    "LEASE",
    "NETWORK_POLICY",
    "POD",
    "POD_DISRUPTION_BUDGET",
    "ROLE_BINDING",
    "SECRET",
    "SERVICE",
    "SERVICE_ACCOUNT",
    "VALIDATING_WEBHOOK_CONFIGURATION",
    "WATCHED",
    "WORKER_POOL",
    "Kind",
    "of",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API."""

    group: str
    """Empty for the core group."""
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def label(self) -> str:
        """`group/plural`, for logs and messages."""
        return f"{self.group}/{self.plural}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of an object, or of the list of one or of all namespaces."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part is not None]
        return "/" + "/".join(parts)


INFERENCE_SERVICE = Kind(GROUP, VERSION, "InferenceService", "inferenceservices")
WORKER_POOL = Kind(GROUP, VERSION, "WorkerPool", "workerpools")
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
SERVICE = Kind("", "v1", "Service", "services")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
POD_DISRUPTION_BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
POD = Kind("", "v1", "Pod", "pods")
SECRET = Kind("", "v1", "Secret", "secrets")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
EVENT = Kind("events.k8s.io", "v1", "Event", "events")
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)

VALIDATING_WEBHOOK_CONFIGURATION = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)

CHILDREN: tuple[Kind, ...] = (
    WORKER_POOL,
    CONTROLLER_REVISION,
    SERVICE_ACCOUNT,
    ROLE_BINDING,
    NETWORK_POLICY,
    SERVICE,
    POD_DISRUPTION_BUDGET,
    DEPLOYMENT,
)
"""What a service owns, in the order in which it is made: what a pod needs comes before the pod."""

WATCHED: tuple[Kind, ...] = (INFERENCE_SERVICE, *CHILDREN, POD)

_BY_NAME = {(kind.api_version, kind.kind): kind for kind in WATCHED}


def of(tree: dict[str, object]) -> Kind:
    """Return the kind of an object's tree.

    Raises:
        LookupError: the operator neither reads nor writes such objects.
    """
    found = _BY_NAME.get((str(tree.get("apiVersion")), str(tree.get("kind"))))
    if found is None:
        raise LookupError(f"{tree.get('apiVersion')} {tree.get('kind')} is no kind that the operator writes")
    return found
