"""The environment is checked at the start, and what is wrong is named."""

import pytest

from tandem_operator.settings import SettingsError, read_settings

LEAST = {"TANDEM_WORKERS_IMAGE": "example.test/workers:1"}


def test_the_least_environment_has_defaults_for_the_rest() -> None:
    settings = read_settings(LEAST | {"PATH": "/bin", "TANDEM_SOMETHING_ELSE": "x"})
    assert (settings.watch_namespaces, settings.concurrency, settings.scaling_interval) == ((), 8, 15.0)
    assert settings.render.workers_image == "example.test/workers:1"


def test_lists_durations_and_switches_are_read() -> None:
    given = {
        "TANDEM_WATCH_NAMESPACES": "a, b,",
        "TANDEM_SCALING_INTERVAL": "1m30s",
        "TANDEM_ALLOW_NODE_PATHS": "true",
        "TANDEM_IMAGE_PULL_POLICY": "",
    }
    settings = read_settings(LEAST | given)
    assert settings.watch_namespaces == ("a", "b")
    assert settings.scaling.interval == 90.0
    assert settings.scaling.stale_after == 360.0
    assert settings.render.allow_node_paths is True
    assert settings.render.image_pull_policy is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "TANDEM_WORKERS_IMAGE"),
        (LEAST | {"TANDEM_SCALING_INTERVAL": "15"}, "TANDEM_SCALING_INTERVAL"),
        (LEAST | {"TANDEM_SCALING_INTERVAL": "0s"}, "TANDEM_SCALING_INTERVAL"),
        (LEAST | {"TANDEM_CONCURRENCY": "0"}, "TANDEM_CONCURRENCY"),
        (LEAST | {"TANDEM_ROUTER_ROLLOUTS": "0"}, "TANDEM_ROUTER_ROLLOUTS"),
        (LEAST | {"TANDEM_LOG_LEVEL": "loud"}, "TANDEM_LOG_LEVEL"),
        (LEAST | {"TANDEM_METRICS_PORT": "70000"}, "TANDEM_METRICS_PORT"),
    ],
)
def test_a_wrong_variable_is_named(given: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        read_settings(given)
