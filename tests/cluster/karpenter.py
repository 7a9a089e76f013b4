"""The real Karpenter, unmodified, before a cluster and an account of the tests."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from modelyard.planning import Plan
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ec2 import Ec2, account
from tests.cluster.interruptions import interruptions
from tests.cluster.programs import Running, free_port, program, running, until

_WITH_FINALIZERS = (
    ("karpenter.sh/v1", "NodeClaim"),
    ("karpenter.sh/v1", "NodePool"),
    ("karpenter.k8s.aws/v1", "EC2NodeClass"),
    ("v1", "Node"),
)
USER = "system:serviceaccount:kube-system:karpenter"

BEFORE_ITS_CLASSES = {
    "no subnets found": "a node class is there whose status Karpenter has not written yet",
    "ignoring nodepool, not ready": "the same, of its pool",
    "could not schedule pod": "the same, of a pod that asks for it; tests see that it gets its node",
    "is awaiting evaluation": "a pool is there that the controller of NodeOverlays has not seen yet",
}
"""What Karpenter calls an error in the seconds in which pools and classes are new, and why it is none."""

_PRICE = re.compile(
    r"^karpenter_cloudprovider_instance_type_offering_price_estimate\{(?P<labels>[^}]*)\} (?P<price>\S+)$",
    re.MULTILINE,
)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass
class Karpenter:
    """A started one, which can be killed and started again; each start has a log of its own."""

    folder: Path
    variables: dict[str, str]
    _stack: ExitStack
    _started: list[Running] = field(default_factory=list)

    def start(self) -> None:
        """Once more, with the same settings."""
        ports = {"METRICS_PORT": str(free_port()), "HEALTH_PROBE_PORT": str(free_port())}
        self.variables |= ports
        name = f"karpenter-{len(self._started)}" if self._started else "karpenter"
        self._started.append(
            self._stack.enter_context(
                running(name, [], self.folder, variables=self.variables, executable=program("karpenter"))
            )
        )

    def check(self) -> None:
        """Raises Stopped when it has ended."""
        self._started[-1].check()

    def kill(self) -> None:
        """At once, as a node that vanishes takes it along."""
        os.kill(self._started[-1].id, signal.SIGKILL)

    def said(self) -> list[dict[str, Any]]:
        """Every line of the log."""
        text = self._started[-1].log.read_text(encoding="utf-8", errors="replace")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]

    def complaints(self) -> set[str]:
        """Its errors, but for those of `BEFORE_ITS_CLASSES`, and nodes that are not as it expected."""
        texts = {
            f"{line['message']}: {line.get('error') or line.get('issue', '')}"
            for line in self.said()
            if line["level"] == "ERROR" or line["message"] == "failed consistency check"
        }
        return {text for text in texts if not any(known in text for known in BEFORE_ITS_CLASSES)}

    def prices(self) -> dict[tuple[str, str], float]:
        """US dollars per hour of (instance type, capacity type) as this process knows them, the lowest of
        all zones."""
        found: dict[tuple[str, str], float] = {}
        answer = httpx.get(f"http://127.0.0.1:{self.variables['METRICS_PORT']}/metrics", trust_env=False)
        for row in _PRICE.finditer(answer.text):
            labels = dict(_LABEL.findall(row["labels"]))
            key, price = (labels["instance_type"], labels["capacity_type"]), float(row["price"])
            found[key] = min(price, found.get(key, price))
        return found


@contextmanager
def karpenter(plane: ControlPlane, plan: Plan, folder: Path) -> Iterator[tuple[Ec2, Karpenter]]:
    """Karpenter for `plan`, with the settings of its release, until the block ends."""
    with (
        plane.client() as client,
        account(plan, client) as (ec2, variables),
        interruptions(plan.environment) as (ec2.notices, queue),
        ExitStack() as stack,
    ):
        settings = {
            "CLUSTER_NAME": plan.environment.cluster_name,
            "CLUSTER_ENDPOINT": plane.address,
            "ISOLATED_VPC": "true",  # the prices that it was built with
            "DISABLE_DRY_RUN": "true",
            "DISABLE_LEADER_ELECTION": "true",
            "KUBECONFIG": str(plane.kubeconfig(USER)),
            "SYSTEM_NAMESPACE": "kube-system",
            "FEATURE_GATES": "NodeRepair=false,ReservedCapacity=true,NodeOverlay=true,StaticCapacity=true",
        }
        until(lambda: client.discovers("NodeClaim"), "discovery of Karpenter's kinds")
        try:
            controller = Karpenter(folder, variables | settings | queue, stack)
            controller.start()
            yield ec2, controller
        finally:
            stack.close()
            _release(client)


def _release(client: Api) -> None:
    """Take away what only Karpenter would: its finalizers, of objects that a failed test left."""
    for version, kind in _WITH_FINALIZERS:
        for item in client.list(version, kind):
            client.merge(item, {"metadata": {"finalizers": None}})
            client.delete(item)
