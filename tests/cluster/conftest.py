"""One local cluster for all tests of this tier.

Where it cannot run, the tests are skipped and say why; with STRICT=1 they fail.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem_local import cluster as local
from tandem_local.errors import LocalClusterError

_NODES = 2
_GPUS = 8


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything below this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def programs() -> Path:
    """Folder of the cluster's programs, on a machine that can run one."""
    try:
        return local.check_machine()
    except LocalClusterError as error:
        if os.environ.get("STRICT") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cluster(programs: Path) -> Iterator[local.Cluster]:
    """A cluster of two nodes with eight GPUs each, none of them real; it ends with the session."""
    sys.stderr.write(f"starting a cluster with the programs in {programs}\n")
    with local.up(name=f"test-{os.getpid()}", nodes=_NODES, gpus_per_node=_GPUS) as running:
        yield running
