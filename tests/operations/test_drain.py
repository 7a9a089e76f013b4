"""`modelyard drain`: a fixed order, and no step before the previous one is done."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from modelyard.live.clusters import drain
from modelyard.live.clusters.kinds import (
    APPLICATION,
    AUTO_NODE_CLASS,
    CRON_JOB,
    DEPLOYMENT,
    HELM_RELEASE,
    INGRESS,
    JOB,
    KUSTOMIZATION,
    LEADER_WORKER_SET,
    NODE_CLAIM,
    NODE_CLASS,
    NODE_POOL,
    POD,
    SERVICE,
    STATEFUL_SET,
)
from tests.account.conftest import REGION, Project
from tests.account.fake_account import ACCOUNT
from tests.operations.conftest import ARN
from tests.operations.fake_kubernetes import ARGO_CD, AUTO_MODE, BUILT_IN, FakeKubernetes

IN_ORDER = [
    "PATCH kustomizations/addons",
    "PATCH kustomizations/models",
    "PATCH kustomizations/platform",
    "DELETE scaledobjects/qwen",
    "DELETE jobs/fetch",
    "DELETE deployments/llama",
    "DELETE deployments/qwen",
    "DELETE gateways/internal",
    "DELETE nodepools/g6e",
    "DELETE ec2nodeclasses/g6e",
    "DELETE helmreleases/keda",
    "DELETE helmreleases/karpenter",
    "DELETE helmreleases/karpenter-crd",
]
PATIENT = ("drain", "--env", "lab", "--yes")
DRAIN = (*PATIENT, "--timeout", "0.2")
SHORT = ("--timeout", "0.002")


@dataclass
class Clock:
    """Time that passes by sleeping, a thousand times as fast."""

    passed_s: float = 0

    def monotonic(self) -> float:
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        self.passed_s += 1000 * seconds


class TestOrder:
    def test_it_is_the_documented_one_and_each_object_is_asked_once(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        answer = project.run(*DRAIN)

        assert answer.code == 0, answer.err
        assert lab.requests == IN_ORDER
        assert lab.names(NODE_CLAIM) == lab.names(HELM_RELEASE) == lab.names(POD) == []
        assert lab.names(SERVICE) == ["qwen"]  # without a load balancer
        assert len(lab.names(KUSTOMIZATION)) == 3  # suspended, and gone with the cluster

    def test_every_step_and_what_comes_next_is_printed(self, project: Project, lab: FakeKubernetes) -> None:
        said = project.run(*DRAIN).out

        assert "1/7 delivery: suspending Kustomization flux-system/addons" in said
        assert "4/7 node pools: deleting NodePool g6e, NodeClaim g6e-1, NodeClaim g6e-2" in said
        assert "7/7 Karpenter: done" in said
        assert said.index("cdk destroy --all -c env=lab") < said.index("modelyard sweep --env lab")

    def test_a_second_run_has_nothing_to_do(self, project: Project, lab: FakeKubernetes) -> None:
        project.run(*DRAIN)
        asked = len(lab.requests)

        answer = project.run(*DRAIN)

        assert answer.code == 0
        assert len(lab.requests) == asked
        assert answer.out.count("nothing there") == 7

    def test_what_is_deployed_in_every_other_shape_goes_too(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        """Owners take what they own along: it is not deleted twice, and it is waited for."""
        workers = lab.add(LEADER_WORKER_SET, "large", "models")
        group = lab.add(STATEFUL_SET, "large-0", "models", owner=workers)
        lab.add(POD, "large-0-1", "models", owner=group, spec={})
        schedule = lab.add(CRON_JOB, "batch", "models")
        job = lab.add(JOB, "batch-1", "models", owner=schedule)
        lab.add(POD, "batch-1-1", "models", owner=job, spec={})
        lab.add(POD, "by-hand", "models", spec={})
        balanced = {"loadBalancer": {"ingress": [{"hostname": "x"}]}}
        lab.add(INGRESS, "web", "apps", status=balanced)
        lab.add(INGRESS, "unused", "apps", status={"loadBalancer": {}})

        assert project.run(*DRAIN).code == 0

        assert lab.names(POD) == lab.names(STATEFUL_SET) == []
        assert lab.names(INGRESS) == ["unused"]
        asked = {"leaderworkersets/large", "cronjobs/batch", "pods/by-hand", "ingresses/web"}
        assert asked <= {request.partition(" ")[2] for request in lab.requests}
        assert not {"statefulsets/large-0", "jobs/batch-1"} & {r.partition(" ")[2] for r in lab.requests}

    def test_other_namespaces_keep_their_pods(self, project: Project, lab: FakeKubernetes) -> None:
        lab.add(DEPLOYMENT, "web", "search")
        lab.add(POD, "web-1", "search", spec={})

        assert project.run(*DRAIN).code == 0
        assert lab.names(DEPLOYMENT) == ["web"]


class TestStillThere:
    def test_a_destroy_simulated_with_nodeclaims_left_over_refuses_to_go_on_and_says_which(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        lab.stuck = {"g6e-2"}

        answer = project.run(*DRAIN, *SHORT)

        assert answer.code == 1
        assert lab.requests == IN_ORDER[: IN_ORDER.index("DELETE nodepools/g6e") + 1]
        assert "refuses to go on after step 'node pools'" in answer.err
        assert "NodeClaim g6e-2 (finalizers: karpenter.sh/termination)" in answer.err
        assert "g6e-1" not in answer.err
        assert "get deployment karpenter" in answer.err
        assert lab.names(NODE_CLASS) == ["g6e"]
        assert "cdk destroy" not in answer.out

        plan = project.run("destroy-plan", "--env", "lab")

        assert plan.code == 1
        assert "refuses: the stacks must not be destroyed yet" in plan.out
        assert "NodeClaim g6e-2" in plan.out

    def test_it_goes_on_where_it_stopped(self, project: Project, lab: FakeKubernetes) -> None:
        lab.stuck = {"g6e-2"}
        project.run(*DRAIN, *SHORT)
        before = len(lab.requests)
        lab.stuck = set()

        assert project.run(*DRAIN).code == 0
        assert lab.requests[before:] == IN_ORDER[before:]

    def test_the_pod_that_holds_a_node_is_named(self, project: Project, lab: FakeKubernetes) -> None:
        lab.stuck = {"g6e-2"}
        keep = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
        lab.add(POD, "notebook", "search", metadata=keep, spec={"nodeName": "ip-10-0-0-2"})
        lab.add(POD, "elsewhere", "search", metadata=keep, spec={"nodeName": "ip-10-0-0-9"})

        said = project.run(*DRAIN, *SHORT).err

        assert "Pod search/notebook has karpenter.sh/do-not-disrupt" in said
        assert "elsewhere" not in said

    def test_what_a_condition_says_is_repeated(self, project: Project, lab: FakeKubernetes) -> None:
        lab.stuck = {"keda"}
        failed = {"type": "Ready", "status": "False", "message": "uninstall retries exhausted"}
        lab.objects["helmreleases.helm.toolkit.fluxcd.io", "flux-system", "keda"]["status"] = {
            "conditions": [failed]
        }

        answer = project.run(*DRAIN, *SHORT)

        assert answer.code == 1
        assert "Ready: uninstall retries exhausted" in answer.err
        assert "helmreleases/karpenter" not in " ".join(lab.requests)

    def test_a_pod_that_ends_its_requests_is_waited_for_longer(
        self, project: Project, lab: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Ten minutes are the step's; the pod of a model may have an hour."""
        clock = Clock()
        monkeypatch.setattr(drain, "time", clock)
        slow = lab.add(DEPLOYMENT, "slow", "models")
        lab.add(POD, "slow-1", "models", owner=slow, spec={"terminationGracePeriodSeconds": 3600})
        lab.stuck = {"slow-1"}

        said = project.run(*PATIENT).err

        assert "Pod models/slow-1" in said
        assert 3600 < clock.passed_s < 3900


