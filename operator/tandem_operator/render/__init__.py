"""From an `InferenceService` to the objects of Kubernetes that serve it.

Pure: the same spec, settings and frozen revisions give the same bytes. No I/O beyond the package's own templates, no
clock, no randomness, no knowledge of the cluster.
"""
