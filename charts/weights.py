"""Chart of the jobs that fill the model cache: one for each repository and revision, whoever needs it."""

from __future__ import annotations

from collections.abc import Iterable

from cdk8s import Chart
from constructs import Construct

from modelyard.k8s import WeightsFetch
from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.weights import FETCH, Source, fetched_sources
from modelyard.planning import ModelPlan
from modelyard.spec import Environment


class WeightsChart(Chart):
    def __init__(
        self, scope: Construct, construct_id: str, *, plans: Iterable[ModelPlan], environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        wanted: dict[Source, str | None] = {}
        for plan in plans:
            for source in fetched_sources(plan):
                wanted[source] = wanted.get(source) or plan.token_secret
        if wanted:
            manifest(
                self,
                "ServiceAccount",
                api_version="v1",
                kind="ServiceAccount",
                name=FETCH,
                namespace=environment.namespace,
                labels=platform_labels(FETCH),
                automountServiceAccountToken=False,
            )
        for number, (source, token) in enumerate(wanted.items()):
            WeightsFetch(
                self,
                f"Fetch{number}",
                source=source,
                environment=environment.name,
                namespace=environment.namespace,
                token_secret=token,
            )
