"""Field managers: one a concern, so that `kubectl get --show-managed-fields` tells who wrote what."""

__all__ = ["CHILDREN", "SCALER", "STATUS"]

CHILDREN = "tandem"
"""Everything that is rendered."""
STATUS = "tandem-status"
"""The status of both kinds."""
SCALER = "tandem-scaler"
"""`spec.replicas` of a WorkerPool, and nothing else."""
