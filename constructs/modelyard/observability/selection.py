"""Which series belong to a model: by our own label on its scrapes, by the names of its pods in everybody
else's."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.engines import Metrics, metrics_of
from modelyard.planning import ModelPlan


@dataclass(frozen=True)
class Selection:
    """Selectors for one model in one namespace."""

    model: str
    namespace: str
    grouped: bool = False
    """Whether a replica is a group of pods: leaders are in a StatefulSet then, as LeaderWorkerSet makes
    it."""

    @classmethod
    def of(cls, plan: ModelPlan, namespace: str) -> Selection:
        return cls(plan.name, namespace, grouped=plan.serving.nodes > 1)

    @property
    def wanted(self) -> str:
        """How many replicas there should be."""
        if self.grouped:
            return self.named("kube_statefulset_replicas", "statefulset")
        return self.named("kube_deployment_spec_replicas", "deployment")

    @property
    def created(self) -> str:
        """When the model's workload was created, in seconds since 1970."""
        kind = "statefulset" if self.grouped else "deployment"
        return self.named(f"kube_{kind}_created", kind)

    def series(self, metric: str, *matchers: str) -> str:
        """Series that the model's servers expose; `metric` may carry matchers of its own."""
        return _select(metric, f'namespace="{self.namespace}"', f'model="{self.model}"', *matchers)

    def pods(self, metric: str, *matchers: str) -> str:
        """Series of others about the model's pods. A Deployment's pods end in two words without a dash, a
        group's in its number and the worker's, so that model `qwen` does not take those of `qwen-8b`."""
        ending = "[0-9]+(-[0-9]+)?" if self.grouped else "[a-z0-9]+-[a-z0-9]{5}"
        pods = f'pod=~"{self.model}-{ending}"'
        return _select(metric, f'namespace="{self.namespace}"', pods, *matchers)

    def named(self, metric: str, label: str, name: str | None = None, *matchers: str) -> str:
        """Series of others about an object with the model's name, or `name`."""
        return _select(metric, f'namespace="{self.namespace}"', f'{label}="{name or self.model}"', *matchers)

    @property
    def labels(self) -> dict[str, str]:
        return {"model": self.model, "namespace": self.namespace}


def _select(metric: str, *matchers: str) -> str:
    name, _, own = metric.partition("{")
    return f"{name}{{{', '.join([*matchers, *filter(None, [own.removesuffix('}')])])}}}"


def metrics_for(plan: ModelPlan) -> Metrics:
    """The page of the engine that serves the model."""
    release = plan.serving.release
    return metrics_of(release.engine, release.version)


def container_resource(resource: str) -> str:
    """How kube-state-metrics writes a resource's name."""
    return "".join(letter if letter.isalnum() else "_" for letter in resource)
