"""Constructs for objects that models share."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

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
from modelyard.spec.cluster import GENERAL_VCPU, Cluster, GeneralNodes
from modelyard.spec.environment import Checks
from modelyard.spec.network import ExistingVpc, Network
from modelyard.spec.storage import Cache

# Environment needs an account; these objects do not use it.
_UNSAID_ACCOUNT: Final = "000000000000"
_UNSAID_VPC: Final = "vpc-00000000"
_UNSAID_RANGE: Final = "100.64.0.0/16"

_NO_ENVIRONMENT: Final = "environment= takes no Environment any more: the construct has props of its own"
_GENERAL: Final = GeneralNodes()
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")


class AcceleratorPool(ManifestConstruct):
    """NodePool and node class for one accelerator: only instance types that the plan knows, tainted, never
    consolidated while a model runs on them.

    Args:
        name: Name of both objects.
        pool: Accelerator, limit, capacity and images.
        environment: Name of the environment, for the nodes' tag `modelyard:environment`; at most 20
            characters.
        availability_zones: Names of two or three zones of one region.
        cluster_name: The EKS cluster; default: `modelyard-ENVIRONMENT`. Nodes use the role or instance
            profile `CLUSTER-node`, and subnets with the tag `karpenter.sh/discovery: CLUSTER`.
        compute: Who launches nodes: Karpenter, or EKS Auto Mode.
        private_subnets: Zone to subnet id, if the subnets do not have that tag.
        pod_subnets: Whether pods have their own subnets; only EKS Auto Mode needs to know.
        tags: More tags for nodes and volumes.
        drift_at_night: Whether drifted nodes are replaced only between 02:00 and 04:00 UTC.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        pool: Pool,
        environment: str | Environment,  # an Environment is deprecated
        availability_zones: Sequence[str] = (),
        cluster_name: str | None = None,
        compute: Literal["karpenter", "auto-mode"] = "karpenter",
        private_subnets: Mapping[str, str] | None = None,
        pod_subnets: bool = False,
        tags: Mapping[str, str] | None = None,
        drift_at_night: bool = False,
    ) -> None:
        if isinstance(environment, str):
            environment = _environment(
                environment,
                availability_zones,
                policy="strict" if drift_at_night else "relaxed",
                cluster=Cluster(name=cluster_name, compute=compute),
                network=_network(private_subnets, pod_subnets),
                tags=dict(tags or {}),
                pools={name: pool},
            )
        else:
            _deprecated(_NO_ENVIRONMENT)
        super().__init__(scope, construct_id, accelerator_pool(name=name, pool=pool, environment=environment))


class GeneralPool(ManifestConstruct):
    """NodePool `general` with its node class: on-demand Graviton nodes for weight downloads and for pods that
    do not fit on the system nodes.

    Args:
        environment: Name of the environment, for the nodes' tag `modelyard:environment`; at most 20
            characters.
        availability_zones: Names of two or three zones of one region.
        cluster_name: The EKS cluster; default: `modelyard-ENVIRONMENT`. Nodes use the role or instance
            profile `CLUSTER-node`, and subnets with the tag `karpenter.sh/discovery: CLUSTER`.
        compute: Who launches nodes: Karpenter, or EKS Auto Mode.
        vcpu_limit: Maximum vCPU of all nodes together.
        ami: AMI alias, pinned to a release; default: the tested release.
        private_subnets: Zone to subnet id, if the subnets do not have that tag.
        pod_subnets: Whether pods have their own subnets; only EKS Auto Mode needs to know.
        prefix_delegation: Whether nodes get IP addresses in blocks of sixteen, and run up to 110 pods.
        tags: More tags for nodes and volumes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str | Environment,  # an Environment is deprecated
        availability_zones: Sequence[str] = (),
        cluster_name: str | None = None,
        compute: Literal["karpenter", "auto-mode"] = "karpenter",
        vcpu_limit: int = GENERAL_VCPU,
        ami: str = _GENERAL.ami,
        private_subnets: Mapping[str, str] | None = None,
        pod_subnets: bool = False,
        prefix_delegation: bool = False,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(environment, str):
            nodes = GeneralNodes(vcpu_limit=vcpu_limit, ami=ami)
            environment = _environment(
                environment,
                availability_zones,
                cluster=Cluster(name=cluster_name, compute=compute, general_nodes=nodes),
                network=_network(private_subnets, pod_subnets, prefix_delegation),
                tags=dict(tags or {}),
            )
        else:
            _deprecated(_NO_ENVIRONMENT)
        super().__init__(scope, construct_id, general_pool(environment))


class ModelNamespace(ManifestConstruct):
    """The namespace of the models: restricted, default-deny, with its own PriorityClasses.

    Args:
        namespace: Name of the namespace.
        compute: Where cluster DNS runs: in pods (Karpenter), or on the nodes (EKS Auto Mode).
        checks: Whether to allow the check Jobs to reach the models, the package index, and S3 for reports.
        fetches_from_buckets: Whether to allow the fetch Jobs to get AWS credentials, for adapters in buckets.
        environment: Deprecated: replaces all other arguments.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str = "models",
        compute: Literal["karpenter", "auto-mode"] = "karpenter",
        checks: bool = True,
        fetches_from_buckets: bool = False,
        environment: Environment | None = None,
    ) -> None:
        if environment is None:
            zones = ("us-east-1a", "us-east-1b")  # any zones will do: a namespace has none
            environment = _environment(
                "unsaid",
                zones,
                cluster=Cluster(compute=compute),
                cache=Cache(weights_bucket=fetches_from_buckets),
                checks=Checks(smoke=checks),
                namespace=namespace,
            )
        else:
            _deprecated(_NO_ENVIRONMENT)
        super().__init__(scope, construct_id, model_namespace(environment))


