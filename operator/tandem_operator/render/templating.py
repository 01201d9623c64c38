"""Templates that cannot be broken out of: jinja2 for the shape, whole YAML nodes for the values.

While a template is rendered every `{{ }}` becomes an ASCII placeholder, which is replaced in the parsed tree by the
value itself. So no value is ever read as YAML, loses a character or changes its type, and any value that JSON knows fits.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml

__all__ = ["TEMPLATES", "TemplateError", "render"]

TEMPLATES = Path(__file__).parent / "templates"
_VALUES = "_values_in_order"
_MARK = "tandem-value-"
_SHAPES = 512
"""Manifests without their values that are remembered; a template has a handful, by which fields a user wrote."""
_JSON_TYPES = (str, int, bool, list, dict)
"""Exactly these: an enum looks like text and would be written as something else."""

# The C loader reads the same YAML ten times faster; PyYAML leaves it out where libyaml is missing.
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class TemplateError(ValueError):
    """A template of the package is wrong: it names something undefined, or a value that is not a whole YAML node."""


def render(template: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object that a template describes.

    Args:
        template: File name in `templates/`, without `.yaml.j2`.
        values: Names that the template may use.

    Raises:
        TemplateError: the template is wrong; never because of a value's content.
    """
    slots: list[Any] = []
    try:
        text = _environment().get_template(f"{template}.yaml.j2").render(values, **{_VALUES: slots})
        tree = _parsed(text)
    except (jinja2.TemplateError, yaml.YAMLError) as error:
        raise TemplateError(f"template {template}: {error}") from error
    found = _filled(tree, slots)
    if not isinstance(found, dict):
        raise TemplateError(f"template {template}: it describes no object")
    return found


@functools.lru_cache(maxsize=_SHAPES)
def _parsed(text: str) -> Any:
    """Parse a manifest whose values are placeholders: services of one shape have the same text, and it is not changed."""
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - the loader is a safe one


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        finalize=_placeholder,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - values never become text, so there is nothing to escape
    )


@jinja2.pass_context
def _placeholder(context: jinja2.runtime.Context, value: Any) -> str:
    if isinstance(value, jinja2.Undefined):
        str(value)  # raises jinja2's own message, which names what is undefined
    if type(value) not in _JSON_TYPES:
        raise jinja2.TemplateRuntimeError(f"{value!r} is not a JSON value; leave the key out with {{% if %}}, or convert it")
    slots: list[Any] = context[_VALUES]
    slots.append(value)
    return f"{_MARK}{len(slots) - 1:06d}"


def _filled(node: Any, slots: list[Any]) -> Any:
    if isinstance(node, dict):
        return {_filled(key, slots): _filled(value, slots) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(item, slots) for item in node]
    if not isinstance(node, str) or _MARK not in node:
        return node
    head, _, number = node.partition(_MARK)
    if head or not number.isdigit():
        raise TemplateError(f"'{node}' is not a whole YAML node: join its parts inside one {{{{ }}}} with ~")
    return slots[int(number)]
