"""What each sample becomes, in full, in the file of its name beside this one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support import golden, specs
from tandem_operator.policies import replicas
from tandem_operator.render.context import Owner
from tandem_operator.render.revisions import RoleRendered
from tandem_operator.render.service import render_service
from tandem_operator.render.workers import worker_deployment

_HERE = Path(__file__).parent
_SAMPLES = sorted((_HERE.parents[2] / "crds" / "samples").glob("*.yaml")) + sorted((_HERE / "inputs").glob("*.yaml"))


def _services(file: Path) -> list[dict[str, Any]]:
    documents = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    return [document for document in documents if document and document["kind"] == "InferenceService"]


def _in_short(rendered: RoleRendered) -> dict[str, Any]:
    """The frozen template equals the Deployment's, so it is written out once."""
    data = rendered.revision["data"]
    assert data["template"] == rendered.deployment_template["spec"]["template"]
    short = {**data, "template": "<the template of the Deployment of the same name>"}
    return {**rendered.revision, "data": short}


@pytest.mark.parametrize("file", _SAMPLES, ids=lambda file: file.stem)
def test_a_sample_renders_as_written_down(file: Path) -> None:
    found = []
    for service in _services(file):
        spec = specs.read(service["spec"])
        owner = Owner(service["metadata"]["name"], "default", "00000000-0000-0000-0000-000000000000")
        rendered = render_service(owner=owner, spec=spec, settings=specs.SETTINGS, revisions={})
        revisions = {role.revision["metadata"]["name"]: _in_short(role) for role in rendered.roles}
        found += [
            revisions.get(child["metadata"]["name"], child) if child["kind"] == "ControllerRevision" else child
            for child in rendered.objects
        ]
        found += [worker_deployment(role, replicas.start(spec, role.role)) for role in rendered.roles]
    header = f"Rendered from {file.name}. Written by REWRITE_GOLDEN=1 python -m pytest tests/golden"
    golden.compare(golden.dump(found, header=header), _HERE / f"{file.stem}.yaml")


def test_no_file_is_left_of_a_sample_that_is_gone() -> None:
    assert {file.stem for file in _HERE.glob("*.yaml")} == {file.stem for file in _SAMPLES}