class TestRefusals:
    def test_a_permission_that_a_late_step_lacks_stops_it_before_the_first(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        lab.refused = {"nodeclaims"}

        answer = project.run(*DRAIN)

        assert answer.code == 1
        assert lab.requests == []
        assert "403 to list nodeclaims.karpenter.sh" in answer.err
        assert "cannot get them" in answer.err

    @pytest.mark.parametrize(
        ("cluster", "words"),
        [
            ({"publicAccessCidrs": ["198.51.100.0/24"]}, None),
            ({"compute": "auto-mode"}, "run this inside of its VPC"),
        ],
    )
    def test_a_server_that_is_down_is_said_in_a_line(
        self, project: Project, lab: FakeKubernetes, cluster: dict[str, Any], words: str | None
    ) -> None:
        project.environment(cluster=cluster)
        lab.url = "http://127.0.0.1:9"
        lab.kubeconfig(project.folder / "kubeconfig", ARN)

        answer = project.run(*DRAIN)

        assert answer.code == 1
        assert "the cluster does not answer" in answer.err
        assert answer.err.count("\n") == (1 if words is None else 2)
        assert words is None or words in answer.err
        assert "start-session" not in answer.err

    def test_a_private_server_is_reached_through_a_system_node(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        lab.url = "http://127.0.0.1:9"
        lab.kubeconfig(project.folder / "kubeconfig", ARN)

        said = project.run(*DRAIN).err

        session, override = (line.strip() for line in said.splitlines() if line.startswith("    "))
        assert session.startswith(f"aws ssm start-session --region {REGION} --target ")
        assert "Name=tag:eks:cluster-name,Values=modelyard-lab" in session
        assert "--document-name AWS-StartPortForwardingSessionToRemoteHost --parameters host=" in session
        assert session.endswith(",portNumber=443,localPortNumber=8443")
        assert override.startswith(
            f"kubectl config set-cluster {ARN} --server=https://localhost:8443 --tls-server-name="
        )
        for command in (session, override):
            subprocess.run(["bash", "-n", "-c", command], check=True)

    def test_a_busy_api_server_is_asked_again(
        self, project: Project, lab: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pauses: list[float] = []
        monkeypatch.setattr("modelyard.live.api.kubernetes.time.sleep", pauses.append)
        lab.busy = 3

        answer = project.run(*DRAIN)

        assert answer.code == 0, answer.err
        assert pauses[:3] == [0.25, 0.5, 1]

    def test_an_api_server_that_stays_busy_is_named(
        self, project: Project, lab: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("modelyard.live.api.kubernetes.time.sleep", lambda _: None)
        lab.busy = 1000

        answer = project.run(*DRAIN)

        assert answer.code == 1
        assert "429" in answer.err

    def test_a_sign_in_page_is_no_kubernetes(self, project: Project, lab: FakeKubernetes) -> None:
        lab.nonsense = True

        answer = project.run(*DRAIN)

        assert answer.code == 1
        assert "no Kubernetes API" in answer.err

    def test_a_credential_plugin_that_does_not_exist_is_said_in_one_line(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        path = project.folder / "kubeconfig"
        plugin = (
            '{"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "no-such-program"}}'
        )
        path.write_text(path.read_text().replace('{"token": "made-up"}', plugin))

        answer = project.run(*DRAIN)

        assert answer.code == 1
        assert "no-such-program" in answer.err
        assert answer.err.count("\n") == 1

    def test_another_cluster_is_never_touched(self, project: Project, lab: FakeKubernetes) -> None:
        other = ARN.replace("modelyard-lab", "modelyard-lab-2")
        lab.kubeconfig(project.folder / "kubeconfig", other, context="current")

        unnamed = project.run(*DRAIN)
        by_name = project.run(*DRAIN, "--context", "current")

        assert (unnamed.code, by_name.code) == (1, 1)
        assert "aws eks update-kubeconfig --name modelyard-lab" in unnamed.err
        assert f"context current is of {other}" in by_name.err
        assert ACCOUNT in by_name.err
        assert lab.answered == []

    def test_an_environment_of_its_own_needs_its_name(self, project: Project, lab: FakeKubernetes) -> None:
        nothing = project.run("drain", "--env", "lab")
        wrong = project.run("drain", "--env", "lab", "--confirm", "prod")

        assert (nothing.code, wrong.code) == (1, 1)
        assert "--confirm lab" in nothing.err
        assert "'prod' is not lab" in wrong.err
        assert lab.answered == []

    def test_a_strict_environment_is_not_drained_on_yes(self, project: Project, lab: FakeKubernetes) -> None:
        project.environment(policy="strict")

        refused = project.run(*DRAIN)
        confirmed = project.run("drain", "--env", "lab", "--confirm", "lab")

        assert refused.code == 1
        assert "--yes is not enough" in refused.err
        assert confirmed.code == 0
        assert lab.requests == IN_ORDER


class TestOtherClusters:
    def test_kinds_that_were_never_installed_are_nothing(self, project: Project, lab: FakeKubernetes) -> None:
        lab.kinds = BUILT_IN
        lab.objects.clear()
        lab.add(DEPLOYMENT, "qwen", "models")

        assert project.run(*DRAIN).code == 0
        assert lab.requests == ["DELETE deployments/qwen"]

    def test_auto_mode_keeps_what_eks_makes_itself(self, project: Project, lab: FakeKubernetes) -> None:
        project.environment(cluster={"compute": "auto-mode"})
        lab.kinds = AUTO_MODE
        lab.objects.clear()
        lab.add(AUTO_NODE_CLASS, "default")
        lab.add(AUTO_NODE_CLASS, "g6e")
        for name in ("system", "general-purpose", "g6e"):
            pool = lab.add(NODE_POOL, name)
            label = {"labels": {"karpenter.sh/nodepool": name}}
            lab.add(
                NODE_CLAIM, f"{name}-1", owner=pool, metadata=label, finalizers=["karpenter.sh/termination"]
            )

        assert project.run(*DRAIN).code == 0
        assert lab.requests == ["DELETE nodepools/g6e", "DELETE nodeclasses/g6e"]
        assert lab.names(NODE_CLAIM) == ["system-1", "general-purpose-1"]
        assert project.run("destroy-plan", "--env", "lab").code == 0

    def test_pools_of_those_names_are_ours_without_auto_mode(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        lab.add(NODE_POOL, "system")

        assert project.run(*DRAIN).code == 0
        assert lab.names(NODE_POOL) == []

    def test_argo_cd_is_told_to_stop_until_no_parent_turns_it_on_again(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        lab.kinds = ARGO_CD
        lab.objects.clear()
        automated = {"syncPolicy": {"automated": {"selfHeal": True}, "retry": {"limit": 10}}}
        for name in ("modelyard-models", "root"):
            lab.add(APPLICATION, name, "argocd", spec={**automated})
        lab.add(DEPLOYMENT, "qwen", "models")
        lab.add(NODE_CLAIM, "by-hand", finalizers=["karpenter.sh/termination"])

        assert project.run(*DRAIN).code == 0

        assert lab.requests == [
            "PATCH applications/modelyard-models",
            "PATCH applications/root",
            "DELETE deployments/qwen",
            "DELETE nodeclaims/by-hand",
        ]
        kept = lab.objects["applications.argoproj.io", "argocd", "root"]["spec"]["syncPolicy"]
        assert kept == {"retry": {"limit": 10}}
