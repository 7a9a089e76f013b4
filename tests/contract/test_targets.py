"""The other outputs of the same plan: Docker Compose, KServe and the simulator."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import yaml  # type: ignore[import-untyped]
from compose_spec import PyCompose

from modelyard.findings import Finding
from modelyard.object_rules import check_objects
from modelyard.object_rules.api_schemas import is_custom
from modelyard.object_rules.definitions import complaints, definitions
from modelyard.object_rules.pods import flags
from modelyard.objects.composition import Composition, model_objects
from modelyard.objects.rendering import Target, target_contents, target_objects
from modelyard.objects.targets.kserve import SERVER
from modelyard.planning import Plan
from modelyard.project import load_project
from modelyard.spec.operation import Patch
from modelyard.writing import write_tree_files
from tests.contract.conftest import ROOT, SHIPPED, folders_of
from tests.contract.test_kubernetes_schemas import complaint

NAMES = [*SHIPPED, "argocd", "serving"]
TARGETS: tuple[Target, ...] = ("compose", "kserve", "sim")
MODELYARD = Path(sys.executable).with_name("modelyard")
Manifest = dict[str, Any]


@cache
def planned(name: str) -> Plan:
    found = load_project(name, *folders_of(name)).plan()
    assert found is not None
    return found


@cache
def objects(name: str, target: Target) -> tuple[list[Manifest], list[Finding]]:
    folders, left_out = target_objects(planned(name), target)
    return [item for folder in folders.values() for item in folder], left_out


@cache
def compose(name: str) -> dict[str, Manifest]:
    """Model to the Compose file that is written for it."""
    files, _ = target_contents(planned(name), "compose")
    return {path.parent.name: yaml.safe_load(text) for path, text in files.items()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", TARGETS)
def test_the_same_plan_gives_the_same_bytes_and_names_what_it_leaves_out(name: str, target: Target) -> None:
    first, left_out = target_contents(planned(name), target)
    again, _ = target_contents(planned(name), target)

    assert list(first.items()) == list(again.items())
    assert {finding.code for finding in left_out} <= {"TARGET001"}
    models = {path.parts[-2] for path in first if path.name != "kustomization.yaml" or target == "compose"}
    wanted = {model.model.name for model in planned(name).models}
    assert wanted <= models | {finding.subject for finding in left_out}


@pytest.mark.parametrize("name", NAMES)
def test_a_compose_file_is_one_that_compose_reads(name: str) -> None:
    files, _ = target_contents(planned(name), "compose")

    for path, text in files.items():
        document = yaml.safe_load(text)
        document.pop("configs", None)  # younger than the parser: contents in the file itself
        document["services"]["server"].pop("configs", None)
        parsed = PyCompose.from_yaml(yaml.safe_dump(document))
        assert {"server", "weights"} <= set(parsed.service_names()), path
        assert set(parsed.volumes or ()) == {"models"}


def test_the_parser_refuses_what_compose_does_not_know() -> None:
    """Or the test above could not fail."""
    document = {"services": {"server": {"image": "x", "shmsize": "2g"}}}

    with pytest.raises(ValueError, match="shmsize"):
        PyCompose.from_yaml(yaml.safe_dump(document))


@pytest.mark.parametrize("name", NAMES)
def test_a_box_is_as_confined_as_the_cluster_and_gets_what_the_plan_says(name: str) -> None:
    plans = {model.name: model for model in planned(name).models}
    for model, document in compose(name).items():
        plan, server = plans[model], document["services"]["server"]
        for service in document["services"].values():
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"] is True
            assert service["security_opt"] == ["no-new-privileges:true"]
        assert server["user"] == "2000:2000"
        assert all(mount.endswith(":ro") for mount in server["volumes"])
        assert all(port.startswith("127.0.0.1:") for port in server["ports"])
        assert server["shm_size"] == f"{plan.pod.shm.in_mib:.0f}m"
        assert int(server["stop_grace_period"].removesuffix("s")) > plan.model.drain
        devices = server["deploy"]["resources"].get("reservations", {}).get("devices", [])
        if plan.serving.accelerator.vendor == "nvidia":
            assert [(d["driver"], d["count"]) for d in devices] == [("nvidia", plan.serving.count)]
        else:
            assert devices == []
        assert server["environment"]["HF_HUB_OFFLINE"] == "1"
        waits = server["depends_on"].values()
        assert {wait["condition"] for wait in waits} == {"service_completed_successfully"}
        assert set(server["depends_on"]) == set(document["services"]) - {"server"}


def test_no_secret_value_is_in_a_compose_file_and_compose_asks_for_it_by_name() -> None:
    files = compose("serving")

    assert files["sglang-chat"]["services"]["server"]["environment"]["SGLANG_API_KEY"].startswith(
        "${CLIENTS:?"
    )
    assert files["lora"]["services"]["weights"]["environment"]["HF_TOKEN"].startswith("${HF_TOKEN:?")
    assert "HF_TOKEN" not in files["lora"]["services"]["server"]["environment"]


def test_compose_takes_no_dollar_of_ours_for_its_own() -> None:
    asked = re.compile(r"(?<!\$)(?:\$\$)*\$(?!\$)(?P<name>.{0,12})")
    for name in NAMES:
        files, _ = target_contents(planned(name), "compose")
        for text in files.values():
            assert {m["name"].partition(":")[0] for m in asked.finditer(text)} <= {
                "{CLIENTS",
                "{FRONT_DOOR",
                "{HF_TOKEN",
            }
    entry = compose("serving")["sglang-chat"]["services"]["server"]["entrypoint"]
    assert entry[:2] == ["/bin/sh", "-c"]
    assert entry[2].replace("$$", "$") == 'exec "$@" "--api-key=${SGLANG_API_KEY}"'


def test_weights_lie_where_the_server_looks_for_them() -> None:
    for document in compose("serving").values():
        services = document["services"]
        server = services["server"]
        [volume] = [v.split(":")[1] for v in server["volumes"]]
        targets = [s["environment"]["TARGET"] for n, s in services.items() if n != "server"]
        said = " ".join([*server["command"], json.dumps(document.get("configs", {}))])
        assert any(volume.removesuffix("/models") + target in said for target in targets)


@pytest.mark.parametrize("name", NAMES)
def test_the_simulators_tree_keeps_every_rule_and_every_schema(name: str) -> None:
    items, _ = objects(name, "sim")

    assert check_objects(items) == []
    assert [found for item in items if not is_custom(item) and (found := complaint(item))] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_simulated_cluster_needs_no_accelerator_no_cloud_and_no_cache(name: str) -> None:
    items, _ = objects(name, "sim")
    text = json.dumps(items)

    for gone in (
        "nvidia.com/gpu",
        "aws.amazon.com/neuron",
        "nodeSelector",
        "persistentVolumeClaim",
        "/models/hf",
    ):
        assert (
            gone not in re.sub(r'"kind": "(ConfigMap|PrometheusRule)".*', "", text)
            or gone == "nvidia.com/gpu"
        )
    kinds = {item["kind"] for item in items}
    assert not kinds & {
        "NodePool",
        "EC2NodeClass",
        "PersistentVolume",
        "ExternalSecret",
        "Job",
        "HelmRelease",
    }
    assert {"Deployment", "Service", "NetworkPolicy", "ServiceMonitor", "PodDisruptionBudget"} <= kinds


def test_every_server_but_those_left_out_is_a_simulator_with_the_plans_limits() -> None:
    items, left_out = objects("serving", "sim")
    servers = {i["metadata"]["name"]: i for i in items if i["kind"] == "Deployment"}
    container = servers["chat-cpu"]["spec"]["template"]["spec"]["containers"][0]

    assert {finding.subject for finding in left_out} == {"backfill", "nightly"}
    assert container["image"].startswith("ghcr.io/llm-d/llm-d-inference-sim:v")
    assert flags(container)["max-model-len"] == "8192"
    assert flags(container)["served-model-name"] == "chat-cpu"
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    scaler = next(i for i in items if i["kind"] == "ScaledObject" and i["metadata"]["name"] == "chat-cpu")
    assert "vllm:num_requests_waiting" in scaler["spec"]["triggers"][0]["metadata"]["query"]


def services_of(name: str) -> dict[str, Manifest]:
    items, _ = objects(name, "kserve")
    return {i["metadata"]["name"]: i for i in items if i["kind"] == "LLMInferenceService"}


@pytest.mark.parametrize("name", NAMES)
def test_kserve_starts_what_the_plan_says(name: str) -> None:
    plans = {model.name: model for model in planned(name).models}
    for model, item in services_of(name).items():
        spec, plan = item["spec"], plans[model]
        main = spec["template"]["containers"][0]
        assert (main["name"], main["command"]) == ("main", ["vllm", "serve"])
        assert spec["storageInitializer"] == {"enabled": False}
        assert ("replicas" in spec) != ("scaling" in spec)
        assert spec["parallelism"]["tensor"] == int(flags(main)["tensor-parallel-size"])
        assert ("worker" in spec) == (plan.serving.nodes > 1)
        assert {"startupProbe", "readinessProbe", "livenessProbe", "lifecycle"} <= set(main)
        assert main["securityContext"]["readOnlyRootFilesystem"] is True
        assert spec["labels"][SERVER] == model
        assert "app.kubernetes.io/name" not in spec["labels"]  # KServe selects by its own


@pytest.mark.parametrize("name", NAMES)
def test_what_stays_ours_finds_the_pods_that_kserve_starts(name: str) -> None:
    items, _ = objects(name, "kserve")
    pods = [
        {**labels, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
        for item in services_of(name).values()
        for labels in (item["spec"]["labels"], item["spec"].get("prefill", {}).get("labels", {}))
    ]
    selectors = [
        (item, item["spec"]["selector"].get("matchLabels") or item["spec"]["selector"])
        for item in items
        if item["kind"] in ("Service", "PodDisruptionBudget")
        and "modelyard.dev/model" in item["metadata"]["labels"]
    ]

    assert selectors or not services_of(name)
    for item, selector in selectors:
        assert sum(selector.items() <= labels.items() for labels in pods) == 1, item["metadata"]["name"]
    ours = {i["kind"] for i in items if i["metadata"]["name"] != "litellm"}
    assert not {"Deployment", "LeaderWorkerSet", "ScaledObject", "InferencePool"} & ours


def test_services_and_policies_name_ports_that_kserves_pods_have() -> None:
    items, _ = objects("serving", "kserve")
    ports = {
        spec["labels"][SERVER]: {
            port["name"]
            for container in (*spec["template"].get("initContainers", ()), *spec["template"]["containers"])
            for port in container.get("ports", ())
        }
        for item in services_of("serving").values()
        for spec in (item["spec"], item["spec"].get("prefill", item["spec"]))
    }

    of_models = [
        i for i in items if i["kind"] == "Service" and "modelyard.dev/model" in i["metadata"]["labels"]
    ]
    assert len(of_models) > 15
    for service in of_models:
        wanted = {port["targetPort"] for port in service["spec"]["ports"]}
        assert wanted <= ports[service["spec"]["selector"][SERVER]], service["metadata"]["name"]


def test_no_policy_waits_for_a_router_that_kserve_replaces() -> None:
    items, _ = objects("serving", "kserve")
    policies = {i["metadata"]["name"]: i["spec"] for i in items if i["kind"] == "NetworkPolicy"}

    assert '"router"' not in json.dumps(policies)
    reached = {"podSelector": {"matchExpressions": [{"key": SERVER, "operator": "Exists"}]}}
    for asking in ("endpoint-checks", "litellm"):
        assert any(reached in rule.get("to", []) for rule in policies[asking]["egress"]), asking
    peers = policies["split"]["ingress"][0]["from"]
    assert {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "models"}}} in peers
    assert "split-router" not in policies


def test_prefill_workers_and_scalers_have_their_place_in_kserve() -> None:
    services = services_of("serving")

    split = services["split"]["spec"]
    assert [c["name"] for c in split["template"]["initContainers"]] == [
        "await-weights",
        "llm-d-routing-sidecar",
    ]
    assert flags(split["template"]["containers"][0])["port"] == "8001"
    assert split["prefill"]["labels"][SERVER] == "split-prefill"
    assert split["scaling"]["keda"]["triggers"]
    assert services["two-nodes"]["spec"]["parallelism"] == {"tensor": 8, "pipeline": 2}
    wide = services["wide-experts"]["spec"]["parallelism"]
    assert (wide["data"], wide["dataLocal"], wide["expert"]) == (16, 8, True)
    assert services["office-hours"]["spec"]["scaling"]["keda"]["idleReplicaCount"] == 0


def patched(name: str, *patches: Manifest) -> Plan:
    """The plan of `name`, each of its models with `patches`."""
    own = {"patches": tuple(map(Patch.model_validate, patches))}
    found = planned(name)
    return replace(
        found, models=tuple(replace(m, model=m.model.model_copy(update=own)) for m in found.models)
    )


def pods(item: Manifest) -> Manifest:
    spec: Manifest = (
        item["spec"]["template"]["spec"] if item["kind"] == "Deployment" else item["spec"]["template"]
    )
    return spec


def test_a_patch_of_our_workload_reaches_what_a_target_makes_of_it() -> None:
    plan = patched(
        "dev",
        {
            "kind": "Deployment",
            "merge": {
                "metadata": {"annotations": {"example.org/a": "b"}},
                "spec": {
                    "strategy": {"rollingUpdate": {"maxSurge": 3}},
                    "template": {"spec": {"hostname": "x", "nodeSelector": {"example.org/disk": "fast"}}},
                },
            },
        },
        {"kind": "Service", "merge": {"metadata": {"labels": {"example.org/tier": "gold"}}}},
        {"kind": "ServiceMonitor", "merge": {"spec": {"jobLabel": "x"}}},
    )
    for target, kind in (("kserve", "LLMInferenceService"), ("sim", "Deployment")):
        folders, _ = target_objects(plan, cast(Target, target))
        for name in (model.name for model in plan.models):
            found = {item["kind"]: item for item in folders[f"models/{name}"]}
            assert found[kind]["metadata"]["annotations"]["example.org/a"] == "b"
            assert pods(found[kind])["hostname"] == "x"
            # What the engine needs of its node, a simulator does not.
            assert ("nodeSelector" in pods(found[kind])) == (target == "kserve")
            assert found["Service"]["metadata"]["labels"]["example.org/tier"] == "gold"
            assert found["ServiceMonitor"]["spec"]["jobLabel"] == "x"
        if target == "kserve":
            assert found[kind]["spec"]["rolloutStrategy"]["maxSurge"] == 3


@pytest.mark.parametrize("target", TARGETS[1:])
def test_a_patch_of_a_kind_that_only_kubernetes_has_is_no_mistake(target: Target) -> None:
    """A model file is the same for every target."""
    found = planned("serving")
    own = {"patches": (Patch(kind="InferencePool", merge={"metadata": {"labels": {"a": "b"}}}),)}
    split = next(m for m in found.models if m.name == "split")
    folders, _ = target_objects(
        replace(found, models=(replace(split, model=split.model.model_copy(update=own)),)), target
    )

    assert "models/split" in folders


@pytest.mark.parametrize("target", TARGETS[1:])
def test_charts_are_asked_once_and_change_what_a_target_has(target: Target) -> None:
    asked = []

    def compose(composition: Composition) -> None:
        asked.append(composition.environment.name)
        for folder, items in composition.folders.items():
            for item in items:
                if folder.startswith("models/") and item["kind"] == "Deployment":
                    item["spec"]["template"]["spec"]["hostname"] = "x"
        composition.add(
            "models/mine", [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}]
        )

    folders, _ = target_objects(planned("dev"), target, hook=compose)

    assert asked == ["dev"]
    assert [item["metadata"]["name"] for item in folders["models/mine"]] == ["mine"]
    servers = [
        i for items in folders.values() for i in items if i["kind"] in ("Deployment", "LLMInferenceService")
    ]
    assert servers
    assert {
        pods(item)["hostname"] for item in servers if "modelyard.dev/model" in item["metadata"]["labels"]
    } == {"x"}


@pytest.mark.parametrize("target", TARGETS[1:])
def test_what_charts_make_of_the_plan_is_what_the_target_needs(target: Target) -> None:
    def compose(composition: Composition) -> None:
        for plan in composition.plan.models:
            if plan.role == "both":
                composition.replace(f"models/{plan.name}", model_objects(plan, composition.environment))

    replaced, _ = target_objects(planned("serving"), target, hook=compose)

    assert replaced == target_objects(planned("serving"), target)[0]


@pytest.mark.parametrize("name", NAMES)
def test_kserve_would_take_every_service(name: str) -> None:
    where = os.environ.get("MODELYARD_KSERVE_CRDS")
    if not where:
        pytest.skip(
            "LLMInferenceService is not checked: MODELYARD_KSERVE_CRDS names no folder of definitions"
        )
    schema = definitions(Path(where))["serving.kserve.io/v1alpha2", "LLMInferenceService"]

    assert [(n, found) for n, item in services_of(name).items() if (found := complaints(item, schema))] == []


@pytest.mark.parametrize("target", TARGETS)
def test_the_command_writes_beside_the_environment_and_removes_what_is_stale(
    tmp_path: Path, target: str
) -> None:
    folder = tmp_path / f"dev-{target}"
    write_tree_files(folder, {Path("stale.yaml"): "a: 1\n"})

    run = subprocess.run(
        [MODELYARD, "render", "-e", "dev", "--target", target, "--out", str(tmp_path), "--output", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert (document["target"], document["directory"]) == (target, str(folder))
    assert document["removed"] == ["stale.yaml"]
    written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.yaml"))
    assert written == sorted(document["files"])
    assert not (tmp_path / "dev").exists()
