"""Kinds of the Kubernetes API that an environment has in a cluster."""

from __future__ import annotations

from typing import Final

from modelyard.live.api.kubernetes import Kind

KUSTOMIZATION: Final = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
HELM_RELEASE: Final = Kind("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
APPLICATION: Final = Kind("argoproj.io", "v1alpha1", "Application", "applications")
SCALED_OBJECT: Final = Kind("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
CRON_JOB: Final = Kind("batch", "v1", "CronJob", "cronjobs")
JOB: Final = Kind("batch", "v1", "Job", "jobs")
LEADER_WORKER_SET: Final = Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
STATEFUL_SET: Final = Kind("apps", "v1", "StatefulSet", "statefulsets")
DAEMON_SET: Final = Kind("apps", "v1", "DaemonSet", "daemonsets")
DEPLOYMENT: Final = Kind("apps", "v1", "Deployment", "deployments")
POD: Final = Kind("", "v1", "Pod", "pods")
GATEWAY: Final = Kind("gateway.networking.k8s.io", "v1", "Gateway", "gateways")
INGRESS: Final = Kind("networking.k8s.io", "v1", "Ingress", "ingresses")
SERVICE: Final = Kind("", "v1", "Service", "services")
NODE_POOL: Final = Kind("karpenter.sh", "v1", "NodePool", "nodepools", namespaced=False)
NODE_CLAIM: Final = Kind("karpenter.sh", "v1", "NodeClaim", "nodeclaims", namespaced=False)
NODE_OVERLAY: Final = Kind("karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays", namespaced=False)
NODE_CLASS: Final = Kind("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses", namespaced=False)
AUTO_NODE_CLASS: Final = Kind("eks.amazonaws.com", "v1", "NodeClass", "nodeclasses", namespaced=False)

EXTERNAL_SECRET: Final = Kind("external-secrets.io", "v1", "ExternalSecret", "externalsecrets")
SECRET_STORE: Final = Kind(
    "external-secrets.io", "v1", "ClusterSecretStore", "clustersecretstores", namespaced=False
)
POD_MONITOR: Final = Kind("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")
PROMETHEUS_RULE: Final = Kind("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules")
SERVICE_MONITOR: Final = Kind("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")
CONFIG_MAP: Final = Kind("", "v1", "ConfigMap", "configmaps")
NAMESPACE: Final = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
VOLUME: Final = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
PRIORITY_CLASS: Final = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
STORAGE_CLASS: Final = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
ADMISSION_POLICIES: Final = tuple(
    Kind("admissionregistration.k8s.io", "v1", f"{name}{part}", f"{name.lower()}{plural}", namespaced=False)
    for name in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
    for part, plural in (("Binding", "bindings"), ("", ""))
)
HELM_REPOSITORY: Final = Kind("source.toolkit.fluxcd.io", "v1", "HelmRepository", "helmrepositories")
GIT_REPOSITORY: Final = Kind("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")
BUCKET: Final = Kind("source.toolkit.fluxcd.io", "v1", "Bucket", "buckets")
DEFINITION: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)

CLUSTER_WIDE: Final = (
    *(NAMESPACE, VOLUME, PRIORITY_CLASS, STORAGE_CLASS, SECRET_STORE),
    *(NODE_POOL, NODE_CLASS, AUTO_NODE_CLASS, NODE_OVERLAY),
    *ADMISSION_POLICIES,
)
"""Kinds of rendered objects that have no namespace, so that names are everybody's."""
