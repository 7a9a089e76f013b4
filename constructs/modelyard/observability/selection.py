"""Selectors for a model's series: by our label on its own metrics, by pod name on those of other
exporters."""

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
    """Whether a replica is a group of pods; the leaders are then in LeaderWorkerSet's StatefulSet."""

    @classmethod
    def of(cls, plan: ModelPlan, namespace: str) -> Selection:
        return cls(plan.name, namespace, grouped=plan.serving.nodes > 1)

    @property
    def wanted(self) -> str:
        """The number of wanted replicas."""
        if self.grouped:
            return self.named("kube_statefulset_replicas", "statefulset")
        return self.named("kube_deployment_spec_replicas", "deployment")

    @property
    def created(self) -> str:
        """Creation time of the model's workload, in Unix seconds."""
        kind = "statefulset" if self.grouped else "deployment"
        return self.named(f"kube_{kind}_created", kind)

    def series(self, metric: str, *matchers: str) -> str:
        """Series exposed by the model's servers; `metric` may have its own matchers."""
        return _select(metric, f'namespace="{self.namespace}"', f'model="{self.model}"', *matchers)

    def pods(self, metric: str, *matchers: str) -> str:
        """Series of other exporters about the model's pods. Pod names end in two dash-free words for a
        Deployment, and in the group and worker index for a group, so that `qwen` does not match pods of
        `qwen-8b`."""
        ending = "[0-9]+(-[0-9]+)?" if self.grouped else "[a-z0-9]+-[a-z0-9]{5}"
        pods = f'pod=~"{self.model}-{ending}"'
        return _select(metric, f'namespace="{self.namespace}"', pods, *matchers)

    def named(self, metric: str, label: str, name: str | None = None, *matchers: str) -> str:
        """Series of other exporters about the object named like the model, or `name`."""
        return _select(metric, f'namespace="{self.namespace}"', f'{label}="{name or self.model}"', *matchers)

    @property
    def labels(self) -> dict[str, str]:
        return {"model": self.model, "namespace": self.namespace}


def _select(metric: str, *matchers: str) -> str:
    name, _, own = metric.partition("{")
    return f"{name}{{{', '.join([*matchers, *filter(None, [own.removesuffix('}')])])}}}"


def metrics_for(plan: ModelPlan) -> Metrics:
    """The metrics of the engine that serves the model."""
    release = plan.serving.release
    return metrics_of(release.engine, release.version)


def container_resource(resource: str) -> str:
    """The resource name as kube-state-metrics writes it."""
    return "".join(letter if letter.isalnum() else "_" for letter in resource)
