"""What a cluster's API server says of an environment's objects, of which it keeps none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from modelyard.live.api.answers import Denied
from modelyard.live.api.kubernetes import Kind, LiveCluster, built_in_kind
from modelyard.live.clusters.kinds import DEFINITION, NAMESPACE, POD, PRIORITY_CLASS
from modelyard.object_rules.pods import Manifest, pod_templates

_MARK: Final = "modelyard.dev/environment"
_MARKED: Final = "kube-system"
_WORKLOADS: Final = ("CronJob", "Deployment", "Job", "LeaderWorkerSet")
_ACCOUNT: Final = Kind("", "v1", "ServiceAccount", "serviceaccounts")


@dataclass
class Acceptance:
    """`refused`: an object, or the pod of one, and the server's reason. `unasked`: why an object could not be
    judged, and how many such objects there are."""

    accepted: int = 0
    refused: list[tuple[Manifest, str]] = field(default_factory=list)
    unasked: Counter[str] = field(default_factory=Counter)


def is_marked(cluster: LiveCluster, environment: str) -> bool:
    """Whether its owner has said that this environment may ask it."""
    return any(
        item.labels.get(_MARK) == environment for item in cluster.items(NAMESPACE) if item.name == _MARKED
    )


def how_to_mark(context: str, environment: str) -> str:
    """The command that says so."""
    return f"kubectl --context {context} label namespace {_MARKED} {_MARK}={environment}"


def accepted_by(cluster: LiveCluster, objects: Iterable[Manifest]) -> Acceptance:
    """Ask for each of `objects`, and for a pod of each workload, by a dry run of a server-side apply:
    defaulting, schemas, CEL rules, admission and Pod Security are the server's own.

    Raises:
        Unreachable: no answer.
    """
    there = _There.of(cluster)
    result = Acceptance()
    for item in objects:
        for asked in (item, *_pods(item)):
            if why := there.lacks(asked):
                result.unasked[why] += 1
                continue
            try:
                refusal = cluster.refusal(there.kinds[asked["apiVersion"], asked["kind"]], asked)
            except Denied as denied:
                result.unasked[str(denied)] += 1
                continue
            if refusal is None:
                result.accepted += 1
            else:
                result.refused.append((item, refusal if asked is item else f"its pod: {refusal}"))
    return result


@dataclass(frozen=True)
class _There:
    """What objects refer to by name, and a dry run does not bring."""

    kinds: dict[tuple[str, str], Kind]
    namespaces: frozenset[str]
    accounts: frozenset[tuple[str, str]]
    priorities: frozenset[str]

    @classmethod
    def of(cls, cluster: LiveCluster) -> _There:
        return cls(
            dict(_defined(cluster)),
            frozenset(item.name for item in cluster.items(NAMESPACE)),
            frozenset((item.namespace, item.name) for item in cluster.items(_ACCOUNT)),
            frozenset(item.name for item in cluster.items(PRIORITY_CLASS)),
        )

    def lacks(self, item: Manifest) -> str | None:
        """What the cluster has to have before it can judge `item`."""
        key = item["apiVersion"], item["kind"]
        if key not in self.kinds:
            if (known := built_in_kind(*key)) is None:
                return f"the cluster has no kind {item['kind']} of {item['apiVersion']} yet"
            self.kinds[key] = known
        namespace = item["metadata"].get("namespace", "")
        if namespace and namespace not in self.namespaces:
            return f"the cluster has no namespace {namespace} yet"
        if item["kind"] == POD.name:
            spec = item["spec"]
            account = spec.get("serviceAccountName", "default")
            if (namespace, account) not in self.accounts:
                return f"namespace {namespace} lacks their service account yet"
            if (priority := spec.get("priorityClassName")) and priority not in self.priorities:
                return f"the cluster has no priority class {priority} yet"
        return None


def _defined(cluster: LiveCluster) -> Iterator[tuple[tuple[str, str], Kind]]:
    for item in cluster.items(DEFINITION):
        spec = item.spec
        names = spec["names"]
        for version in spec["versions"]:
            if version["served"]:
                kind = Kind(
                    spec["group"],
                    version["name"],
                    names["kind"],
                    names["plural"],
                    spec["scope"] == "Namespaced",
                )
                yield (f"{kind.group}/{kind.version}", kind.name), kind


def _pods(item: Manifest) -> Iterator[Manifest]:
    """A pod of each template: a controller would be refused it later, and nobody would be told."""
    if item["kind"] not in _WORKLOADS:
        return
    for number, template in enumerate(pod_templates(item)):
        metadata = template.get("metadata") or {}
        yield {
            "apiVersion": "v1",
            "kind": POD.name,
            "metadata": {
                "name": f"{item['metadata']['name'][:50]}-{number}",
                "namespace": item["metadata"]["namespace"],
                "labels": metadata.get("labels") or {},
                "annotations": metadata.get("annotations") or {},
            },
            "spec": {**template["spec"], "restartPolicy": template["spec"].get("restartPolicy", "Always")},
        }
