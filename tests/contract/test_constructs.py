"""The constructs of `modelyard.k8s` in a chart of somebody's own."""

from __future__ import annotations

import pytest
from cdk8s import App, Chart, JsonPatch

from modelyard import k8s
from modelyard.objects.checks.jobs import bench_job
from modelyard.objects.composition import environment_objects
from modelyard.objects.manifest import Manifest
from modelyard.objects.serving.weights import fetched_sources
from modelyard.objects.yaml_text import to_yaml
from modelyard.planning import ModelPlan, Plan
from modelyard.project import load_project
from tests.contract.conftest import folders_of


@pytest.fixture(scope="module")
def planned() -> Plan:
    found = load_project("serving", *folders_of("serving")).plan()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def rendered(planned: Plan) -> dict[str, list[Manifest]]:
    return environment_objects(planned)


def only(planned: Plan, name: str) -> ModelPlan:
    (found,) = [plan for plan in planned.models if plan.name == name]
    return found


@pytest.fixture
def chart() -> Chart:
    return Chart(App(), "chart", disable_resource_name_hashes=True)


def objects_of(chart: Chart) -> list[Manifest]:
    """The chart's objects as plain data; jsii hands numbers back as floats, which are written as they
    were."""
    return [dict(item) for item in chart.to_json()]


def texts(objects: list[Manifest]) -> set[str]:
    return {to_yaml(item) for item in objects}


@pytest.mark.parametrize("name", ["lora", "split", "two-nodes", "nightly", "gguf-gpu"])
def test_a_model_in_a_chart_of_ones_own_gives_the_rendered_objects(
    chart: Chart, planned: Plan, rendered: dict[str, list[Manifest]], name: str
) -> None:
    for plan in (plan for plan in planned.models if plan.model.name == name):
        assert not plan.model.patches
        k8s.ModelServer(chart, f"Server-{plan.role}", plan=plan, environment=planned.environment)
        if not plan.model.batch:
            k8s.ModelMonitoring(chart, f"Rules-{plan.role}", plan=plan, environment=planned.environment)
    assert texts(objects_of(chart)) == texts(rendered[f"models/{name}"])


def test_what_models_share_gives_rendered_objects(
    chart: Chart, planned: Plan, rendered: dict[str, list[Manifest]]
) -> None:
    environment = planned.environment
    namespace = environment.namespace
    kinds = [pool.accelerator for pool in environment.pools.values()]
    k8s.ModelNamespace(chart, "Namespace", environment=environment)
    k8s.GeneralPool(chart, "General", environment=environment)
    k8s.ModelCache(chart, "Cache", namespace=namespace, cache=environment.cache)
    k8s.SynchronizedSecrets(
        chart,
        "Secrets",
        namespace=namespace,
        region=environment.region,
        secrets=environment.secrets,
        readers=["model-gateways"] if environment.gateways.internal or environment.gateways.public else [],
    )
    for name, pool in environment.pools.items():
        k8s.AcceleratorPool(chart, f"Pool-{name}", name=name, pool=pool, environment=environment)
    for name, team in environment.teams.items():
        k8s.TeamNamespace(
            chart,
            f"Team-{name}",
            name=environment.team_namespace(name),
            team=name,
            pools=kinds,
            granted=team.notebooks,
        )
        if team.accelerators is not None:
            k8s.TeamShare(
                chart,
                f"Share-{name}",
                namespace=namespace,
                team=name,
                pools=kinds,
                granted=team.accelerators,
                rollouts=planned.rollout_room(name),
            )
    made = texts(objects_of(chart))
    assert made <= texts(rendered["platform"])
    assert len(made) > 20


def test_jobs_give_the_rendered_objects(
    chart: Chart, planned: Plan, rendered: dict[str, list[Manifest]]
) -> None:
    plan, environment = only(planned, "lora"), planned.environment
    k8s.SmokeJob(chart, "Smoke", plan=plan, environment=environment)
    assert texts(objects_of(chart)) <= texts(rendered["checks/lora"])
    k8s.BenchJob(chart, "Bench", plan=plan, environment=environment)
    assert to_yaml(bench_job(plan, environment)) in texts(objects_of(chart))
    fetch = Chart(App(), "fetch")
    for number, source in enumerate(fetched_sources(plan)):
        k8s.WeightsFetch(
            fetch,
            f"Fetch{number}",
            source=source,
            environment=environment.name,
            namespace=environment.namespace,
            token_secret=plan.token_secret,
        )
    assert texts(objects_of(fetch)) <= texts(rendered["models/_weights"])


def test_an_addon_gives_the_rendered_objects(chart: Chart, rendered: dict[str, list[Manifest]]) -> None:
    (release,) = [
        item
        for item in rendered["addons"]
        if item["kind"] == "HelmRelease" and item["metadata"]["name"] == "keda"
    ]
    (source,) = [
        item
        for item in rendered["addons"]
        if item["kind"] == "HelmRepository" and item["metadata"]["name"] == "keda"
    ]
    wanted = release["spec"]["chart"]["spec"]
    k8s.HelmAddon(
        chart,
        "Keda",
        name="keda",
        namespace="keda",
        repository=source["spec"]["url"],
        chart=wanted["chart"],
        version=wanted["version"],
        values=release["spec"]["values"],
    )
    assert texts(objects_of(chart)) == texts([release, source])


def test_a_chart_may_change_an_object_of_ours(chart: Chart, planned: Plan) -> None:
    server = k8s.ModelServer(chart, "Server", plan=only(planned, "lora"), environment=planned.environment)
    server.object("PodDisruptionBudget").add_json_patch(JsonPatch.replace("/spec/maxUnavailable", 2))
    (budget,) = [item for item in objects_of(chart) if item["kind"] == "PodDisruptionBudget"]
    assert budget["spec"]["maxUnavailable"] == 2


def test_an_object_that_is_not_there_is_named_beside_those_that_are(chart: Chart, planned: Plan) -> None:
    server = k8s.ModelServer(chart, "Server", plan=only(planned, "lora"), environment=planned.environment)
    with pytest.raises(LookupError, match=r"0 objects are CronJob.*Deployment lora"):
        server.object("CronJob")
