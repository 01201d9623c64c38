"""Every reason that a condition, a decision or advice may carry, with its meaning.

The closed list from which the reference is generated: a reason that is not here cannot be written.
"""

from enum import StrEnum

__all__ = ["AdviceReason", "ConditionType", "Reason", "ScalingReason"]


class ConditionType(StrEnum):
    """Types of conditions of an InferenceService."""

    READY = "Ready"
    ACCEPTED = "Accepted"
    PREFILL_AVAILABLE = "PrefillAvailable"
    DECODE_AVAILABLE = "DecodeAvailable"
    ROUTER_AVAILABLE = "RouterAvailable"
    KV_TRANSFER_HEALTHY = "KVTransferHealthy"
    SCALING_ACTIVE = "ScalingActive"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"


class Reason(StrEnum):
    """Reasons of conditions."""

    AVAILABLE = "Available"
    """Requests can be served."""
    ACCEPTED = "Accepted"
    """The spec makes sense as a whole."""
    INVALID = "Invalid"
    """The spec contradicts itself; the message says where and what is allowed."""
    SCALED_TO_ZERO = "ScaledToZero"
    """No workers, because none are asked for."""
    ROLE_AT_ZERO = "RoleAtZero"
    """One role has no workers while the other has some."""
    STARTING = "Starting"
    """Pods exist and are not ready yet."""
    NOT_OBSERVED = "NotObserved"
    """Kubernetes has not reported on the newest change yet."""
    ROLLING_OUT = "RollingOut"
    """Workers of an older revision are being replaced."""
    WAITING_FOR_ROUTERS = "WaitingForRouters"
    """A rollout waits until every ready router says which workers it sends requests to."""
    WAITING_FOR_TURN = "WaitingForTurn"
    """A newer router waits: an upgrade of the operator rolls the routers of few services at a time."""
    CANARY = "Canary"
    """The first new workers serve beside the old ones for a while before the others follow."""
    PAUSED = "Paused"
    """A rollout was paused by `spec.rollout.paused`."""
    SCALING = "Scaling"
    """The number of workers is changing."""
    COMPLETE = "Complete"
    """Everything is as asked."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """New pods did not become ready in time."""
    NEW_WORKERS_WORSE = "NewWorkersWorse"
    """A rollout was stopped: new workers fail more requests than older ones, or miss their target more often."""
    POD_FAILING = "PodFailing"
    """A pod cannot start or keeps ending."""
    UNSCHEDULABLE = "Unschedulable"
    """No node can take a pod."""
    PODS_REFUSED = "PodsRefused"
    """The API server refuses to create pods: a quota, a limit range, Pod Security or a webhook; the message is its own."""
    APPLY_FAILED = "ApplyFailed"
    """The API server refused a child object."""
    AS_EXPECTED = "AsExpected"
    """Nothing is wrong."""
    NO_TRANSFER_SEEN = "NoTransferSeen"
    """No request has used both roles yet, and no canary was pulled."""
    TRANSFERRING = "Transferring"
    """KV cache moves from prefill to decode workers: requests or the sidecars' canaries show it."""
    TRANSFER_FAILING = "TransferFailing"
    """Requests leave the planned path more often than they follow it."""
    PAIR_FAILING = "PairFailing"
    """KV cache does not move between two workers that may both be well; the message names them."""
    FINGERPRINT_MISMATCH = "FingerprintMismatch"
    """Two workers of one KV group run engines that differ and are not paired; the message names them and both values."""
    RECOMMEND_ONLY = "RecommendOnly"
    """Decisions are made and not carried out."""
    SCALED_EXTERNALLY = "ScaledExternally"
    """The counts belong to an HPA, KEDA or `kubectl scale`; decisions are recommendations."""


class ScalingReason(StrEnum):
    """Reasons of scaling decisions, the weightiest first: of two roles' reasons the earlier one is shown for the service."""

    BELOW_MINIMUM = "BelowMinimum"
    """Raised to `min`."""
    ABOVE_MAXIMUM = "AboveMaximum"
    """Lowered to `max`."""
    TTFT_ABOVE_TARGET = "TTFTAboveTarget"
    """Requests miss the time to first token."""
    TPOT_ABOVE_TARGET = "TPOTAboveTarget"
    """Requests miss the time per output token."""
    DECODE_DELAYS_FIRST_TOKEN = "DecodeDelaysFirstToken"  # noqa: S105 - a token of text, not a password
    """The time to first token is lost on the decode workers: decode may grow, prefill does not."""
    LOAD_NEEDS_MORE = "LoadNeedsMore"
    """The load that is expected when a worker is ready needs more than there are."""
    LOAD_FITS_FEWER = "LoadFitsFewer"
    """Fewer workers would hold the targets at the observed load."""
    IDLE = "Idle"
    """No or hardly any work arrives."""
    UNSCHEDULABLE = "Unschedulable"
    """More workers are needed and no node can take those already asked for."""
    AT_MAXIMUM = "AtMaximum"
    """More workers are needed than `max` allows."""
    TRANSFER_SLOW = "TransferSlow"
    """The time to first token is lost in moving KV cache; more workers would not help."""
    NO_REPORT = "NoReport"
    """No router could be read: unknown is not idle."""
    STALE_REPORT = "StaleReport"
    """The newest report is too old, or repeats the one before it."""
    UNUSABLE_REPORT = "UnusableReport"
    """A report holds values that cannot be true, or another protocol version."""
    PARTIAL_REPORT = "PartialReport"
    """Not every router could be read, so nothing is taken away."""
    WAITING_FOR_WORKERS = "WaitingForWorkers"
    """Workers already asked for are starting."""
    STABILISING = "Stabilising"
    """A change waits until it was wanted for long enough."""
    TOO_FEW_REQUESTS = "TooFewRequests"
    """Too few requests for a percentile."""
    WITHIN_TARGETS = "WithinTargets"
    """Targets are met, and fewer workers would not hold them."""
    NOTHING_TO_SCALE = "NothingToScale"
    """No role has bounds."""

    @property
    def known(self) -> bool:
        """Whether the decision rests on what routers reported."""
        return self not in {
            ScalingReason.NO_REPORT,
            ScalingReason.STALE_REPORT,
            ScalingReason.UNUSABLE_REPORT,
            ScalingReason.TOO_FEW_REQUESTS,
        }


class AdviceReason(StrEnum):
    """Reasons of advice."""

    DISAGGREGATION_UNNEEDED = "DisaggregationUnneeded"
    """One small worker of each role: an aggregated pool of two does the same and survives the loss of one."""
    SHORT_PROMPTS = "ShortPrompts"
    """Prompts are too short for a separate prefill to pay."""
    PREFILL_UNUSED = "PrefillUnused"
    """No prompt is long enough to reach the prefill workers."""
    REVISION_NOT_PINNED = "RevisionNotPinned"
    """The model may change between two starts of a worker."""
    NO_CACHE = "NoCache"
    """Every start of a worker downloads the model again."""
    SINGLE_ROUTER = "SingleRouter"
    """A restart of the only router interrupts the service."""
