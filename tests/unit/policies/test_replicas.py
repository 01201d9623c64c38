"""Exactly one writer owns a role's count."""

from typing import Any

import pytest

from support import specs
from tandem_api.names import Role
from tandem_operator.policies import replicas

_SCALED = {"slo": {"tpot": {"target": "50ms"}}, "autoscaling": {"decode": {"min": 2, "max": 4}}}
_EXTERNAL = _SCALED | {"autoscaling": {"mode": "External", "decode": {"min": 2, "max": 4}}}
_GIVEN_AWAY = {"autoscaling": {"mode": "External"}}
_RECOMMENDED = _SCALED | {"autoscaling": {"mode": "Recommend", "decode": {"min": 2, "max": 4}}}


@pytest.mark.parametrize(
    ("extra", "written", "start", "declared"),
    [
        ({}, None, 1, None),
        ({}, 5, 5, 5),
        ({}, 0, 0, 0),
        (_SCALED, None, 2, None),
        (_SCALED, 3, 3, None),
        (_SCALED, 9, 4, None),
        (_SCALED, 0, 2, None),
        (_RECOMMENDED, None, 1, None),
        (_RECOMMENDED, 9, 9, 9),
        (_EXTERNAL, None, 1, None),
        (_EXTERNAL, 9, 9, None),
        (_GIVEN_AWAY, 3, 3, None),
    ],
)
def test_the_spec_prescribes_a_count_only_where_nobody_else_owns_it(
    extra: dict[str, Any], written: int | None, start: int, declared: int | None
) -> None:
    tree = specs.disaggregated() | extra
    spec = specs.read(specs.changed(tree, "decode.replicas", written))
    assert replicas.start(spec, Role.DECODE) == start
    assert replicas.declared(spec, Role.DECODE) == declared


def test_bounds_of_one_role_say_nothing_about_the_other() -> None:
    spec = specs.read(specs.changed(specs.disaggregated() | _SCALED, "prefill.replicas", 7))
    assert replicas.declared(spec, Role.PREFILL) == 7
    assert replicas.bounds(spec, Role.PREFILL) is None


def test_the_bounds_of_decode_are_those_of_an_aggregated_pool() -> None:
    spec = specs.read(specs.aggregated() | _SCALED)
    assert replicas.start(spec, Role.AGGREGATED) == 2
    assert replicas.declared(spec, Role.AGGREGATED) is None


def test_external_gives_the_count_of_every_role_away_whichever_have_bounds() -> None:
    spec = specs.read(specs.changed(specs.disaggregated() | _EXTERNAL, "prefill.replicas", 7))
    assert replicas.start(spec, Role.PREFILL) == 7
    assert replicas.declared(spec, Role.PREFILL) is None
