"""Words that a user chooses from in an `InferenceService`."""

from enum import StrEnum

__all__ = ["Connector", "EngineType", "KVDevice", "Mismatch", "OnPrefillFailure", "Profile", "ScalingMode"]


class EngineType(StrEnum):
    """Inference engine of the workers."""

    VLLM = "VLLM"
    SIMULATOR = "Simulator"


class Profile(StrEnum):
    """A named set of defaults, visible in the rendered command line."""

    CHAT = "Chat"
    LONG_DOCUMENT = "LongDocument"
    BATCH = "Batch"
    AGENTS = "Agents"


class Connector(StrEnum):
    """How KV cache moves between workers."""

    NIXL = "Nixl"


class KVDevice(StrEnum):
    """Memory from which KV cache is sent."""

    AUTO = "Auto"
    GPU = "GPU"
    CPU = "CPU"


class Mismatch(StrEnum):
    """Checks that compare the two roles and whose answer depends on engine or model, so that a user may know better."""

    TENSOR_PARALLELISM = "TensorParallelism"
    MAX_MODEL_LEN = "MaxModelLen"


class OnPrefillFailure(StrEnum):
    """What the router does when a prefill worker fails a request."""

    RETRY_OTHER = "RetryOther"
    FALLBACK_LOCAL = "FallbackLocal"
    FAIL = "Fail"


class ScalingMode(StrEnum):
    """Who owns the number of workers, and so what becomes of the autoscaler's decisions."""

    APPLY = "Apply"
    RECOMMEND = "Recommend"
    EXTERNAL = "External"
