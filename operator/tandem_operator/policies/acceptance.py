"""Whether a spec makes sense as a whole: what the schema and CEL cannot see.

One function for the reconcile (condition `Accepted`), the webhook and offline validation. Deterministic: the same spec
gives the same problems in the same order. Every message names the fields that disagree and what is allowed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.policies import argument_rules, pair_rules, role_rules, roles, router_rules, termination
from tandem_operator.policies.pod_template import template_problems
from tandem_operator.policies.problems import Problem

__all__ = ["Installation", "Problem", "Verdict", "accept"]


class Installation(Protocol):
    """What acceptance needs of the installation's settings (`render.context.Settings` fits)."""

    @property
    def allow_node_paths(self) -> bool:
        """Whether `file://` models may mount a path of the node."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `accept` found."""

    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]

    @property
    def accepted(self) -> bool:
        """Whether the spec may be rendered."""
        return not self.errors

    @property
    def message(self) -> str:
        """What is wrong, in one line: the condition `Accepted` and the webhook say the same."""
        return " ".join(f"{problem.line}." for problem in self.errors)


def accept(spec: InferenceServiceSpec, settings: Installation) -> Verdict:
    """Check one spec that the schema already passed."""
    errors = [*_model(spec, settings), *argument_rules.errors(spec)]
    warnings: list[Problem] = []
    for role in roles.roles(spec):
        errors += [*role_rules.errors(spec, role), *_template(spec, role, settings)]
        warnings += role_rules.warnings(spec, role)
    if spec.prefill is not None:
        errors += pair_rules.errors(spec)
        warnings += pair_rules.warnings(spec)
    warnings += router_rules.warnings(spec)
    return Verdict(tuple(errors), tuple(warnings))


def _model(spec: InferenceServiceSpec, settings: Installation) -> Iterator[Problem]:
    uri, revision, name = spec.model.uri, spec.model.revision, spec.model.served_name
    if uri.startswith("file://") and not settings.allow_node_paths:
        yield Problem("spec.model.uri", "paths of the node are not allowed here", "use 'hf://' or 'pvc://'")
    if ".." in uri.split("://", 1)[1].split("/"):
        yield Problem("spec.model.uri", "may not contain '..'", "write the path itself")
    for field, value in (("revision", revision), ("servedName", name)):
        if value and value.startswith("-"):
            yield Problem(f"spec.model.{field}", "may not begin with '-'", "the engine would read it as a flag")


def _template(spec: InferenceServiceSpec, role: Role, settings: Installation) -> Iterator[Problem]:
    own = roles.role_spec(spec, role)
    yield from template_problems(
        own.template or {},
        path=f"{roles.field_path(role)}.template",
        resources=roles.resources(own),
        least_grace=termination.grace_period(spec, role),
        node_paths=settings.allow_node_paths,
    )
