"""What `tandem validate` says of the corpus; tests/apiserver holds the same corpus against a real API server."""

from pathlib import Path

import pytest

from support.corpus import Case, cases
from tandem_cli.checks import manifests, verdict
from tandem_cli.errors import CommandError

_SAMPLES = sorted((Path(__file__).parents[3] / "crds" / "samples").glob("*.yaml"))
_ALLOWED = verdict.Installation(allow_node_paths=True)


def _refusals(text: str, installation: verdict.Installation) -> str:
    """Return all errors, a line each; empty if the object is valid."""
    try:
        documents = list(manifests.read(text, source="case"))
    except CommandError as error:
        return str(error)
    return "\n".join(problem.line for document, _ in documents for problem in verdict.judge(document, installation).errors)


@pytest.mark.parametrize("case", cases("valid"), ids=lambda case: case.file.stem)
def test_a_valid_object_is_accepted(case: Case) -> None:
    assert _refusals(case.text, _ALLOWED) == ""


@pytest.mark.parametrize("case", cases("invalid"), ids=lambda case: case.file.stem)
def test_an_invalid_object_is_refused_with_its_path(case: Case) -> None:
    assert case.expected in _refusals(case.text, _ALLOWED)


@pytest.mark.parametrize("case", cases("unaccepted"), ids=lambda case: case.file.stem)
def test_what_only_the_operator_can_refuse_is_refused_offline_too(case: Case) -> None:
    assert case.expected in _refusals(case.text, verdict.Installation())


@pytest.mark.parametrize("sample", _SAMPLES, ids=lambda path: path.stem)
def test_every_sample_is_accepted(sample: Path) -> None:
    assert _refusals(sample.read_text(encoding="utf-8"), _ALLOWED) == ""


def test_every_refusal_of_the_corpus_says_what_it_expects() -> None:
    assert [case.file.name for kind in ("invalid", "unaccepted") for case in cases(kind) if not case.expected] == []
