"""Pods that controllers make of workloads, and why they do not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from tests.cluster.api import Api, Object, Refused
from tests.cluster.cluster import condition, named
from tests.cluster.programs import until

_TRIED = 4
"""Seconds of a controller's tries after the first refusal; it doubles the time between them."""


def refused_pods(api: Api) -> list[str]:
    """What controllers say of pods that the API server did not let them create."""
    return sorted(
        {
            f"{event['involvedObject']['kind']} {event['involvedObject']['name']}: {event['message']}"
            for event in api.list("v1", "Event")
            if event["reason"] == "FailedCreate"
        }
    )


def settled(api: Api) -> list[str]:
    """Wait until every Deployment and Job has the pods that it asks for, or is refused them for good; returns
    the refusals.

    One is for good when a controller has tried for seconds: admission does not know an account yet that was
    made a moment ago.
    """
    first_refusal: list[float] = []

    def done() -> bool:
        if refused_pods(api) and not first_refusal:
            first_refusal.append(time.monotonic())
        tried = bool(first_refusal) and time.monotonic() - first_refusal[0] > _TRIED
        return tried or not [*waiting(api)]

    until(done, "pods of the workloads", seconds=300, lacking=lambda: waiting(api))
    return refused_pods(api) if [*waiting(api)] else []


def waiting(api: Api) -> Iterator[str]:
    """Workloads that do not have all their pods."""
    for item in api.list("apps/v1", "Deployment"):
        status = item.get("status", {})
        seen = status.get("observedGeneration") == item["metadata"]["generation"]
        if not seen or status.get("updatedReplicas", 0) < item["spec"]["replicas"]:
            yield named(item)
    for item in api.list("batch/v1", "Job"):
        if item["spec"].get("suspend") or condition(item, "Complete") or condition(item, "Failed"):
            continue
        if item.get("status", {}).get("active", 0) < item["spec"].get("parallelism", 1):
            yield named(item)


def runs_of(items: Iterable[Object]) -> Iterator[Object]:
    """One Job of each CronJob, as its schedule would make it."""
    for item in items:
        if item["kind"] == "CronJob":
            template = item["spec"]["jobTemplate"]
            yield {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    **template.get("metadata", {}),
                    "name": f"{item['metadata']['name']}-once",
                    "namespace": item["metadata"]["namespace"],
                },
                "spec": {**template["spec"], "suspend": False},
            }


def foreign_pods(items: Iterable[Object]) -> Iterator[Object]:
    """A bare pod of each template whose controller is not here: those of LeaderWorkerSets."""
    for item in items:
        if item["kind"] == "LeaderWorkerSet":
            for role in ("leaderTemplate", "workerTemplate"):
                if template := item["spec"]["leaderWorkerTemplate"].get(role):
                    yield pod_of(item, template, role.lower())


def pod_of(owner: Object, template: dict[str, Any], suffix: str) -> Object:
    metadata = template.get("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": f"{owner['metadata']['name']}-{suffix}",
            "namespace": owner["metadata"]["namespace"],
        },
        "spec": template["spec"],
    }


def refusal(api: Api, pod: Object) -> str | None:
    """Why the API server would not create `pod`."""
    try:
        api.create(pod, dry_run=True)
    except Refused as answer:
        return answer.message
    return None
