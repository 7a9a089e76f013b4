"""Constructs of what models share."""

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
from modelyard.spec.cluster import Cluster, GeneralNodes
from modelyard.spec.environment import Checks
from modelyard.spec.network import ExistingVpc, Network
from modelyard.spec.storage import Cache

# What these objects do not say, but an Environment must.
_UNSAID_ACCOUNT: Final = "000000000000"
_UNSAID_VPC: Final = "vpc-00000000"
_UNSAID_RANGE: Final = "100.64.0.0/16"

_GENERAL: Final = GeneralNodes()
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]")


class AcceleratorPool(ManifestConstruct):
    """NodePool and node class for one accelerator: only instance types that the plan knows, tainted, and
    never consolidated while a model runs on them.

    Args:
        name: Name of both objects.
        pool: Accelerator, limit, capacity and images.
        environment: What the nodes belong to, by their tag `modelyard:environment`; at most 20 characters.
        availability_zones: Names of two or three zones of one region.
        cluster_name: The EKS cluster; default: `modelyard-ENVIRONMENT`. Nodes take the role or instance
            profile `CLUSTER-node`, and subnets with the tag `karpenter.sh/discovery: CLUSTER`.
        compute: Who launches nodes: Karpenter, or EKS Auto Mode.
        private_subnets: Zone to the id of its subnet, where subnets have no such tag.
        pod_subnets: Whether pods have subnets of their own, which only EKS Auto Mode has to be told.
        tags: Further tags of nodes and volumes.
        drift_at_night: Whether drifted nodes are replaced between 02:00 and 04:00 UTC alone.
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
            environment = Environment(
                name=environment,
                account=_UNSAID_ACCOUNT,
                region=_region(availability_zones),
                availability_zones=tuple(availability_zones),
                policy="strict" if drift_at_night else "relaxed",
                cluster=Cluster(name=cluster_name, compute=compute),
                network=_network(private_subnets, pod_subnets),
                tags=dict(tags or {}),
                pools={name: pool},
            )
        else:
            _deprecated("environment= takes no Environment any more: the construct has props of its own")
        super().__init__(scope, construct_id, accelerator_pool(name=name, pool=pool, environment=environment))


class GeneralPool(ManifestConstruct):
    """NodePool `general` with its node class: Graviton nodes on demand, for downloads of weights and whatever
    the system nodes do not hold.

    Args:
        environment: What the nodes belong to, by their tag `modelyard:environment`; at most 20 characters.
        availability_zones: Names of two or three zones of one region.
        cluster_name: The EKS cluster; default: `modelyard-ENVIRONMENT`. Nodes take the role or instance
            profile `CLUSTER-node`, and subnets with the tag `karpenter.sh/discovery: CLUSTER`.
        compute: Who launches nodes: Karpenter, or EKS Auto Mode.
        vcpu_limit: Most vCPU at once.
        ami: AMI alias, pinned to a release; default: the tested one.
        private_subnets: Zone to the id of its subnet, where subnets have no such tag.
        pod_subnets: Whether pods have subnets of their own, which only EKS Auto Mode has to be told.
        prefix_delegation: Whether nodes take addresses in blocks of sixteen, and 110 pods.
        tags: Further tags of nodes and volumes.
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
        vcpu_limit: int = _GENERAL.vcpu_limit,
        ami: str = _GENERAL.ami,
        private_subnets: Mapping[str, str] | None = None,
        pod_subnets: bool = False,
        prefix_delegation: bool = False,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(environment, str):
            nodes = GeneralNodes(vcpu_limit=vcpu_limit, ami=ami)
            environment = Environment(
                name=environment,
                account=_UNSAID_ACCOUNT,
                region=_region(availability_zones),
                availability_zones=tuple(availability_zones),
                cluster=Cluster(name=cluster_name, compute=compute, general_nodes=nodes),
                network=_network(private_subnets, pod_subnets, prefix_delegation),
                tags=dict(tags or {}),
            )
        else:
            _deprecated("environment= takes no Environment any more: the construct has props of its own")
        super().__init__(scope, construct_id, general_pool(environment))


