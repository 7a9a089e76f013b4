"""`modelyard drain` out of a cluster that somebody else manages: all that is ours goes, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modelyard.cli import drain as command
from modelyard.live.api.kubernetes import Kind
from modelyard.live.clusters import kinds
from modelyard.live.clusters.drain_steps import own_cluster_steps
from modelyard.live.clusters.kinds import (
    BUCKET,
    DEFINITION,
    HELM_RELEASE,
    NAMESPACE,
    NODE_CLAIM,
    POD,
    SERVICE,
)
from modelyard.live.clusters.withdrawal import withdrawal_steps
from modelyard.objects.composition import default_objects
from modelyard.objects.manifest import Manifest
from modelyard.planning import Plan
from tests.account.conftest import Project
from tests.account.fake_account import FakeAccount
from tests.operations.conftest import stacks
from tests.operations.fake_kubernetes import MANAGED_BY, FakeKubernetes
from tests.unit.given import a_model, a_plan, an_environment
from tests.unit.test_existing_cluster import in_shared

LAB = an_environment()
ARN = f"arn:aws:eks:{LAB.region}:{LAB.account}:cluster/shared"
DRAIN = ("drain", "--env", "lab", "--yes", "--timeout", "0.2")
THEIRS = {"labels": {MANAGED_BY: "terraform"}}
KNOWN = {
    (kind.group, kind.name): kind
    for value in vars(kinds).values()
    for kind in (value if isinstance(value, tuple) else (value,))
    if isinstance(kind, Kind)
}
# They go with the namespace that they are in.
NAMESPACED = (
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "ResourceQuota",
    "ServiceAccount",
)


def a_shared_plan(existing: dict[str, Any] | None = None, **changes: Any) -> Plan:
    """Models of several kinds, with secrets, a gateway and a team, in a cluster that has nothing else."""
    environment = in_shared(
        existing,
        secrets={"hf-token": "lab/hf-token", "certificate": "lab/certificate"},
        gateways={"internal": {"domain": "models.example.org", "certificate": "certificate"}},
        teams={
            "search": {"principals": [f"arn:aws:iam::{LAB.account}:role/search"], "accelerators": {"l40s": 8}}
        },
        **changes,
    )
    models = [a_model(name="plain"), a_model(name="scaled", replicas={"min": 1, "max": 2})]
    return a_plan(*models, environment=environment)


def kind_of(item: Manifest) -> Kind:
    group = item["apiVersion"].rpartition("/")[0]
    found = KNOWN.get((group, item["kind"]))
    if found is None:
        assert item["kind"] in NAMESPACED, f"{item['kind']} would stay"
        assert item["metadata"]["namespace"]
        found = Kind(group, item["apiVersion"].rpartition("/")[2], item["kind"], f"{item['kind'].lower()}s")
    return found


def rendered(plan: Plan) -> list[Manifest]:
    return [item for items in default_objects(plan).values() for item in items]


def filled(plan: Plan) -> FakeKubernetes:
    """A cluster with all that is rendered, what controllers made of it, and what others have there."""
    items = rendered(plan)
    fake = FakeKubernetes(kinds={*KNOWN.values(), *map(kind_of, items)})
    for item in items:
        metadata = {key: value for key, value in item["metadata"].items() if key == "labels"}
        namespace = item["metadata"].get("namespace", "")
        content = {"spec": item.get("spec", {})}
        fake.add(kind_of(item), item["metadata"]["name"], namespace, metadata=metadata, **content)
    fake.add(SERVICE, "internal-istio", "model-gateways", spec={"type": "LoadBalancer"})
    fake.add(NODE_CLAIM, "g6e-x1", metadata={"labels": {"karpenter.sh/nodepool": "g6e"}})
    if plan.environment.cluster.general_vcpu:
        fake.add(NODE_CLAIM, "general-x1", metadata={"labels": {"karpenter.sh/nodepool": "general"}})
    fake.add(POD, "plain-x1", "models", spec={})
    if plan.environment.delivery == "flux":
        fake.add(BUCKET, "modelyard", "flux-system")
    return fake


def neighbours(fake: FakeKubernetes) -> None:
    """Objects of other teams, of every kind that any drain takes away."""
    steps = (*own_cluster_steps(in_shared()), *withdrawal_steps(in_shared()))
    for kind in {kind for step in steps for kind in step.kinds}:
        spec = {"type": "LoadBalancer"} if kind == SERVICE else {}
        labels = {"karpenter.sh/nodepool": "theirs"} if kind == NODE_CLAIM else {}
        metadata = {"labels": THEIRS["labels"] | labels}
        fake.add(kind, f"their-{kind.plural}", "shop", metadata=metadata, spec=spec)
    in_general = THEIRS["labels"] | {"karpenter.sh/nodepool": "general"}
    fake.add(NODE_CLAIM, "their-general-x1", metadata={"labels": in_general})
    fake.add(NAMESPACE, "shop", metadata=THEIRS)
    fake.add(NAMESPACE, "kube-system")
    fake.add(HELM_RELEASE, "karpenter", "infra", metadata=THEIRS)
    fake.add(DEFINITION, "databases.shop.example.org", spec={"group": "shop.example.org"})


@pytest.fixture
def opened(project: Project, fake: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(command, "POLL_S", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    stacks(fake)

    def connect(plan: Plan, served: FakeKubernetes) -> None:
        data = plan.environment.model_dump(mode="json", exclude_defaults=True)
        path = project.folder / "environments" / "lab.yaml"
        path.write_text(json.dumps(data), encoding="utf-8")
        config = served.kubeconfig(Path(project.folder) / "kubeconfig", ARN)
        monkeypatch.setenv("KUBECONFIG", str(config))

    return connect


@pytest.mark.parametrize("delivery", ["flux", "argocd"])
def test_nothing_of_ours_stays_and_nothing_else_goes(project: Project, opened: Any, delivery: str) -> None:
    changes: dict[str, Any] = (
        {}
        if delivery == "flux"
        else {
            "delivery": "argocd",
            "git": {"url": "https://git.example.org/models.git"},
            "cache": {"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"},
        }
    )
    plan = a_shared_plan(**changes)
    fake = filled(plan)
    ours = set(fake.objects)
    neighbours(fake)
    theirs = set(fake.objects) - ours
    with fake.served():
        opened(plan, fake)

        answer = project.run(*DRAIN)

    assert answer.code == 0, answer.err
    assert set(fake.objects) == theirs
    # It would take Flux' finalizer away, and put one there that nobody takes away.
    assert not [request for request in fake.requests if request.startswith("PATCH helmreleases/")]
    assert not [request for request in fake.requests if "their-" in request or "shop" in request]
    assert "nothing of lab is left in shared" in answer.out
    assert "modelyard sweep" not in answer.out


def test_controllers_go_after_what_they_have_to_let_go_of(project: Project, opened: Any) -> None:
    plan = a_shared_plan()
    fake = filled(plan)
    with fake.served():
        opened(plan, fake)
        project.run(*DRAIN)
    asked = [request.partition(" ")[2] for request in fake.requests if request.startswith("DELETE")]

    order = [
        "scaledobjects/scaled",
        "nodepools/g6e",
        "externalsecrets/hf-token",
        "namespaces/models",
        "helmreleases/external-secrets",
        "helmreleases/karpenter",
        "namespaces/external-secrets",
        "kustomizations/model-plain",
        "buckets/modelyard",
    ]
    assert [asked.index(each) for each in order] == sorted(asked.index(each) for each in order)


def test_argo_cd_is_told_to_uninstall_charts_and_to_leave_definitions(project: Project, opened: Any) -> None:
    """An Application without the finalizer leaves what it installed; CRDs may be others' too."""
    git = {"url": "https://git.example.org/models.git"}
    cache = {"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"}
    plan = a_shared_plan(delivery="argocd", git=git, cache=cache)
    fake = filled(plan)
    charts = {
        item["metadata"]["name"]
        for item in rendered(plan)
        if item["kind"] == "Application" and "chart" in item["spec"]["source"]
    }
    assert {"karpenter", "keda"} < charts
    with fake.served():
        opened(plan, fake)
        project.run(*DRAIN)

    changed = [request.partition("/")[2] for request in fake.requests if request.startswith("PATCH app")]

    assert {name for name in changed if changed.count(name) == 2} == charts  # suspended, and then told so
    assert "gateway-api" in changed


