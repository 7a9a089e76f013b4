"""A simulated cluster: Deployments, the scheduler and Karpenter acting on pods of one pool, in the worst
order.

Every step makes progress, so a run ends: with all pods new and ready, or stuck. Nothing here uses the
planner's arithmetic. The simulation allows more than reality: Karpenter launches a node although another has
room, as it does to honour soft topology spread, and any of several pods may be next.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

Amounts = tuple[int, ...]


@dataclass(frozen=True)
class NodeType:
    """What a node has for pods; the first amount is accelerators, which the pool's limit counts."""

    name: str
    has: Amounts


@dataclass(eq=False)
class Node:
    type: NodeType
    pods: list[Pod] = field(default_factory=list)

    def fits(self, pod: Pod) -> bool:
        used = [sum(other.deployment.asks[i] for other in self.pods) for i in range(len(self.type.has))]
        amounts = zip(used, pod.deployment.asks, self.type.has, strict=True)
        return self.type in pod.deployment.types and all(u + asked <= has for u, asked, has in amounts)


@dataclass(eq=False)
class Deployment:
    """`steps` are the numbers of replicas that the autoscaler asks for, one after the other."""

    name: str
    types: Sequence[NodeType]
    asks: Amounts
    max_surge: int
    max_unavailable: int
    steps: list[int]
    pods: list[Pod] = field(default_factory=list)

    @property
    def replicas(self) -> int:
        return self.steps[0]

    @property
    def counted(self) -> list[Pod]:
        return [pod for pod in self.pods if not pod.terminating]


@dataclass(eq=False)
class Pod:
    deployment: Deployment
    new: bool
    node: Node | None = None
    ready: bool = False
    terminating: bool = False


@dataclass(eq=False)
class Cluster:
    """`limit` is the pool's, in accelerators."""

    limit: int
    deployments: Sequence[Deployment]
    choices: random.Random
    nodes: list[Node] = field(default_factory=list)
    rolling: bool = False

    def settle(self) -> bool:
        """Start the first replicas; whether all of them found a place."""
        for deployment in self.deployments:
            deployment.pods = [Pod(deployment, new=False) for _ in range(deployment.replicas)]
        return self._run()

    def roll_out(self) -> bool:
        """Replace every pod of every Deployment at the same time; whether that comes to an end."""
        self.rolling = True
        return self._run()

    def _run(self) -> bool:
        while steps := list(self._possible()):
            self.choices.choice(steps)()
        return all(self._done(deployment) for deployment in self.deployments)

    def _done(self, deployment: Deployment) -> bool:
        ready = [pod for pod in deployment.pods if pod.ready and pod.new == self.rolling]
        return len(deployment.steps) == 1 and len(ready) == len(deployment.pods) == deployment.replicas

    def _possible(self) -> Iterator[Callable[[], object]]:
        for node in self.nodes:
            if not node.pods:
                yield partial(self.nodes.remove, node)
        for deployment in self.deployments:
            for pod in deployment.pods:
                if pod.terminating:
                    yield partial(self._remove, pod)
                elif pod.node is None:
                    yield from self._places(pod)
                elif not pod.ready:
                    yield partial(setattr, pod, "ready", True)
            yield from self._controlled(deployment)

    def _places(self, pod: Pod) -> Iterator[Callable[[], object]]:
        for node in self.nodes:
            if node.fits(pod):
                yield partial(self._bind, pod, node)
        launched = sum(node.type.has[0] for node in self.nodes)
        for kind in pod.deployment.types:
            if launched + kind.has[0] <= self.limit and Node(kind).fits(pod):
                yield partial(self._launch, pod, kind)

    def _controlled(self, deployment: Deployment) -> Iterator[Callable[[], object]]:
        """What the Deployment controller does: kube-controller-manager, deployment/rolling.go."""
        counted = deployment.counted
        old = [pod for pod in counted if pod.new != self.rolling]
        new = [pod for pod in counted if pod.new == self.rolling]
        if len(counted) < deployment.replicas + deployment.max_surge and len(new) < deployment.replicas:
            yield partial(deployment.pods.append, Pod(deployment, new=self.rolling))
        least = deployment.replicas - deployment.max_unavailable
        unavailable = sum(not pod.ready for pod in new)
        if len(counted) - least - unavailable > 0:
            broken = [pod for pod in old if not pod.ready]
            if broken or sum(pod.ready for pod in counted) > least:
                for pod in broken or old:
                    yield partial(self._stop, pod)
        if len(new) > deployment.replicas:
            for pod in new:
                yield partial(self._stop, pod)
        if len(deployment.steps) > 1:
            yield partial(deployment.steps.pop, 0)

    def _launch(self, pod: Pod, kind: NodeType) -> None:
        self.nodes.append(Node(kind))
        self._bind(pod, self.nodes[-1])

    def _bind(self, pod: Pod, node: Node) -> None:
        pod.node = node
        node.pods.append(pod)

    def _stop(self, pod: Pod) -> None:
        if pod.node is None:
            pod.deployment.pods.remove(pod)
        else:
            pod.terminating, pod.ready = True, False

    def _remove(self, pod: Pod) -> None:
        pod.deployment.pods.remove(pod)
        if pod.node is not None:
            pod.node.pods.remove(pod)
