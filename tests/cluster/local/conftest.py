"""A namespace of its own for each test of the local cluster."""

import itertools
from collections.abc import Iterator

import pytest

from support.local import Namespace
from tandem_local.cluster import Cluster

_numbers = itertools.count(1)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """An empty namespace that admits restricted pods only."""
    name = f"local-{next(_numbers)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield Namespace(cluster, name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")