class ModelNamespace(ManifestConstruct):
    """The namespace of the models: restricted, closed by default, with priorities of its own.

    Args:
        namespace: Its name.
        compute: Who runs the cluster's DNS, which pods may ask: pods, or the nodes of EKS Auto Mode.
        checks: Whether the jobs that ask the models may: the models, the package index, and S3 for reports.
        environment: Deprecated: stands for all of these.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str = "models",
        compute: Literal["karpenter", "auto-mode"] = "karpenter",
        checks: bool = True,
        environment: Environment | None = None,
    ) -> None:
        if environment is None:
            zones = ("us-east-1a", "us-east-1b")  # which no namespace says
            environment = Environment(
                name="unsaid",
                account=_UNSAID_ACCOUNT,
                region=_region(zones),
                availability_zones=zones,
                cluster=Cluster(compute=compute),
                checks=Checks(smoke=checks),
                namespace=namespace,
            )
        else:
            _deprecated("environment= takes no Environment any more: the construct has props of its own")
        super().__init__(scope, construct_id, model_namespace(environment))


class ModelCache(ManifestConstruct):
    """StorageClass, PersistentVolume and claim `model-cache` of the shared model cache.

    Ids that are not given stand as `${modelyard_…}`, which Flux fills in after a deploy of the stacks.

    Args:
        namespace: Namespace of the claim.
        file_system: What `EfsCache`, `S3FilesCache` or `LustreCache` made.
        size_gib: Capacity that the claim states, in GiB; EFS and S3 Files bill by use.
        file_system_id: Id of an EFS file system (fs-…).
        access_point_id: Its access point (fsap-…), with uid and gid 2000.
        cache: Deprecated: stands for all of these but `namespace`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str = "models",
        file_system: Literal["efs", "s3-files", "lustre"] = "efs",
        size_gib: int = 2048,
        file_system_id: str | None = None,
        access_point_id: str | None = None,
        cache: Cache | None = None,
    ) -> None:
        if cache is None:
            cache = Cache(
                file_system=file_system,
                size_gib=size_gib,
                file_system_id=file_system_id,
                access_point_id=access_point_id,
            )
        else:
            _deprecated("cache= is file_system=, size_gib=, file_system_id= and access_point_id= now")
        super().__init__(scope, construct_id, shared_model_cache(namespace=namespace, cache=cache))


class SynchronizedSecrets(ManifestConstruct):
    """A store and one ExternalSecret a logical name; pods find the value under key `value` of the Secret.

    Args:
        region: Region of the secrets.
        secrets: Logical name to the name in Secrets Manager.
        namespace: Namespace of the Secrets.
        readers: Further namespaces that may read through the store.
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
    """A namespace for a team's own workloads, with a share of the accelerators.

    Args:
        name: Of the namespace.
        team: Name of the team.
        pools: Accelerators that the cluster's pools have, such as l40s.
        granted: Accelerator to how many the team's pods may hold; none of a kind that is not named.
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
    ) -> None:
        super().__init__(
            scope, construct_id, team_namespace(name=name, team=team, pools=pools, granted=granted)
        )


class TeamShare(ManifestConstruct):
    """Priorities and a quota of a team's models.

    Args:
        team: Name of the team.
        pools: Accelerators that the cluster's pools have, such as l40s.
        granted: Accelerator to how many the team's models may hold; none of a kind that is not named.
        rollouts: Accelerator to how many more while replicas are replaced.
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
        name: Of the release.
        namespace: Where it is installed.
        repository: https:// for a chart index, oci:// for a registry.
        chart: Name of the chart.
        version: Its version.
        values: Values of the chart.
        engine: Who installs it.
        after: Releases that must be ready before.
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


def _region(zones: Sequence[str]) -> str:
    """The region with whose name those of `zones` begin; empty without one, which an Environment refuses."""
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
    warnings.warn(message, DeprecationWarning, stacklevel=4)  # past the constructor and jsii's metaclass