def test_definitions_that_others_may_use_are_named_and_kept(project: Project, opened: Any) -> None:
    plan = a_shared_plan()
    fake = filled(plan)
    for name, group in (
        ("scaledobjects.keda.sh", "keda.sh"),
        ("buckets.source.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"),
        ("databases.shop.example.org", "shop.example.org"),
    ):
        fake.add(DEFINITION, name, spec={"group": group})
    with fake.served():
        opened(plan, fake)

        said = project.run(*DRAIN).out

    assert "kubectl delete crd buckets.source.toolkit.fluxcd.io scaledobjects.keda.sh" in said
    assert "databases.shop.example.org" not in said
    assert "kubectl delete namespace flux-system" in said
    assert fake.names(DEFINITION) == [
        "scaledobjects.keda.sh",
        "buckets.source.toolkit.fluxcd.io",
        "databases.shop.example.org",
    ]


def test_sweep_refuses_since_the_tags_of_the_cluster_are_everybodys(project: Project, opened: Any) -> None:
    plan = a_shared_plan()
    opened(plan, FakeKubernetes())

    answer = project.run("sweep", "--env", "lab")

    assert answer.code == 64 or answer.code == 1
    assert "cluster shared is managed by somebody else" in answer.err


def test_its_upgrade_is_somebody_elses(project: Project, opened: Any) -> None:
    opened(a_shared_plan(), FakeKubernetes())

    answer = project.run("upgrade-plan", "--env", "lab", "--to", "1.36", "--from", "1.35")

    assert answer.code != 0
    assert "is upgraded by those who manage it" in answer.err
