"""The corpus against a real API server: what is refused here is refused offline, with the same path, and nothing else is.

Files are sent as they are, so that YAML is read by Kubernetes' own reader; nothing is stored.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support import corpus, mutations
from support.kube import Kube, KubeError
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_cli.checks import verdict
from tandem_cli.schema import podtemplate
from tandem_operator.policies.acceptance import accept

_ROOT = Path(__file__).parents[2]
_SAMPLES = sorted((_ROOT / "crds" / "samples").glob("*.yaml"))
_GENERATED = _ROOT / "tests" / "golden" / "corpus" / "generated.txt"


def _created(kube: Kube, kind: str, body: Any, content_type: str) -> tuple[dict[str, Any], str]:
    """Return the object as it would be stored, and why it is refused; one of them is empty."""
    path = f"{kube.path(kind)}?dryRun=All&fieldValidation=Strict"
    try:
        return kube.send("POST", path, body, content_type=content_type), ""
    except KubeError as error:
        if error.status not in {400, 422}:
            raise
        message: str = json.loads(str(error).partition(": ")[2])["message"]
        return {}, message


def _refusal(kube: Kube, file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    kind = re.search(r"^kind: (\w+)", text, re.MULTILINE)
    assert kind, file
    return _created(kube, kind[1], text, "application/yaml")[1]


def test_the_api_server_takes_what_the_schema_allows(cluster: Kube) -> None:
    allowed = [*_SAMPLES, *(case.file for kind in ("valid", "unaccepted") for case in corpus.cases(kind))]
    assert {file.name: refusal for file in allowed if (refusal := _refusal(cluster, file))} == {}


def test_the_api_server_refuses_what_the_schema_refuses_with_its_path(cluster: Kube) -> None:
    said = {case.file.name: (case.expected, _refusal(cluster, case.file)) for case in corpus.cases("invalid")}
    assert {name: pair for name, pair in said.items() if pair[0] not in pair[1]} == {}


def test_the_api_server_and_the_operator_judge_generated_objects_as_they_are_judged_offline(cluster: Kube) -> None:
    written, wrong = corpus.generated(_GENERATED), {}
    for mutant in mutations.mutants():
        stored, refusal = _created(cluster, "InferenceService", mutant.tree, "application/json")
        judged = written.pop(mutant.name)
        if judged.kind == "invalid":
            agreed = judged.said in refusal if refusal else False
        else:
            agreed = not refusal and _accepted(stored) == _offline(mutant.tree)
        if not agreed:
            wrong[mutant.name] = (judged, refusal)
    assert (wrong, written) == ({}, {})


def _accepted(stored: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return what the operator says of an object that the API server took."""
    found = accept(InferenceServiceSpec.model_validate(stored["spec"]), verdict.Installation())
    return [each.line for each in found.errors], [each.line for each in found.warnings]


def _offline(tree: dict[str, Any]) -> tuple[list[str], list[str]]:
    found = verdict.judge(tree, verdict.Installation())
    return [each.line for each in found.errors], [each.line for each in found.warnings]


def test_the_embedded_pod_template_is_the_api_servers_own(cluster: Kube) -> None:
    served = cluster.send("GET", "/openapi/v3/apis/apps/v1")
    assert podtemplate.extract(served) == podtemplate.load()


def test_the_count_of_a_pool_is_written_by_the_scale_subresource(kube: Kube) -> None:
    pool = {
        "apiVersion": "serving.tandem.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": "chat-decode"},
        "spec": {"service": "chat", "role": "decode"},
    }
    assert "replicas" not in kube.create(pool)["spec"]
    kube.patch("WorkerPool", "chat-decode", {"spec": {"replicas": 3}}, subresource="scale")
    assert kube.get("WorkerPool", "chat-decode")["spec"]["replicas"] == 3


def test_the_role_of_a_pool_is_immutable(kube: Kube) -> None:
    pool = {
        "apiVersion": "serving.tandem.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": "chat-decode"},
        "spec": {"service": "chat", "role": "decode"},
    }
    kube.create(pool)
    with pytest.raises(Exception, match="`role` is immutable"):
        kube.patch("WorkerPool", "chat-decode", {"spec": {"role": "prefill"}})
