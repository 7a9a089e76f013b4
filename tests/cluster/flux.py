"""Flux' source and kustomize controllers, with the settings of the release that `cdk deploy` installs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelyard.aws.flux import flux_values
from modelyard.names import FLUX_NAMESPACE
from modelyard.objects.delivery.kustomizations import FLUX_SOURCE
from tests.cluster.api import Api, Object
from tests.cluster.cluster import Cluster, namespace
from tests.cluster.control_plane import ControlPlane
from tests.cluster.embedded_s3 import CREDENTIALS, NAME, REGION, Bucket, bucket
from tests.cluster.programs import Running, free_port, running
from tests.cluster.trees import VALUES

_ACCOUNT = "system:serviceaccount:flux-system"
_OURS = {"tests.modelyard.dev/watched": "true"}
"""The source controller looks at the bucket alone: repositories of charts are played."""


class Flux:
    """The running controllers and their bucket."""

    def __init__(self, api: Api, store: Bucket, controllers: tuple[Running, ...]) -> None:
        self._api = api
        self._store = store
        self._controllers = controllers

    def publish(self, tree: Mapping[Path, str]) -> bool:
        """As a delivery does, without waiting for the minute in which Flux looks again; whether it brings
        another tree."""
        changes = self._store.publish(tree)
        self._ask(self._bucket())
        return changes

    @contextmanager
    def down(self) -> Iterator[None]:
        """Both controllers are gone until the block ends."""
        for each in self._controllers:
            each.end()
        yield
        for each in self._controllers:
            each.restart()

    def look_at(self, name: str) -> None:
        """Let it compare a Kustomization with the cluster now, not within ten minutes."""
        self._ask(self.kustomizations()[name])

    def _ask(self, item: Object) -> None:
        asked = {"reconcile.fluxcd.io/requestedAt": datetime.now(UTC).isoformat()}
        self._api.merge(item, {"metadata": {"annotations": asked}})

    def _bucket(self) -> Object:
        found = self._api.get("source.toolkit.fluxcd.io/v1", "Bucket", FLUX_SOURCE, FLUX_NAMESPACE)
        assert found is not None
        return found

    @property
    def revision(self) -> str:
        """Of what Flux has fetched last; "" for nothing."""
        return str(self._bucket().get("status", {}).get("artifact", {}).get("revision", ""))

    def kustomizations(self) -> dict[str, Object]:
        for each in self._controllers:
            each.check()
        found = self._api.list("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
        return {item["metadata"]["name"]: item for item in found}


@contextmanager
def flux(plane: ControlPlane, cluster: Cluster) -> Iterator[Flux]:
    """Both controllers and their objects, until the block ends."""
    values = flux_values(
        bucket_name=NAME,
        region=REGION,
        substitutions=VALUES,
        addon_substitutions=VALUES,
        delivery_substitutions=VALUES,
    )
    cluster.put([namespace(FLUX_NAMESPACE), _may_do_everything()])
    with ExitStack() as stack:
        store = stack.enter_context(bucket(plane.folder))
        stored = free_port()
        source = [
            f"--storage-addr=127.0.0.1:{stored}",
            f"--storage-adv-addr=127.0.0.1:{stored}",
            f"--storage-path={plane.folder / 'artifacts'}",
            f"--watch-label-selector={','.join('='.join(each) for each in _OURS.items())}",
        ]
        (plane.folder / "artifacts").mkdir()
        kustomize = [
            *values["kustomizeController"]["container"]["additionalArgs"],
            "--requeue-dependency=1s",  # the last one counts; the tests wait for it
        ]
        started = tuple(
            stack.enter_context(_controller(plane, name, arguments))
            for name, arguments in (("source-controller", source), ("kustomize-controller", kustomize))
        )
        cluster.put([_here(item, store) for item in values["extraObjects"]])
        yield Flux(cluster.api, store, started)


@contextmanager
def _controller(plane: ControlPlane, name: str, arguments: list[str]) -> Iterator[Running]:
    usual = [
        f"--metrics-addr=127.0.0.1:{free_port()}",
        f"--health-addr=127.0.0.1:{free_port()}",
        "--enable-leader-election=false",
        "--log-level=info",
    ]
    variables = {
        "KUBECONFIG": str(plane.kubeconfig(f"{_ACCOUNT}:{name}")),
        "RUNTIME_NAMESPACE": FLUX_NAMESPACE,
        "TMPDIR": str(plane.folder),
        **CREDENTIALS,
    }
    with running(name, [*usual, *arguments], plane.folder, variables=variables) as started:
        yield started


def _here(item: dict[str, Any], store: Bucket) -> Object:
    """The object without Helm's hooks; the bucket is the embedded one."""
    metadata = {key: value for key, value in item["metadata"].items() if key != "annotations"}
    if item["kind"] != "Bucket":
        return {**item, "metadata": metadata}
    spec = {**item["spec"], "endpoint": store.address, "insecure": True}
    return {**item, "metadata": {**metadata, "labels": _OURS}, "spec": spec}


def _may_do_everything() -> Object:
    """The chart's own binding."""
    users = [f"{_ACCOUNT}:{name}" for name in ("kustomize-controller", "source-controller")]
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "cluster-reconciler"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user} for user in users],
    }
