"""What `modelyard doctor` says of the contents of a cluster that somebody else manages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from modelyard.live.api.kubernetes import Kind, open_cluster
from modelyard.live.clusters.inventory import examine_cluster
from modelyard.live.clusters.kinds import (
    CLUSTER_WIDE,
    DAEMON_SET,
    DEFINITION,
    DEPLOYMENT,
    HELM_RELEASE,
    NAMESPACE,
    NODE_POOL,
)
from modelyard.live.diagnosis import Case, Diagnosis
from modelyard.planning import Plan
from tests.operations.fake_kubernetes import FakeKubernetes
from tests.operations.test_withdrawal import ARN, KNOWN, THEIRS, a_shared_plan, filled, rendered

KARPENTER = {"has": {"karpenter": "1.14.1"}, "nodeRole": "shared-nodes"}


def definition(fake: FakeKubernetes, group: str, **annotations: str) -> None:
    metadata = {"annotations": annotations}
    fake.add(DEFINITION, f"things.{group}", spec={"group": group}, metadata=metadata)


def workload(fake: FakeKubernetes, kind: Kind, name: str, image: str, **metadata: Any) -> None:
    """One as a chart makes it: its label has the project's name."""
    labels = {"app.kubernetes.io/name": name}
    pod = {"spec": {"containers": [{"image": image}]}}
    fake.add(kind, f"release-{name}", "infra", metadata={"labels": labels} | metadata, spec={"template": pod})


