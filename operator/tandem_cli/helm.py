"""Helm's own engine in this process, so that neither tests nor the local cluster need a `helm` binary.

The package wraps Helm's Go SDK; loading it takes some 90 MB, so only what installs or renders a chart imports this module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import helm_python

from tandem_cli.errors import CommandError

__all__ = ["install", "render", "uninstall", "upgrade"]

Values = Mapping[str, Any]

_TIMEOUT = 180


def render(chart: Path, *, release: str, namespace: str, values: Values) -> dict[str, str]:
    """Return the rendered text of each template, by its path inside the chart, in Helm's order of names.

    Raises:
        CommandError: the values do not fit the chart's schema, or a template fails; the message is Helm's.
    """
    with _reported(f"rendering {chart}"), helm_python.Chart.load(chart) as loaded:
        loaded.validate_schema(loaded.merge_values(dict(values)))
        rendered = loaded.render(dict(values), name=release, namespace=namespace)
    return {path.partition("/")[2]: text for path, text in sorted(rendered.items())}


def install(
    chart: Path, *, release: str, namespace: str, values: Values, kubeconfig: Path, wait: bool = False, timeout: int = _TIMEOUT
) -> None:
    """Install a chart, making its namespace; with `wait`, until its pods are ready.

    Args:
        chart: folder of the chart.
        release: name of the release.
        namespace: where the release lives.
        values: what differs from the chart's own values.
        kubeconfig: cluster and user.
        wait: whether to wait until everything is ready.
        timeout: seconds for the whole operation.

    Raises:
        CommandError: Helm refused or failed; the message is Helm's.
    """
    with _reported(f"installing {release}"), _config(kubeconfig, namespace) as config:
        config.install(
            chart, release, dict(values), namespace=namespace, create_namespace=True, wait=_strategy(wait=wait), timeout=timeout
        )


def upgrade(
    chart: Path, *, release: str, namespace: str, values: Values, kubeconfig: Path, wait: bool = False, timeout: int = _TIMEOUT
) -> None:
    """Upgrade a release to a chart and values; arguments and errors as of `install`."""
    with _reported(f"upgrading {release}"), _config(kubeconfig, namespace) as config:
        config.upgrade(chart, release, dict(values), namespace=namespace, wait=_strategy(wait=wait), timeout=timeout)


def uninstall(*, release: str, namespace: str, kubeconfig: Path, timeout: int = _TIMEOUT) -> None:
    """Remove a release; what the chart keeps on purpose stays."""
    with _reported(f"uninstalling {release}"), _config(kubeconfig, namespace) as config:
        config.uninstall(release, timeout=timeout)


def _strategy(*, wait: bool) -> str:
    return "watcher" if wait else "hookOnly"


@contextmanager
def _config(kubeconfig: Path, namespace: str) -> Iterator[helm_python.Config]:
    with helm_python.Config(kubeconfig_path=kubeconfig, namespace=namespace) as config:
        yield config


@contextmanager
def _reported(what: str) -> Iterator[None]:
    try:
        yield
    except helm_python.HelmError as error:
        raise CommandError(f"{what}: {error}") from error
