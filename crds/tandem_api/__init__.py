"""The contract of Tandem: what operator, workers, chart and command line agree on.

Models of the two custom resources, names of children, labels, ports and the messages on the wire. Everything else may
import this package; it imports nothing of ours, does no I/O and holds no behaviour that a reader would look for elsewhere.
"""

__all__ = ["API_VERSION", "GROUP", "SCHEMA_VERSION", "VERSION"]

GROUP = "serving.tandem.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
SCHEMA_VERSION = 1
"""Grows with each additive change of the CRDs; an operator that meets an older CRD is not ready and says so."""