class ModelCache(ManifestConstruct):
    """StorageClass, PersistentVolume and claim `model-cache` of the shared model cache.

    Ids that are not given are written as `${modelyard_…}`; Flux substitutes them after the stacks are
    deployed.

    Args:
        namespace: Namespace of the claim.
        file_system: The construct that makes it: `EfsCache`, `S3FilesCache` or `LustreCache`.
        size_gib: Deprecated: the file system has its own size, and claims of static volumes have one.
        file_system_id: Id of an EFS file system (fs-…).
        access_point_id: Its access point (fsap-…), with uid and gid 2000.
        cache: Deprecated: replaces all arguments except `namespace`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str = "models",
        file_system: Literal["efs", "s3-files", "lustre"] = "efs",
        size_gib: int | None = None,
        file_system_id: str | None = None,
        access_point_id: str | None = None,
        cache: Cache | None = None,
    ) -> None:
        if size_gib is not None:
            _deprecated("size_gib= means nothing any more: claims have one size")
        if cache is None:
            cache = Cache(
                file_system=file_system,
                file_system_id=file_system_id,
                access_point_id=access_point_id,
            )
        else:
            _deprecated("cache= is file_system=, file_system_id= and access_point_id= now")
        super().__init__(scope, construct_id, shared_model_cache(namespace=namespace, cache=cache))


class SynchronizedSecrets(ManifestConstruct):
    """A SecretStore and one ExternalSecret per logical name; the Secret has the value under key `value`.

    Args:
        region: Region of the secrets.
        secrets: Logical name to name in Secrets Manager.
        namespace: Namespace of the Secrets.
        readers: Other namespaces that may use the store.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        region: str,
        secrets: Mapping[str, str],
        namespace: str = "models",
        readers: Sequence[str] = (),
    ) -> None:
        manifests = synchronized_secrets(namespace=namespace, region=region, secrets=secrets, readers=readers)
        super().__init__(scope, construct_id, manifests)


class TeamNamespace(ManifestConstruct):
    """A namespace for a team's own workloads, with an accelerator quota.

    Args:
        name: Name of the namespace.
        team: Name of the team.
        pools: Accelerators that the cluster's pools have, such as l40s.
        granted: Accelerator to the number that the team's pods may use; 0 for accelerators not listed.
        models_namespace: Namespace of the models, which the team's pods may call.
        monitoring_namespace: Namespace of Prometheus, which may read the pods' metrics; default: none.
        auto_mode: Whether the cluster runs in EKS Auto Mode, where DNS has no pods.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        team: str,
        pools: Iterable[str],
        granted: Mapping[str, int],
        models_namespace: str = "models",
        monitoring_namespace: str | None = None,
        auto_mode: bool = False,
    ) -> None:
        manifests = team_namespace(
            name=name,
            team=team,
            pools=pools,
            granted=granted,
            models=models_namespace,
            monitoring=monitoring_namespace,
            auto_mode=auto_mode,
        )
        super().__init__(scope, construct_id, manifests)


class TeamShare(ManifestConstruct):
    """PriorityClasses and a quota for a team's models.

    Args:
        team: Name of the team.
        pools: Accelerators that the cluster's pools have, such as l40s.
        granted: Accelerator to the number that the team's models may use; 0 for accelerators not listed.
        rollouts: Accelerator to the extra number while replicas are replaced.
        namespace: Namespace of the models.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        team: str,
        pools: Iterable[str],
        granted: Mapping[str, int],
        rollouts: Mapping[str, int] | None = None,
        namespace: str = "models",
    ) -> None:
        manifests = team_share(
            namespace=namespace, team=team, pools=pools, granted=granted, rollouts=rollouts or {}
        )
        super().__init__(scope, construct_id, manifests)


class HelmAddon(ManifestConstruct):
    """One Helm release, as Flux or Argo CD installs it.

    Args:
        name: Name of the release.
        namespace: Namespace of the release.
        repository: https:// for a chart index, oci:// for a registry.
        chart: Name of the chart.
        version: Its version.
        values: Values of the chart.
        engine: Delivery engine: Flux or Argo CD.
        after: Releases that must be ready first.
        definitions: Whether to install the CRDs that the chart carries in crds/.
        server: Address of the cluster, for Argo CD.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        namespace: str,
        repository: str,
        chart: str,
        version: str,
        values: Mapping[str, Any] | None = None,
        engine: Literal["flux", "argocd"] = "flux",
        after: Sequence[str] = (),
        definitions: bool = True,
        server: str = IN_CLUSTER,
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


def _environment(name: str, zones: Sequence[str], **settings: Any) -> Environment:
    """An environment with `settings`, for objects that use nothing else of it."""
    return Environment(
        name=name,
        account=_UNSAID_ACCOUNT,
        region=_region(zones),
        availability_zones=tuple(zones),
        **settings,
    )


def _region(zones: Sequence[str]) -> str:
    """The region that prefixes one of `zones`; empty if there is none, which Environment rejects."""
    found = _REGION.match("".join(zones[:1]))
    return found[0] if found else ""


def _network(
    private_subnets: Mapping[str, str] | None, pod_subnets: bool, prefix_delegation: bool = False
) -> Network:
    return Network(
        vpc=ExistingVpc(id=_UNSAID_VPC, private_subnets=dict(private_subnets)) if private_subnets else None,
        pod_cidr=_UNSAID_RANGE if pod_subnets else None,
        prefix_delegation=prefix_delegation,
    )


def _deprecated(message: str) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=4)  # skips the constructor and jsii's metaclass
