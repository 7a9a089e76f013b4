"""Which series belong to a model: by our own label on its scrapes, by the names of its pods in everybody else's."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.engines import Metrics, metrics_of
from modelyard.planning import ModelPlan


@dataclass(frozen=True)
class Selection:
    """Selectors for one model in one namespace."""

    model: str
    namespace: str

    def series(self, metric: str, *matchers: str) -> str:
        """Series that the model's servers expose; `metric` may carry matchers of its own."""
        return _select(metric, f'namespace="{self.namespace}"', f'model="{self.model}"', *matchers)

    def pods(self, metric: str, *matchers: str) -> str:
        """Series of others about the model's pods. A Deployment's pods end in two words without a dash, so that model
        `qwen` does not take those of `qwen-8b`."""
        pods = f'pod=~"{self.model}-[a-z0-9]+-[a-z0-9]{{5}}"'
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
