"""The container runtime of one node: CRI v1 over a unix socket.

A container is a host process in its own namespaces on an overlay of the host's root; an image is a name for an environment
of this machine. Limits, seccomp and network policies are accepted and not enforced.
"""
