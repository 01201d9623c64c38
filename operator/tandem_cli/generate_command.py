"""`tandem generate`: writes every file that is made from the models, the same bytes each time.

Run after a change of `tandem_api` or of the chart; `make verify` runs it and refuses a difference.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import tandem_api
from tandem_cli import helm
from tandem_cli.errors import CommandError
from tandem_cli.schema import chart, crd, documents, podtemplate, reference, words

__all__ = ["add_commands", "generate"]

_PACKAGE = Path(tandem_api.__file__).parent


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `generate`."""
    parser = subparsers.add_parser("generate", help="write the files that are made from the models (for Tandem's developers)")
    parser.add_argument("--root", type=Path, default=_PACKAGE.parents[1], help="checkout to write into")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    parser.add_argument(
        "--refresh-pod-template",
        type=Path,
        metavar="FILE",
        help="first take PodTemplateSpec anew from what `kubectl get --raw /openapi/v3/apis/apps/v1` printed",
    )
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    root: Path = arguments.root
    if not (root / "pyproject.toml").is_file():
        raise CommandError(f"{root} is no checkout of Tandem; name one with --root")
    if arguments.refresh_pod_template:
        _refresh(arguments.refresh_pod_template)
    return _check(root) if arguments.check else _write(root)


def _check(root: Path) -> int:
    changed = [path for path, text in generate(root) if _differs(path, text)]
    for path in changed:
        sys.stdout.write(f"{path.relative_to(root)} is not what the models say; run `tandem generate`\n")
    return 1 if changed else 0


def _write(root: Path) -> int:
    for path, text in generate(root):
        if _differs(path, text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path.relative_to(root)}\n")
    return 0


def generate(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield every generated file below a checkout with its text.

    The chart is rendered from its files when its rendering is reached: write its templates as they come.
    """
    definitions = crd.definitions()
    for definition in definitions:
        plural, group = definition["metadata"]["name"].split(".", 1)
        yield root / "crds" / f"{group}_{plural}.yaml", documents.generated([definition])
        yield root / "charts" / "tandem" / "templates" / "crds" / f"{plural}.yaml", chart.definition_template(definition)
    pages = root / "docs" / "reference"
    yield pages / "api.md", reference.reference(definitions)
    yield pages / "conditions.md", words.conditions_page()
    yield pages / "profiles.md", words.profiles_page()
    rendered = helm.render(
        root / "charts" / "tandem", release=chart.RELEASE, namespace=chart.RELEASE_NAMESPACE, values=chart.INSTALL_VALUES
    )
    yield root / "manifests" / "install.yaml", chart.install_manifest(rendered)


def _differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_text(encoding="utf-8") != text


def _refresh(source: Path) -> None:
    try:
        text = podtemplate.pack(json.loads(source.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise CommandError(f"{source}: {error}") from error
    (_PACKAGE / podtemplate.FILE).write_text(text, encoding="utf-8")