@pytest.fixture
def examined(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def examine(plan: Plan, fake: FakeKubernetes) -> dict[str, Diagnosis]:
        with fake.served():
            monkeypatch.setenv("KUBECONFIG", str(fake.kubeconfig(tmp_path / "kubeconfig", ARN)))
            case = Case(plan.environment, plan, datetime.now(UTC), "lab", "environments/lab.yaml")
            found = examine_cluster(open_cluster(plan.environment), case)
        assert {each.check for each in found} == {"its contents"}
        return {each.subject: each for each in found}

    return examine


def bare() -> FakeKubernetes:
    return FakeKubernetes(kinds=KNOWN.values())


def test_a_bare_cluster_gets_everything(examined: Any) -> None:
    found = examined(a_shared_plan(), bare())

    assert {each.health for each in found.values()} == {"ok"}
    assert {name for name, each in found.items() if "a deploy installs it" in each.reason} == {
        *("karpenter", "keda", "external-secrets", "gateway-api", "istio"),
        *("nvidia-device-plugin", "dcgm-exporter"),
    }


def test_what_is_there_is_named_with_the_line_to_write(examined: Any) -> None:
    fake = bare()
    definition(fake, "karpenter.k8s.aws")
    workload(fake, DEPLOYMENT, "karpenter", "public.ecr.aws/karpenter/controller:1.12.3@sha256:00")
    workload(fake, DAEMON_SET, "nvidia-device-plugin", "nvcr.io/nvidia/k8s-device-plugin:v0.17.1")
    definition(fake, "gateway.networking.k8s.io", **{"gateway.networking.k8s.io/bundle-version": "v1.3.0"})

    found = examined(a_shared_plan(), fake)

    there = {name: each.fix for name, each in found.items() if each.health == "problem"}
    assert set(there) == {"karpenter", "nvidia-device-plugin", "gateway-api"}
    assert "has: {karpenter: 1.12.3}" in there["karpenter"]
    assert "has: {nvidia-device-plugin: v0.17.1}" in there["nvidia-device-plugin"]
    assert "has: {gateway-api: v1.3.0}" in there["gateway-api"]


@pytest.mark.parametrize(
    ("runs", "health", "says"),
    [
        ("1.14.1", "ok", "as environments/lab.yaml says"),
        ("1.13.0", "problem", "the cluster has 1.13.0"),
        (None, "problem", "neither its definitions nor its workloads"),
    ],
)
def test_what_the_file_says_is_held_against_what_runs(
    examined: Any, runs: str | None, health: str, says: str
) -> None:
    fake = bare()
    if runs:
        workload(fake, DEPLOYMENT, "karpenter", f"public.ecr.aws/karpenter/controller:{runs}")

    found = examined(a_shared_plan(KARPENTER), fake)["karpenter"]

    assert (found.health, says in found.reason) == (health, True), found


@pytest.mark.parametrize("names", [{}, {"nvidia-device-plugin": "0.18.0", "dcgm-exporter": "4.4.1"}])
def test_the_gpu_operator_stays_where_it_is(examined: Any, names: dict[str, str]) -> None:
    """Pools are labelled so that it runs nothing there; with its parts in `has`, they are not."""
    fake = bare()
    definition(fake, "nvidia.com")
    for name in ("nvidia-device-plugin-daemonset", "nvidia-dcgm-exporter"):
        fake.add(DAEMON_SET, name, "gpu-operator", spec={})

    found = examined(a_shared_plan({"has": names}), fake)

    for name in ("nvidia-device-plugin", "dcgm-exporter"):
        assert found[name].health == ("problem" if names else "ok"), found[name]
        assert "take" in found[name].fix if names else "stays off" in found[name].reason


def test_what_modelyard_has_installed_is_no_conflict(examined: Any) -> None:
    plan = a_shared_plan()
    fake = filled(plan)
    for group in ("karpenter.sh", "keda.sh", "external-secrets.io", "monitoring.coreos.com"):
        definition(fake, group)
    controller = {"annotations": {"meta.helm.sh/release-name": "flux"}}
    fake.add(DEPLOYMENT, "kustomize-controller", "flux-system", metadata=controller, spec={})

    found = examined(plan, fake)

    assert {name for name, each in found.items() if each.health != "ok"} == set()
    assert found["keda"].reason == "installed by Modelyard"


def test_what_modelyard_has_installed_is_not_handed_over_by_a_line(examined: Any) -> None:
    """Flux would uninstall it, and with its definitions all NodePools and nodes would go."""
    fake = filled(a_shared_plan())

    found = examined(a_shared_plan(KARPENTER), fake)["karpenter"]

    assert "a deploy uninstalls it" in found.reason
    assert "take karpenter out" in found.fix


def test_prometheus_and_flux_of_others_are_other_settings(examined: Any) -> None:
    fake = bare()
    definition(fake, "monitoring.coreos.com")
    fake.add(DEPLOYMENT, "kustomize-controller", "gitops", spec={})

    found = examined(a_shared_plan(), fake)

    assert "monitoring: {install: false" in found["kube-prometheus-stack"].fix
    assert "delivery: none" in found["flux"].fix


def test_an_object_of_somebody_else_is_not_overwritten(examined: Any) -> None:
    fake = bare()
    fake.add(NODE_POOL, "g6e", metadata=THEIRS)
    fake.add(NODE_POOL, "default", metadata=THEIRS)
    fake.add(NAMESPACE, "models")

    found = examined(a_shared_plan(), fake)

    assert {name for name, each in found.items() if each.health == "problem"} == {
        "NodePool g6e",
        "Namespace models",
    }


def test_a_release_of_somebody_else_is_not_ours(examined: Any) -> None:
    fake = bare()
    definition(fake, "keda.sh")
    fake.add(HELM_RELEASE, "keda", "infra", metadata=THEIRS)

    assert examined(a_shared_plan(), fake)["keda"].health == "problem"


def test_a_refusal_leaves_it_open(examined: Any) -> None:
    fake = bare()
    fake.refused = {"customresourcedefinitions"}

    [found] = examined(a_shared_plan(), fake).values()

    assert found.health == "not checked"
    assert "customresourcedefinitions" in found.reason


def test_every_kind_without_a_namespace_that_is_rendered_is_looked_for() -> None:
    bare_names = {item["kind"] for item in rendered(a_shared_plan()) if "namespace" not in item["metadata"]}

    assert bare_names <= {kind.name for kind in CLUSTER_WIDE}
