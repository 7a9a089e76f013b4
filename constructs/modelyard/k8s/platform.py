"""Constructs of what models share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from constructs import Construct

from modelyard.k8s.construct import ManifestConstruct
from modelyard.objects.delivery.argocd import IN_CLUSTER
from modelyard.objects.delivery.helm_addon import helm_addon
from modelyard.objects.platform.accelerator_pool import accelerator_pool
from modelyard.objects.platform.general_pool import general_pool
from modelyard.objects.platform.model_cache import shared_model_cache
from modelyard.objects.platform.namespace import model_namespace
from modelyard.objects.platform.secrets import synchronized_secrets
from modelyard.objects.platform.team_namespace import team_namespace
from modelyard.objects.platform.team_share import team_share
from modelyard.spec import Environment, Pool
from modelyard.spec.storage import Cache


class AcceleratorPool(ManifestConstruct):
    """NodePool and node class for one accelerator."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, pool: Pool, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, accelerator_pool(name=name, pool=pool, environment=environment))


class GeneralPool(ManifestConstruct):
    """CPU nodes on demand."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id, general_pool(environment))


class ModelNamespace(ManifestConstruct):
    """The namespace of the models: restricted, closed by default, with priorities of its own."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id, model_namespace(environment))


class ModelCache(ManifestConstruct):
    """StorageClass, PersistentVolume and claim of the shared model cache."""

    def __init__(self, scope: Construct, construct_id: str, *, namespace: str, cache: Cache) -> None:
        super().__init__(scope, construct_id, shared_model_cache(namespace=namespace, cache=cache))


class SynchronizedSecrets(ManifestConstruct):
    """A store and one ExternalSecret a logical name."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str,
        region: str,
        secrets: Mapping[str, str],  # logical name to name in Secrets Manager
        readers: Sequence[str] = (),  # further namespaces that may read through the store
    ) -> None:
        manifests = synchronized_secrets(namespace=namespace, region=region, secrets=secrets, readers=readers)
        super().__init__(scope, construct_id, manifests)


class TeamNamespace(ManifestConstruct):
    """A namespace for a team's own workloads, with a share of the accelerators."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        team: str,
        pools: Iterable[str],  # accelerators that the environment's pools have
        granted: Mapping[str, int],  # accelerator to how many
    ) -> None:
        super().__init__(
            scope, construct_id, team_namespace(name=name, team=team, pools=pools, granted=granted)
        )


class TeamShare(ManifestConstruct):
    """Priorities and a quota of a team's models."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str,
        team: str,
        pools: Iterable[str],  # accelerators that the environment's pools have
        granted: Mapping[str, int],  # accelerator to how many
        rollouts: Mapping[str, int],  # accelerator to how many more while replicas are replaced
    ) -> None:
        manifests = team_share(
            namespace=namespace, team=team, pools=pools, granted=granted, rollouts=rollouts
        )
        super().__init__(scope, construct_id, manifests)


class HelmAddon(ManifestConstruct):
    """One Helm release, as Flux or Argo CD installs it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        namespace: str,
        repository: str,  # https:// for a chart index, oci:// for a registry
        chart: str,
        version: str,
        values: Mapping[str, Any] | None = None,
        engine: Literal["flux", "argocd"] = "flux",
        after: Sequence[str] = (),  # releases that must be ready before
        definitions: bool = True,  # install the CRDs that the chart carries in crds/
        server: str = IN_CLUSTER,  # for Argo CD
    ) -> None:
        manifests = helm_addon(
            engine=engine,
            name=name,
            namespace=namespace,
            repository=repository,
            chart=chart,
            version=version,
            values=values or {},
            after=after,
            definitions=definitions,
            server=server,
        )
        super().__init__(scope, construct_id, manifests)
