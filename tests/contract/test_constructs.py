"""The constructs of `modelyard.k8s` in a user's own chart."""

from __future__ import annotations

from typing import Any

import pytest
from cdk8s import App, Chart, JsonPatch

from modelyard import Environment, Model, k8s, plan
from modelyard.names import WEIGHTS_FOLDER
from modelyard.objects.checks.jobs import bench_job
from modelyard.objects.composition import environment_objects
from modelyard.objects.manifest import Manifest
from modelyard.objects.platform.accelerator_pool import accelerator_pool
from modelyard.objects.platform.general_pool import general_pool
from modelyard.objects.platform.namespace import model_namespace
from modelyard.objects.serving.weights import fetched_sources
from modelyard.objects.yaml_text import to_yaml
from modelyard.planning import ModelPlan, Plan
from modelyard.project import load_project
from modelyard.spec import Pool
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
    models = [plan.model for plan in planned.models if plan.model.name == name]
    assert not any(model.patches for model in models)
    k8s.ModelServer(chart, "Server", plan=planned, model=name)
    if not models[0].batch:
        k8s.ModelMonitoring(chart, "Rules", plan=planned, model=name)
    assert texts(objects_of(chart)) == texts(rendered[f"models/{name}"])


def test_what_models_share_gives_rendered_objects(
    chart: Chart, planned: Plan, rendered: dict[str, list[Manifest]]
) -> None:
    environment = planned.environment
    namespace = environment.namespace
    kinds = [pool.accelerator for pool in environment.pools.values()]
    k8s.ModelNamespace(
        chart,
        "Namespace",
        checks=environment.checks.enabled,
        fetches_from_buckets=bool(environment.readable_buckets),
    )
    k8s.GeneralPool(
        chart, "General", environment=environment.name, availability_zones=environment.availability_zones
    )
    k8s.ModelCache(chart, "Cache")
    k8s.SynchronizedSecrets(
        chart,
        "Secrets",
        namespace=namespace,
        region=environment.region,
        secrets=environment.secrets,
        readers=["model-gateways"] if environment.gateways.internal or environment.gateways.public else [],
    )
    for name, pool in environment.pools.items():
        k8s.AcceleratorPool(
            chart,
            f"Pool-{name}",
            name=name,
            pool=pool,
            environment=environment.name,
            availability_zones=environment.availability_zones,
        )
    for name, team in environment.teams.items():
        k8s.TeamNamespace(
            chart,
            f"Team-{name}",
            name=environment.team_namespace(name),
            team=name,
            pools=kinds,
            granted=team.notebooks,
            models_namespace=namespace,
            monitoring_namespace=environment.monitoring.namespace if environment.monitoring.enabled else None,
            auto_mode=environment.cluster.auto_mode,
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
    k8s.SmokeJob(chart, "Smoke", plan=planned, model="lora")
    assert texts(objects_of(chart)) <= texts(rendered["checks/lora"])
    k8s.BenchJob(chart, "Bench", plan=planned, model="lora")
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
            images=environment.routes,
        )
    jobs = [item for folder, items in rendered.items() if folder.startswith(WEIGHTS_FOLDER) for item in items]
    assert texts(objects_of(fetch)) <= texts(jobs)


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
    server = k8s.ModelServer(chart, "Server", plan=planned, model="lora")
    server.object("PodDisruptionBudget").add_json_patch(JsonPatch.replace("/spec/maxUnavailable", 2))
    (budget,) = [item for item in objects_of(chart) if item["kind"] == "PodDisruptionBudget"]
    assert budget["spec"]["maxUnavailable"] == 2


def test_an_object_that_is_not_there_is_named_beside_those_that_are(chart: Chart, planned: Plan) -> None:
    server = k8s.ModelServer(chart, "Server", plan=planned, model="lora")
    with pytest.raises(LookupError, match=r"0 objects are CronJob.*Deployment lora"):
        server.object("CronJob")


def test_a_disaggregated_model_is_asked_and_served_as_one(chart: Chart, planned: Plan) -> None:
    smoke = k8s.SmokeJob(chart, "Smoke", plan=planned, model="split")
    assert smoke.object("Job").name.startswith("split-smoke-")
    server = k8s.ModelServer(chart, "Server", plan=planned, model="split")
    assert server.object("ServiceAccount", "split") != server.object("ServiceAccount", "split-prefill")


def test_a_model_that_the_plan_does_not_have_is_refused(chart: Chart, planned: Plan) -> None:
    with pytest.raises(LookupError, match=r"model=lra is none of the plan's: .*lora"):
        k8s.ModelServer(chart, "Server", plan=planned, model="lra")
    with pytest.raises(LookupError, match=r"model=None is none of the plan's"):
        k8s.ModelServer(chart, "Server", plan=planned)
    with pytest.raises(TypeError, match="a ModelPlan needs one"):
        k8s.ModelServer(chart, "Server", plan=only(planned, "lora"))


