"""What `tandem validate` says of each generated object, a line each; tests/apiserver asks a real API server the same."""

from pathlib import Path

from support import corpus, golden, mutations

_FILE = Path(__file__).with_name("generated.txt")


def test_every_generated_object_is_judged_as_written_down() -> None:
    lines = [f"{corpus.offline(mutant.tree).line(mutant.name)}\n" for mutant in mutations.mutants()]
    golden.compare("".join(lines), _FILE)


def test_the_corpus_is_large_and_has_objects_of_every_verdict() -> None:
    verdicts = [verdict.kind for verdict in corpus.generated(_FILE).values()]
    written = sum(len(corpus.cases(kind)) for kind in corpus.KINDS)
    assert len(verdicts) + written >= 300
    assert set(verdicts) == set(corpus.KINDS)


def test_no_two_generated_objects_have_the_same_name() -> None:
    names = [mutant.name for mutant in mutations.mutants()]
    assert len(names) == len(set(names))
