"""Names that templates, rendered objects and the commands that look at a deployment must agree on."""

from __future__ import annotations

from typing import Final

WEIGHTS_READER: Final = "weights-reader"
"""Service account of all model servers that stream weights from S3, so that one Pod Identity association
suffices."""

CHECKS_ACCOUNT: Final = "endpoint-checks"
"""Service account of all endpoint check jobs; its only permission is to write reports."""

REPORTS_VARIABLE: Final = "modelyard_check_reports"
"""Variable in the manifests for the bucket of these reports."""

ENVIRONMENT_TAG: Final = "modelyard:environment"
"""Tag on all resources of an environment: its stacks, and the nodes that Karpenter launches. Budgets filter
by it."""

POD_SUBNETS_TAG: Final = "modelyard:pods"
"""Tag on subnets for pods only; its value is the cluster's name."""

AUTO_MODE_POOLS: Final = ("system", "general-purpose")
"""Built-in NodePools of EKS Auto Mode: for its own components, and for pods that select no pool."""

METRICS_ACCOUNT: Final = "prometheus"
"""Service account of Prometheus, which writes to the managed workspace if there is one."""

ALERTS_ACCOUNT: Final = "alertmanager"
"""Service account of Alertmanager, which publishes to the topics of receivers."""

METRICS_VARIABLE: Final = "modelyard_prometheus_endpoint"
"""Variable in the manifests for the workspace's URL, with a trailing slash."""


POOL_TAINT: Final = "modelyard.dev/pool"
"""Taint of the nodes of pools in a cluster of others; its value is the pool's name."""

MODEL_LABEL: Final = "modelyard.dev/model"
"""Label of every object of a model; its value is the model's name."""

AUTOSCALED_LABEL: Final = "modelyard.dev/autoscaled"
"""Label of a workload whose replicas belong to an autoscaler."""

TEAM_LABEL: Final = "modelyard.dev/team"
"""Label of every object of a team's model; its value is the team's name."""

MODEL_CACHE: Final = "model-cache"
"""The stack of the shared model cache, and the StorageClass, volume and claim that models mount."""

CACHE_SIZE: Final = "2048Gi"
"""Size of every volume and claim of the model cache. The file system has its own size, and Kubernetes
refuses to resize the claim of a static volume: a size that followed a setting would stop the delivery when
that changes."""

EFS_NODE_ACCOUNT: Final = "efs-csi-node-sa"
"""Service account of the EFS CSI driver's pods on nodes, which mount."""

SYSTEM_VOLUME_GIB: Final = 50
"""Root volume of each system node."""

METRICS_VOLUME_GIB: Final = 100
SILENCES_VOLUME_GIB: Final = 1
"""Volumes of Prometheus and of Alertmanager; one GiB is the smallest of gp3."""

FILE_SYSTEM_ID: Final = "file-system-id"
ACCESS_POINT_ID: Final = "access-point-id"
DNS_NAME: Final = "dns-name"
MOUNT_NAME: Final = "mount-name"
"""Values of the model cache's stack that the volume needs."""

FLUX_NAMESPACE: Final = "flux-system"
"""Namespace of Flux's controllers and of the objects that they apply."""

EXTERNAL_SECRETS: Final = "external-secrets"
"""Namespace, Helm release and service account of External Secrets, whose IAM role reads Secrets Manager."""

DISCOVERY_TAG: Final = "karpenter.sh/discovery"
"""Tag of the subnets and security groups that node classes select; its value is the cluster's name."""

NODE_POOL_LABEL: Final = "karpenter.sh/nodepool"
"""Label of a node, and tag of its instance: the NodePool that it was launched for."""

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
"""Annotation of pods that Karpenter does not evict of its own accord."""

KUSTOMIZATION: Final = "kustomization.yaml"
"""The file that lists the others of its folder."""

MODELS_FOLDER: Final = "models"
"""Folder of the tree with a folder per model."""

WEIGHTS_FOLDER: Final = "models/_weights"
"""Folder of the tree with a folder per Job that fetches weights. It is beside the models, of which none has
such a name."""

WEIGHTS_FETCH: Final = "weights-fetch"
"""Service account of the Jobs that fetch weights from the Hub."""

CHECKS_FOLDER: Final = "checks"
"""Folder of the tree with a folder per model: the jobs that test its endpoint."""

EFS_DRIVER: Final = "aws-efs-csi-driver"
FSX_DRIVER: Final = "aws-fsx-csi-driver"
METRICS_SERVER: Final = "metrics-server"
"""EKS add-ons that are installed beside EKS Auto Mode as well."""


def stack_name(environment: str, concern: str) -> str:
    """The stack of one concern, such as `network`."""
    return f"modelyard-{environment}-{concern}"


def parameter_name(environment: str, concern: str, key: str) -> str:
    """The SSM parameter with which the stack of `concern` passes a value to other stacks."""
    return f"/modelyard/{environment}/{concern}/{key}"


def cache_variable(file_system: str, key: str) -> str:
    """Variable in the manifests for a value of the model cache that exists only after the deploy, such as
    `modelyard_efs_file_system_id`."""
    return f"modelyard_{file_system.replace('-', '')}_{key.replace('-', '_')}"