def test_the_only_model_of_a_plan_need_not_be_named(chart: Chart) -> None:
    settings = {
        "name": "team",
        "account": "123456789012",
        "region": "us-east-1",
        "availabilityZones": ["us-east-1a", "us-east-1b"],
        "pools": {"gpu": {"accelerator": "l40s", "limit": 4}},
    }
    model = {"name": "qwen", "model": "hf://Qwen/Qwen3-8B", "accelerator": "l40s", "replicas": 2}
    planned = plan([Model.model_validate(model)], Environment.model_validate(settings))

    server = k8s.ModelServer(chart, "Qwen", plan=planned)

    assert server.object("Deployment").name == "qwen"


@pytest.mark.parametrize("auto_mode", [False, True])
def test_props_say_of_nodes_what_an_environment_says(chart: Chart, auto_mode: bool) -> None:
    zones = ("us-west-2a", "us-west-2b", "us-west-2c")
    subnets = {zone: f"subnet-0000000{number}" for number, zone in enumerate(zones)}
    pool = Pool(accelerator="h100", limit=16, fabric="efa", zones=zones[:1], ami="bottlerocket@v1.44.0")
    environment = Environment.model_validate(
        {
            "name": "prod",
            "account": "123456789012",
            "region": "us-west-2",
            "availabilityZones": zones,
            "policy": "strict",
            "namespace": "llms",
            "checks": {"smoke": False},
            "cluster": {
                "name": "shared",
                "compute": "auto-mode" if auto_mode else "karpenter",
                "generalNodes": {"vcpuLimit": 64, "ami": "al2023@latest"},
            },
            "network": {"prefixDelegation": True}
            | ({"podCidr": "100.64.0.0/16"} if auto_mode else {})
            | ({} if auto_mode else {"vpc": {"id": "vpc-00000001", "privateSubnets": subnets}}),
            "tags": {"team": "ml"},
        }
    )
    wanted = [
        *accelerator_pool(name="gpu", pool=pool, environment=environment),
        *general_pool(environment),
        *model_namespace(environment),
    ]
    nodes: dict[str, Any] = {
        "environment": "prod",
        "availability_zones": zones,
        "cluster_name": "shared",
        "compute": "auto-mode" if auto_mode else "karpenter",
        "private_subnets": None if auto_mode else subnets,
        "pod_subnets": auto_mode,
        "tags": {"team": "ml"},
    }
    k8s.AcceleratorPool(chart, "Gpu", name="gpu", pool=pool, drift_at_night=True, **nodes)
    k8s.GeneralPool(chart, "General", vcpu_limit=64, ami="al2023@latest", prefix_delegation=True, **nodes)
    k8s.ModelNamespace(chart, "Namespace", namespace="llms", compute=nodes["compute"], checks=False)

    assert texts(objects_of(chart)) == texts(wanted)


def test_a_pool_without_zones_is_refused(chart: Chart) -> None:
    pool = Pool(accelerator="l40s", limit=4)
    with pytest.raises(ValueError, match="availability_zones\n  Tuple should have at least 2 items"):
        k8s.AcceleratorPool(chart, "Gpu", name="gpu", pool=pool, environment="team")


def test_a_cache_of_ones_own_is_mounted_by_its_ids(chart: Chart) -> None:
    k8s.ModelCache(chart, "Cache", file_system_id="fs-01234567", access_point_id="fsap-01234567")

    (volume,) = [item for item in objects_of(chart) if item["kind"] == "PersistentVolume"]
    assert volume["spec"]["csi"]["volumeHandle"] == "fs-01234567::fsap-01234567"


@pytest.mark.parametrize(
    ("construct", "former", "message"),
    [
        ("ModelServer", ("plan", "environment"), "plan= is a Plan now"),
        ("ModelMonitoring", ("plan", "environment"), "plan= is a Plan now"),
        ("SmokeJob", ("plan", "environment"), "plan= is a Plan now"),
        ("BenchJob", ("plan", "environment"), "plan= is a Plan now"),
        ("AcceleratorPool", ("name", "pool", "environment"), "environment= takes no Environment any more"),
        ("GeneralPool", ("environment",), "environment= takes no Environment any more"),
        ("ModelNamespace", ("environment",), "environment= takes no Environment any more"),
        ("ModelCache", ("cache",), "cache= is file_system="),
    ],
)
def test_former_props_still_work_and_say_what_is_new(
    chart: Chart,
    planned: Plan,
    rendered: dict[str, list[Manifest]],
    construct: str,
    former: tuple[str, ...],
    message: str,
) -> None:
    environment = planned.environment
    name, pool = next(iter(environment.pools.items()))
    values = {
        "plan": only(planned, "lora"),
        "environment": environment,
        "name": name,
        "pool": pool,
        "cache": environment.cache,
    }
    with pytest.warns(DeprecationWarning, match=message) as warned:
        getattr(k8s, construct)(chart, "It", **{key: values[key] for key in former})

    assert warned[0].filename == __file__
    made = texts(objects_of(chart))
    assert made
    if construct != "BenchJob":  # which this environment does not ask for
        assert made <= {text for objects in rendered.values() for text in texts(objects)}
