"""Flux' source and kustomize controllers, with the settings of the release that `cdk deploy` installs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from modelyard.aws.flux import flux_values
from modelyard.names import FLUX_NAMESPACE
from modelyard.objects.delivery.kustomizations import FLUX_SOURCE
from tests.cluster.api import Api, Object
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane
from tests.cluster.embedded_s3 import CREDENTIALS, NAME, REGION, Bucket, bucket
from tests.cluster.flux_controllers import controllers
from tests.cluster.programs import Running
from tests.cluster.trees import VALUES


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
    """Both controllers, their objects and a bucket of their own, until the block ends."""
    values = flux_values(
        bucket_name=NAME,
        region=REGION,
        substitutions=VALUES,
        addon_substitutions=VALUES,
        delivery_substitutions=VALUES,
        shared=True,  # a policy more, which must not hinder Flux
    )
    with (
        bucket(plane.folder) as store,
        controllers(plane, cluster, values, store.address, CREDENTIALS) as started,
    ):
        yield Flux(cluster.api, store, started)
