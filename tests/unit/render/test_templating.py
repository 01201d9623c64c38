"""Values cannot break out of their place, and a wrong template says so."""

import re
from pathlib import Path
from typing import Any

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import specs
from tandem_operator.render import templating
from tandem_operator.render.service import render_service

_FILES = sorted(templating.TEMPLATES.glob("*.yaml.j2"))
_WHOLE_NODE = re.compile(r"^\s*(- )*([A-Za-z0-9./_-]+: )?(\{\{ [^{}]+ \}\}|\[\{\{ [^{}]+ \}\}\]|\[[^{}]*\{\{ [^{}]+ \}\}\])$")

_JSON = st.recursive(
    st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.name)
def test_each_expression_of_a_template_is_a_whole_yaml_node(file: Path) -> None:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if "{{" in line]
    assert [line for line in lines if not _WHOLE_NODE.match(line)] == []


@settings(max_examples=40)
@given(_JSON)
def test_any_value_arrives_as_it_was(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        _use(patch, "field: {{ value }}\n")
        assert templating.render("test", {"value": value}) == {"field": value}


@pytest.mark.parametrize(
    "name", ["a: b", "'", '"', "{{ x }}", "# no comment", "\n- item", "!!python/object:os.system", "é☃", "&a", "*a"]
)
def test_a_hostile_served_name_stays_one_argument(name: str) -> None:
    tree = specs.changed(specs.disaggregated(), "model.servedName", name)
    spec = specs.read(tree) if re.fullmatch(r"[^\s\x00-\x1f]+", name) else specs.read(specs.disaggregated())
    rendered = render_service(owner=specs.OWNER, spec=spec, settings=specs.SETTINGS, revisions={})
    args = rendered.roles[0].deployment_template["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[args.index("--served-model-name") + 1] == (spec.model.served_name or "Qwen3-8B")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("field: {{ missing }}", "'missing' is undefined"),
        ("field: {{ value.missing }}", "missing"),
        ("field: {{ none }}", "is not a JSON value"),
        ("field: {{ role }}", "is not a JSON value"),
        ("field: before-{{ value }}", "not a whole YAML node"),
        ("field: {{ value }}{{ value }}", "not a whole YAML node"),
        ("- {{ value }}", "it describes no object"),
        ("field: [", "template test"),
    ],
)
def test_a_wrong_template_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    _use(monkeypatch, text)
    values = {"value": "x", "none": None, "role": specs.read(specs.aggregated()).profile}
    with pytest.raises(templating.TemplateError, match=re.escape(said)):
        templating.render("test", values)


def _use(patch: pytest.MonkeyPatch, text: str) -> None:
    environment = templating._environment().overlay(loader=jinja2.DictLoader({"test.yaml.j2": text}))  # noqa: SLF001 - templates are the package's own files
    patch.setattr(templating, "_environment", lambda: environment)


def test_what_is_done_to_one_manifest_is_not_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, "kind: A\nspec: {list: [a, {b: c}]}\n")
    first = templating.render("test", {})
    first["spec"]["list"][1]["b"] = "changed"
    first["spec"]["list"].append("more")
    assert templating.render("test", {}) == {"kind": "A", "spec": {"list": ["a", {"b": "c"}]}}
