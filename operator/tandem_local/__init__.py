"""A real Kubernetes on one Linux machine, without Docker and without images.

Unmodified control plane, kubelet and kube-proxy, and a small container runtime of our own, all inside one set of Linux
namespaces that has no way out to the network and disappears with its first process. It stands in for a cluster; it knows
nothing of Tandem's own resources, which are installed on it as on any other.
"""
