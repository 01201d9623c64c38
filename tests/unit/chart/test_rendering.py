"""What the chart renders, by Helm's own engine, without a cluster."""

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from tandem_cli import helm
from tandem_cli.errors import CommandError
from tandem_operator.cluster.permissions import (
    OWN_PERMISSIONS,
    PERMISSIONS,
    ROUTER_PERMISSIONS,
    WEBHOOK_PERMISSIONS,
    Permission,
)
from tandem_operator.handlers.webhook import PATH
from tandem_operator.render.context import NetworkSettings
from tandem_operator.settings import read_settings

_CHART = Path(__file__).parents[3] / "charts" / "tandem"
_IMAGE = {"image": {"repository": "registry.example.com/tandem", "tag": "1.2.3"}}
Rule = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def _rendered(**values: Any) -> list[dict[str, Any]]:
    """Return the objects of a release; without the definitions, which are long, unless they are asked for."""
    values = {"crds": {"enabled": False}} | values
    rendered = helm.render(_CHART, release="tandem", namespace="tandem-system", values=_IMAGE | values)
    texts = [text for path, text in rendered.items() if path.endswith(".yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


def _definitions(**values: bool) -> dict[str, str]:
    """Return the rendered text of the CRDs' templates."""
    rendered = helm.render(_CHART, release="tandem", namespace="tandem-system", values=_IMAGE | {"crds": values})
    return {path: text for path, text in rendered.items() if "/crds/" in path}


def _container(**values: Any) -> dict[str, Any]:
    (deployment,) = [each for each in _rendered(**values) if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def _granted(documents: list[dict[str, Any]], kinds: set[str], *, prefix: str) -> set[Rule]:
    roles = [each for each in documents if each["kind"] in kinds and each["metadata"]["name"].startswith(prefix)]
    return {
        (group, resource, tuple(sorted(rule["verbs"])), tuple(sorted(rule.get("resourceNames", ()))))
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def _wanted(permissions: tuple[Permission, ...]) -> set[Rule]:
    return {(each.group, each.resource, tuple(sorted(each.verbs)), tuple(sorted(each.names))) for each in permissions}


def test_the_operator_may_do_what_it_does_and_nothing_else() -> None:
    assert _granted(_rendered(), {"ClusterRole"}, prefix="tandem-operator") == _wanted(PERMISSIONS)


def test_in_its_own_namespace_the_operator_may_hold_one_lease() -> None:
    assert _granted(_rendered(), {"Role"}, prefix="tandem-operator-lease") == _wanted(OWN_PERMISSIONS)
    assert read_settings({each["name"]: each.get("value", "pod") for each in _container()["env"]}).lease == "tandem-operator"


def test_two_operators_prefer_two_nodes_and_a_drain_takes_one_at_a_time() -> None:
    (deployment,) = [each for each in _rendered() if each["kind"] == "Deployment"]
    (budget,) = [each for each in _rendered() if each["kind"] == "PodDisruptionBudget"]
    spec = deployment["spec"]
    (term,) = spec["template"]["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert spec["replicas"] == 2
    assert budget["spec"]["maxUnavailable"] == 1
    selected = spec["selector"]["matchLabels"]
    assert selected == budget["spec"]["selector"]["matchLabels"] == term["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert selected.items() <= spec["template"]["metadata"]["labels"].items()


def test_affinity_and_replicas_are_the_users() -> None:
    mine = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    (deployment,) = [each for each in _rendered(affinity=mine, operator={"replicas": 1}) if each["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["affinity"] == mine
    assert deployment["spec"]["replicas"] == 1


def test_how_many_routers_an_upgrade_rolls_at_once_is_the_users_and_at_least_one() -> None:
    for values, wanted in (({}, 5), ({"operator": {"routerRollouts": 2}}, 2)):
        environment = {each["name"]: each.get("value", "pod") for each in _container(**values)["env"]}
        assert read_settings(environment).router_rollouts == wanted
    with pytest.raises(CommandError, match="routerRollouts"):
        _rendered(operator={"routerRollouts": 0})


def test_watching_some_namespaces_needs_no_power_over_others() -> None:
    documents = _rendered(watchNamespaces=["team-a", "team-b"])
    global_ones = tuple(each for each in PERMISSIONS if each.cluster)
    assert _granted(documents, {"ClusterRole"}, prefix="tandem-operator") == _wanted(global_ones)
    roles = [each for each in documents if each["kind"] == "Role"]
    for namespace in ("team-a", "team-b"):
        within = [role for role in roles if role["metadata"]["namespace"] == namespace]
        assert _granted(within, {"Role"}, prefix="tandem-operator") == _wanted(PERMISSIONS) - _wanted(global_ones)


_WEBHOOK = {"webhook": {"enabled": True}}


def test_without_a_webhook_nothing_speaks_of_one() -> None:
    assert "webhook" not in str(_rendered()).lower()


def test_the_webhook_may_be_told_to_the_api_server_and_nothing_else() -> None:
    for namespaces in ([], ["team-a"]):
        documents = _rendered(**_WEBHOOK, watchNamespaces=namespaces)
        assert _granted(documents, {"ClusterRole"}, prefix="tandem-operator-webhook") == _wanted(WEBHOOK_PERMISSIONS)


def test_the_webhook_is_asked_about_changes_of_specs_within_watched_namespaces() -> None:
    documents = _rendered(**_WEBHOOK, watchNamespaces=["team-a"])
    (configuration,) = [each for each in documents if each["kind"] == "ValidatingWebhookConfiguration"]
    (webhook,) = configuration["webhooks"]
    assert (webhook["failurePolicy"], webhook["sideEffects"], webhook["timeoutSeconds"]) == ("Fail", "None", 5)
    assert [rule["operations"] for rule in webhook["rules"]] == [["CREATE", "UPDATE"]]
    assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == ["team-a"]


def test_the_operator_and_the_configuration_agree_on_the_webhooks_service() -> None:
    documents = _rendered(**_WEBHOOK)
    by_kind = {each["kind"]: each for each in documents}
    container = _container(**_WEBHOOK)
    settings = read_settings({each["name"]: each.get("value", "pod") for each in container["env"]})
    (webhook,) = by_kind["ValidatingWebhookConfiguration"]["webhooks"]
    service = by_kind["Service"]
    assert webhook["clientConfig"]["service"]["name"] == service["metadata"]["name"] == settings.webhook_service
    assert webhook["clientConfig"]["service"]["path"] == PATH
    assert by_kind["ValidatingWebhookConfiguration"]["metadata"]["name"] == settings.webhook_configuration
    assert {"name": "webhook", "containerPort": settings.webhook_port} in container["ports"]
    volumes = {each["name"]: each for each in by_kind["Deployment"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["webhook"]["secret"]["secretName"] == settings.webhook_secret
    assert str(settings.webhook_folder) in {each["mountPath"] for each in container["volumeMounts"]}
    assert service["spec"]["ports"][0]["targetPort"] == "webhook"


def test_a_router_may_find_its_workers_and_nothing_else() -> None:
    assert _granted(_rendered(), {"ClusterRole"}, prefix="tandem-router") == _wanted(ROUTER_PERMISSIONS)


def test_the_operator_understands_every_variable_that_the_chart_sets() -> None:
    values = {"workerImagePullSecrets": ["a", "b"], "watchNamespaces": ["team"], "nodePaths": {"allowed": True}}
    values["networkPolicy"] = {"clientNamespaces": ["gateway", "web"]}
    environment = {each["name"]: each.get("value", "pod") for each in _container(**values)["env"]}
    settings = read_settings(environment)
    assert settings.workers_image == "registry.example.com/tandem/workers:1.2.3"
    assert settings.image_pull_secrets == ("a", "b")
    assert settings.watch_namespaces == ("team",)
    assert settings.allow_node_paths
    assert settings.render.network == NetworkSettings(
        operator_namespace="pod", monitoring_namespaces=("monitoring",), client_namespaces=("gateway", "web")
    )


def test_network_policies_can_be_left_to_others() -> None:
    environment = {each["name"]: each.get("value", "") for each in _container(networkPolicy={"enabled": False})["env"]}
    assert read_settings(environment).render.network is None


def test_the_tag_is_the_charts_version_unless_given() -> None:
    version = yaml.safe_load((_CHART / "Chart.yaml").read_text())["appVersion"]
    assert _container(image={"repository": "r"})["image"] == f"r/operator:{version}"


def test_the_versions_of_chart_and_distribution_are_one() -> None:
    chart = yaml.safe_load((_CHART / "Chart.yaml").read_text())
    source = (Path(__file__).parents[3] / "operator" / "tandem_operator" / "__init__.py").read_text()
    (version,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__version__"
    ]
    assert chart["version"] == chart["appVersion"] == version


def test_without_a_registry_the_chart_says_what_to_set() -> None:
    with pytest.raises(CommandError, match=r"image\.repository must be set: there is no public registry"):
        helm.render(_CHART, release="tandem", namespace="tandem-system", values={})


@pytest.mark.parametrize(
    ("values", "named"),
    [({"imagee": {}}, "imagee"), ({"crds": {"enable": True}}, "enable"), ({"watchNamespaces": "a"}, "watchNamespaces")],
)
def test_a_wrong_value_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(CommandError, match=named):
        _rendered(**values)


def test_definitions_are_kept_unless_told_otherwise() -> None:
    kept = _definitions()
    assert sorted(kept) == ["templates/crds/inferenceservices.yaml", "templates/crds/workerpools.yaml"]
    assert all("    helm.sh/resource-policy: keep\n" in text for text in kept.values())
    assert all("helm.sh/resource-policy" not in text for text in _definitions(keep=False).values())
    assert "".join(_definitions(enabled=False).values()).strip() == ""


def test_the_operator_fits_the_restricted_pod_security_standard() -> None:
    (deployment,) = [each for each in _rendered() if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["allowPrivilegeEscalation"] is False
    assert container["readOnlyRootFilesystem"] is True
    assert container["capabilities"] == {"drop": ["ALL"]}


def test_every_value_is_in_the_schema_and_the_other_way_round() -> None:
    values = yaml.safe_load((_CHART / "values.yaml").read_text())
    schema = yaml.safe_load((_CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"])
    for name, part in schema["properties"].items():
        if part.get("additionalProperties") is False and part.get("type") == "object":
            assert set(values[name]) == set(part["properties"]), name
