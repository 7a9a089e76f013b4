"""The real Karpenter, unmodified, before a cluster and an account of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modelyard.planning import Plan
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ec2 import Ec2, account
from tests.cluster.programs import Running, free_port, running, until

_WITH_FINALIZERS = (
    ("karpenter.sh/v1", "NodeClaim"),
    ("karpenter.sh/v1", "NodePool"),
    ("karpenter.k8s.aws/v1", "EC2NodeClass"),
    ("v1", "Node"),
)
USER = "system:serviceaccount:kube-system:karpenter"


@contextmanager
def karpenter(plane: ControlPlane, plan: Plan, folder: Path) -> Iterator[tuple[Ec2, Running]]:
    """Karpenter for `plan`, with the settings of its release, until the block ends."""
    with plane.client() as client, account(plan, client) as (ec2, variables):
        settings = {
            "CLUSTER_NAME": plan.environment.cluster_name,
            "CLUSTER_ENDPOINT": plane.address,
            "ISOLATED_VPC": "true",  # the prices that it was built with
            "DISABLE_DRY_RUN": "true",
            "DISABLE_LEADER_ELECTION": "true",
            "METRICS_PORT": str(free_port()),
            "HEALTH_PROBE_PORT": str(free_port()),
            "KUBECONFIG": str(plane.kubeconfig(USER)),
            "SYSTEM_NAMESPACE": "kube-system",
            "FEATURE_GATES": "NodeRepair=false,ReservedCapacity=true,NodeOverlay=true,StaticCapacity=true",
        }
        until(lambda: client.discovers("NodeClaim"), "discovery of Karpenter's kinds")
        try:
            with running("karpenter", [], folder, variables=variables | settings) as started:
                yield ec2, started
        finally:
            _release(client)


def _release(client: Api) -> None:
    """Take away what only Karpenter would: its finalizers, of objects that a failed test left."""
    for version, kind in _WITH_FINALIZERS:
        for item in client.list(version, kind):
            client.merge(item, {"metadata": {"finalizers": None}})
            client.delete(item)
