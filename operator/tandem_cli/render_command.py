"""`tandem render -f FILE`: every object that the operator would make for a service, without a cluster.

The operator's own rendering and planning, with the settings that the chart would give it. Nothing here decides what a child
looks like.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_cli.checks import inputs, verdict
from tandem_cli.errors import CommandError
from tandem_cli.schema import chart, documents
from tandem_operator import __version__
from tandem_operator.reconcile import plans
from tandem_operator.render.context import NetworkSettings, Owner, Settings
from tandem_operator.render.service import render_service
from tandem_operator.render.token import render_token

__all__ = ["add_commands", "children"]

NO_UID = "00000000-0000-0000-0000-000000000000"
"""Stands for what the API server will give to a service that has none yet."""
_STANDARD_OUTPUT = "yaml"
_TOKEN = "# Its data, the service's own token, is made by the operator.\n"  # noqa: S105 - a comment, not a token


@dataclass(frozen=True, slots=True)
class _Service:
    place: str
    owner: Owner
    spec: InferenceServiceSpec


def children(owner: Owner, spec: InferenceServiceSpec, settings: Settings) -> list[dict[str, Any]]:
    """Return every child of a service, as it is first made and in this order; the token's Secret has no data."""
    secret = {name: value for name, value in render_token(owner, "").items() if name != "data"}
    rendered = render_service(owner=owner, spec=spec, settings=settings, revisions={})
    return [secret, *plans.first(rendered, spec)]


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `render`."""
    parser = subparsers.add_parser("render", help="show every object that the operator would make, without a cluster")
    parser.add_argument(
        "-f", "--filename", action="append", required=True, help="manifest, folder of manifests, or - for standard input"
    )
    parser.add_argument(
        "-o", "--output", default=_STANDARD_OUTPUT, help="`yaml` (default): standard output; else a new folder, a file each"
    )
    parser.add_argument("-n", "--namespace", default="default", help="of services that name none (default: default)")
    settings = parser.add_argument_group("values of the chart")
    settings.add_argument("--image-repository", default=chart.REGISTRY, help="`image.repository`")
    settings.add_argument("--image-tag", default=__version__, help="`image.tag`")
    settings.add_argument("--image-pull-policy", default="IfNotPresent", help="`image.pullPolicy`")
    settings.add_argument(
        "--worker-image-pull-secret", action="append", default=[], help="`workerImagePullSecrets`; once for each"
    )
    settings.add_argument("--allow-node-paths", action="store_true", help="`nodePaths.allowed`: accept file:// models")
    settings.add_argument(
        "--no-network-policies", action="store_true", help="`networkPolicy.enabled: false`: without NetworkPolicies"
    )
    settings.add_argument(
        "--monitoring-namespace",
        action="append",
        help="`networkPolicy.monitoringNamespaces`; once for each (default: monitoring)",
    )
    settings.add_argument(
        "--client-namespace", action="append", default=[], help="`networkPolicy.clientNamespaces`; once for each"
    )
    settings.add_argument(
        "--release-namespace", default=chart.RELEASE_NAMESPACE, help="where the operator is (default: tandem-system)"
    )
    settings.add_argument("--release", default=chart.RELEASE, help="name of the release (default: tandem)")
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    installation = verdict.Installation(allow_node_paths=settings.allow_node_paths)
    services = _services(arguments.filename, arguments.namespace, installation)
    if services is None:
        return 1
    texts = [
        (service.owner, tree, (_TOKEN if tree["kind"] == "Secret" else "") + documents.dump(tree))
        for service in services
        for tree in children(service.owner, service.spec, settings)
    ]
    if arguments.output == _STANDARD_OUTPUT:
        sys.stdout.writelines(f"---\n{text}" for _, _, text in texts)
    else:
        _write(Path(arguments.output), texts)
    return 0


def _settings(arguments: argparse.Namespace) -> Settings:
    return Settings(
        workers_image=f"{arguments.image_repository.rstrip('/')}/workers:{arguments.image_tag}",
        operator_version=__version__,
        allow_node_paths=arguments.allow_node_paths,
        image_pull_policy=arguments.image_pull_policy,
        image_pull_secrets=tuple(arguments.worker_image_pull_secret),
        router_cluster_role=f"{_full_name(arguments.release)}-router",
        network=None if arguments.no_network_policies else _network(arguments),
    )


def _network(arguments: argparse.Namespace) -> NetworkSettings:
    return NetworkSettings(
        operator_namespace=arguments.release_namespace,
        monitoring_namespaces=tuple(arguments.monitoring_namespace or ("monitoring",)),
        client_namespaces=tuple(arguments.client_namespace),
    )


def _full_name(release: str) -> str:
    """Return what the chart calls everything of a release; its template `tandem.fullname` says the same."""
    name = release if chart.RELEASE in release else f"{release}-{chart.RELEASE}"
    return name[:50].removesuffix("-")


def _services(files: Sequence[str], namespace: str, installation: verdict.Installation) -> list[_Service] | None:
    """Return the services in the files; None if something is refused, which is said where errors are."""
    found: dict[tuple[str, str], _Service] = {}
    refused = False
    for place, document in inputs.objects(files):
        if not verdict.judged(document):
            continue
        judged = verdict.judge(document, installation)
        sys.stderr.writelines(judged.lines(place))
        refused = refused or bool(judged.errors)
        if judged.spec is not None:
            metadata = document["metadata"]
            owner = Owner(metadata["name"], metadata.get("namespace") or namespace, metadata.get("uid") or NO_UID)
            _add(found, _Service(place, owner, judged.spec))
    if refused:
        return None
    if not found:
        raise CommandError(f"there is no InferenceService in {', '.join(files)}")
    return list(found.values())


def _add(found: dict[tuple[str, str], _Service], service: _Service) -> None:
    key = (service.owner.namespace, service.owner.name)
    if key in found:
        raise CommandError(f"InferenceService '{key[0]}/{key[1]}' stands twice: {found[key].place} and {service.place}")
    found[key] = service


def _write(folder: Path, texts: Iterable[tuple[Owner, dict[str, Any], str]]) -> None:
    """Write one file for each object; nothing that was there before is mixed with it."""
    for path, text in _files(folder, texts):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error}") from error


def _files(folder: Path, texts: Iterable[tuple[Owner, dict[str, Any], str]]) -> Iterator[tuple[Path, str]]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} exists and is not an empty folder: name a new one, so that no older file stays in it")
    for owner, tree, text in texts:
        yield folder / owner.namespace / f"{tree['kind'].lower()}-{tree['metadata']['name']}.yaml", text
