"""Safety settings of the rendered objects, and how to remove each."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

Manifest = dict[str, Any]
GONE = "gone"
MODEL, SCALED, GROUP = "qwen3-32b-fp8", "llama-3-1-8b", "two-nodes"


@dataclass(frozen=True)
class Mutation:
    """`value` in place of what is at `path` of one object; GONE takes it away, without a path the whole
    object. `object`: its name, or a pattern of a name with a hash."""

    name: str
    kind: str
    object: str
    path: tuple[Any, ...] = ()
    value: Any = GONE
    environment: str = "prod"

    def applied(self, objects: Iterable[Manifest]) -> list[Manifest]:
        """All objects, the one that is changed as a copy."""
        result = []
        for item in objects:
            if item["kind"] != self.kind or not fnmatch(item["metadata"]["name"], self.object):
                result.append(item)
            elif self.path:
                result.append(self._changed(deepcopy(item)))
        return result

    def _changed(self, item: Manifest) -> Manifest:
        place: Any = item
        for step in self.path[:-1]:
            place = place[_position(place, step)]
        last = _position(place, self.path[-1])
        if self.value == GONE:
            del place[last]
        else:
            assert place.get(last) != self.value if isinstance(place, dict) else True
            place[last] = self.value
        return item


def _position(place: Any, step: Any) -> Any:
    """A key, a number, or in a list the place of the word or of the thing with that name or path."""
    if not isinstance(place, list) or isinstance(step, int):
        return step
    for number, item in enumerate(place):
        named = [item.get(key) for key in ("name", "mountPath", "key")] if isinstance(item, dict) else [item]
        if (
            step in named
            or any(isinstance(name, str) and fnmatch(name, step) for name in named)
            or (isinstance(item, str) and item.startswith(f"{step}="))
        ):
            return number
    raise KeyError(step)


POD = ("spec", "template", "spec")
SERVER = (*POD, "containers", "server")
GROUP_POD = ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec")
GROUP_WORKER = ("spec", "leaderWorkerTemplate", "workerTemplate", "spec")
CRON_POD = ("spec", "jobTemplate", "spec", "template", "spec")
BEHAVIOUR = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")
INSTANCE = "app.kubernetes.io/instance"
LISTENER = ("spec", "listeners", "https")
ROUTE = ("spec", "rules", 0)
PROMETHEUS = ("spec", "values", "prometheus", "prometheusSpec")
MEMBERS = ("spec", "selector", "matchLabels")


def server(name: str, *path: Any, value: Any = GONE) -> Mutation:
    """A change of the server's container."""
    return Mutation(name, "Deployment", MODEL, (*SERVER, *path), value)


def pod(name: str, *path: Any, value: Any = GONE) -> Mutation:
    return Mutation(name, "Deployment", MODEL, (*POD, *path), value)


MUTATIONS = (
    server("startup probe", "startupProbe"),
    server("readiness probe", "readinessProbe"),
    server("liveness probe", "livenessProbe"),
    server("liveness slower than readiness", "livenessProbe", "failureThreshold", value=1),
    server("pause before the signal", "lifecycle"),
    server("drain flag", "args", "--shutdown-timeout"),
    server("container's securityContext", "securityContext"),
    server("no escalation", "securityContext", "allowPrivilegeEscalation"),
    server("capabilities dropped", "securityContext", "capabilities"),
    server("read-only root", "securityContext", "readOnlyRootFilesystem"),
    server("memory limit", "resources", "limits", "memory"),
    server("GPU limit", "resources", "limits", "nvidia.com/gpu"),
    server("GPU request", "resources", "requests", "nvidia.com/gpu"),
    server("offline", "env", "HF_HUB_OFFLINE"),
    server(
        "token away from servers",
        *("env", "HF_HUB_DISABLE_TELEMETRY"),
        value={"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "value"}}},
    ),
    server("version in the image", "image", value="vllm/vllm-openai"),
    server("image that does not move", "image", value="vllm/vllm-openai:latest"),
    server("weights read-only", "volumeMounts", "/models", "readOnly"),
    server("shared memory mounted", "volumeMounts", "/dev/shm"),
    server("length", "args", "--max-model-len"),
    server("parallelism", "args", "--tensor-parallel-size", value="--tensor-parallel-size=4"),
    server(
        "utilization as computed", "args", "--gpu-memory-utilization", value="--gpu-memory-utilization=0.97"
    ),
    server("port name", "ports", "http", "name", value="api"),
    server("compile cache kept", "volumeMounts", "/compile/*"),
    pod("grace above the drain", "terminationGracePeriodSeconds", value=30),
    pod("no variables of Services", "enableServiceLinks"),
    pod("no token of the API server", "automountServiceAccountToken"),
    pod("pod's securityContext", "securityContext"),
    pod("seccomp", "securityContext", "seccompProfile"),
    pod("not root", "securityContext", "runAsNonRoot"),
    pod("shm in memory", "volumes", "shm", "emptyDir", "medium"),
    pod("size of shm", "volumes", "shm", "emptyDir", "sizeLimit"),
    pod("size of scratch", "volumes", "home", "emptyDir", "sizeLimit"),
    pod("claim that exists", "volumes", "model-cache", "persistentVolumeClaim", "claimName", value="cache"),
    pod("toleration of the pool", "tolerations"),
    pod("pool", "nodeSelector"),
    pod("pool that exists", "nodeSelector", "karpenter.sh/nodepool", value="g5"),
    pod("instance types", "affinity"),
    pod("priority that exists", "priorityClassName", value="high"),
    pod("spread over zones", "topologySpreadConstraints"),
    pod("service account", "serviceAccountName", value="default"),
    pod("init container confined", "initContainers", "await-weights", "securityContext"),
    pod("no host namespaces", "hostIPC", value=True),
    pod(
        "one volume of a claim",
        *("volumes", "home"),
        value={"name": "home", "persistentVolumeClaim": {"claimName": "model-cache", "readOnly": True}},
    ),
    pod(
        "weights read-only while it waits",
        *("initContainers", "await-weights", "volumeMounts", "/models", "readOnly"),
    ),
    Mutation(
        *("download to its end", "Job", "qwen3-32b-fp8-fetch-*"),
        ("spec", "template", "metadata", "annotations"),
    ),
    Mutation(
        *("a lost node is no failed download", "Job", "qwen3-32b-fp8-fetch-*"),
        ("spec", "podFailurePolicy", "rules", 0),
    ),
    Mutation(
        *("a lost node is no failed check", "Job", "qwen3-32b-fp8-smoke-*"),
        ("spec", "podFailurePolicy"),
    ),
    Mutation(
        *("a lost node is no failed batch", "Job", "backfill-batch-*"),
        ("spec", "podFailurePolicy"),
        GONE,
        "serving",
    ),
    Mutation(
        "rollout that can proceed", "Deployment", MODEL, ("spec", "strategy", "rollingUpdate", "maxSurge"), 0
    ),
    Mutation("deadline above the start-up", "Deployment", MODEL, ("spec", "progressDeadlineSeconds")),
    Mutation(
        "selector of the Deployment", "Deployment", MODEL, ("spec", "selector", "matchLabels", INSTANCE), "x"
    ),
    Mutation(
        "GPUs do not wait for a download",
        "Kustomization",
        f"model-{MODEL}",
        ("spec", "dependsOn"),
        [{"name": "platform", "readyExpr": "has(dep.status.lastAppliedRevision)"}],
    ),
    Mutation("a download is waited for", "Kustomization", "qwen3-32b-fp8-fetch-*", ("spec", "wait"), False),
    Mutation(
        "no rollback waits for the platform",
        "Kustomization",
        f"model-{MODEL}",
        ("spec", "dependsOn", "platform", "readyExpr"),
    ),
    Mutation("a dependency that is delivered", "Kustomization", f"model-{MODEL}"),
    Mutation(
        "replicas kept when they become a range",
        "Deployment",
        SCALED,
        ("metadata", "labels", "modelyard.dev/autoscaled"),
    ),
    Mutation("policy that keeps replicas", "MutatingAdmissionPolicy", "modelyard-keep-replicas"),
    Mutation("policy that is bound", "MutatingAdmissionPolicyBinding", "modelyard-keep-replicas"),
    Mutation("one owner of replicas", "Deployment", SCALED, ("spec", "replicas"), 3),
    Mutation("second replica", "Deployment", MODEL, ("spec", "replicas"), 1),
    Mutation("selector of the Service", "Service", MODEL, ("spec", "selector", INSTANCE)),
    Mutation("port of the Service", "Service", MODEL, ("spec", "ports", 0, "targetPort"), "metrics"),
    Mutation("Service inside the cluster", "Service", MODEL, ("spec", "type"), "LoadBalancer"),
    Mutation("labels of the Service", "Service", MODEL, ("metadata", "labels", INSTANCE)),
    Mutation(
        "selector of the monitor", "ServiceMonitor", MODEL, ("spec", "selector", "matchLabels", INSTANCE)
    ),
    Mutation("port of the monitor", "ServiceMonitor", MODEL, ("spec", "endpoints", 0, "port"), "metrics"),
    Mutation("path of the monitor", "ServiceMonitor", MODEL, ("spec", "endpoints", 0, "path"), "/stats"),
    Mutation("label `model` of series", "ServiceMonitor", MODEL, ("spec", "endpoints", 0, "relabelings")),
    Mutation("ServiceMonitor", "ServiceMonitor", MODEL),
    Mutation("PrometheusRule", "PrometheusRule", MODEL),
    Mutation("dashboard", "ConfigMap", f"dashboard-model-{MODEL}"),
    Mutation("NetworkPolicy", "NetworkPolicy", MODEL),
    Mutation("callers of the policy", "NetworkPolicy", MODEL, ("spec", "ingress", 0, "from")),
    Mutation("egress closed", "NetworkPolicy", MODEL, ("spec", "policyTypes"), ["Ingress"]),
    Mutation("egress by name", "NetworkPolicy", MODEL, ("spec", "egress", 0), {}),
    Mutation(
        "pods of the policy", "NetworkPolicy", MODEL, ("spec", "podSelector", "matchLabels", INSTANCE), "x"
    ),
    Mutation("default deny", "NetworkPolicy", "default-deny"),
    Mutation("default deny of a team", "NetworkPolicy", "search-apps-default-deny", environment="existing"),
    Mutation(
        *("restricted namespace of a team", "Namespace", "search-apps"),
        ("metadata", "labels", "pod-security.kubernetes.io/enforce"),
        environment="existing",
    ),
    Mutation("PodDisruptionBudget", "PodDisruptionBudget", MODEL),
    Mutation(
        "pods of the budget", "PodDisruptionBudget", MODEL, ("spec", "selector", "matchLabels", INSTANCE), "x"
    ),
    Mutation("ServiceAccount", "ServiceAccount", MODEL),
    Mutation(
        "null is not zero", "ScaledObject", SCALED, ("spec", "triggers", 0, "metadata", "ignoreNullValues")
    ),
    Mutation("fallback", "ScaledObject", SCALED, ("spec", "fallback")),
    Mutation(
        *("window above the start-up", "ScaledObject", SCALED),
        (*BEHAVIOUR, "scaleDown", "stabilizationWindowSeconds"),
        60,
    ),
    Mutation("target of the scaler", "ScaledObject", SCALED, ("spec", "scaleTargetRef", "name"), "other"),
    Mutation("NodePool", "NodePool", "g6e"),
    Mutation("only empty nodes go", "NodePool", "g6e", ("spec", "disruption", "consolidationPolicy")),
    Mutation("nodes do not expire", "NodePool", "g6e", ("spec", "template", "spec", "expireAfter"), "720h"),
    Mutation("taint of the pool", "NodePool", "g6e", ("spec", "template", "spec", "taints")),
    Mutation(
        *("taint against GPU pods of others", "NodePool", "g6e"),
        ("spec", "template", "spec", "taints", 1),
        environment="shared",
    ),
    Mutation(
        *("toleration of that taint", "Deployment", "chat"),
        ("spec", "template", "spec", "tolerations", 0),
        environment="shared",
    ),
    Mutation("limit of the pool", "NodePool", "g6e", ("spec", "limits")),
    Mutation("disruption budget of the pool", "NodePool", "g6e", ("spec", "disruption", "budgets")),
    Mutation(
        "types of the pool", "NodePool", "g6e", ("spec", "template", "spec", "requirements", 0, "values"), []
    ),
    Mutation("EC2NodeClass", "EC2NodeClass", "g6e"),
    Mutation("IMDSv2", "EC2NodeClass", "g6e", ("spec", "metadataOptions", "httpTokens"), "optional"),
    Mutation("hop limit", "EC2NodeClass", "g6e", ("spec", "metadataOptions", "httpPutResponseHopLimit"), 2),
    Mutation(
        "encrypted disk", "EC2NodeClass", "g6e", ("spec", "blockDeviceMappings", 0, "ebs", "encrypted"), False
    ),
    Mutation("pinned AMI", "EC2NodeClass", "g6e", ("spec", "amiSelectorTerms", 0, "alias"), "al2023@latest"),
    Mutation(
        *("restricted namespace", "Namespace", "models"),
        ("metadata", "labels", "pod-security.kubernetes.io/enforce"),
    ),
    Mutation("PriorityClass", "PriorityClass", "model-server"),
    Mutation("claim of the cache", "PersistentVolumeClaim", "model-cache"),
    Mutation(
        "size that never changes",
        "PersistentVolumeClaim",
        "model-cache",
        ("spec", "resources", "requests", "storage"),
        "4000Gi",
    ),
    Mutation(
        "a batch that nobody waits for", "Kustomization", "model-backfill", ("spec", "wait"), True, "serving"
    ),
    Mutation("secret of the token", "ExternalSecret", "hf-token"),
    Mutation("name of the secret", "ExternalSecret", "hf-token", ("spec", "target", "name"), "token"),
    Mutation(
        "probe of a group",
        "LeaderWorkerSet",
        GROUP,
        (*GROUP_POD, "containers", 0, "startupProbe"),
        GONE,
        "serving",
    ),
    Mutation(
        "drain of a group",
        "LeaderWorkerSet",
        GROUP,
        (*GROUP_POD, "containers", 0, "lifecycle"),
        GONE,
        "serving",
    ),
    Mutation(
        "worker confined", "LeaderWorkerSet", GROUP, (*GROUP_WORKER, "securityContext"), GONE, "serving"
    ),
    Mutation(
        "toleration of a worker", "LeaderWorkerSet", GROUP, (*GROUP_WORKER, "tolerations"), GONE, "serving"
    ),
    Mutation(
        "size of a group", "LeaderWorkerSet", GROUP, ("spec", "leaderWorkerTemplate", "size"), 3, "serving"
    ),
    Mutation(
        "offline batch",
        "CronJob",
        "nightly",
        (*CRON_POD, "containers", 0, "env", "HF_HUB_OFFLINE"),
        GONE,
        "serving",
    ),
    Mutation(
        *("pickers that are all live", "Deployment", "split-router"),
        (*POD, "containers", "endpoint-picker", "args", "--zap-encoder"),
        "--ha-enable-leader-election=true",
        "serving",
    ),
    Mutation(
        *("pickers that are all live, by the flag alone", "Deployment", "split-router"),
        (*POD, "containers", "endpoint-picker", "args", "--zap-encoder"),
        "--ha-enable-leader-election",
        "serving",
    ),
    Mutation(
        *("port of a policy by number", "NetworkPolicy", MODEL),
        ("spec", "ingress", 0, "ports", 0, "port"),
        "http",
    ),
    Mutation(
        *("port that the pods have", "NetworkPolicy", MODEL),
        ("spec", "ingress", 0, "ports", 0, "port"),
        9999,
    ),
    Mutation(
        *("zone of a group", "LeaderWorkerSet", GROUP),
        (*GROUP_WORKER, "affinity", "podAffinity"),
        GONE,
        "serving",
    ),
    Mutation(
        *("alerts about AWS' own parts", "HelmRelease", "kube-prometheus-stack"),
        ("spec", "values", "kubeScheduler"),
    ),
    Mutation(
        *("folders that a sweep leaves alone", "CronJob", "cache-sweep"),
        (*CRON_POD, "containers", "sweep", "env", "NAMED", "value"),
        "[]",
    ),
    Mutation(
        *("data of Prometheus", "HelmRelease", "kube-prometheus-stack"),
        (*PROMETHEUS, "storageSpec"),
    ),
    Mutation(
        *("data that fit the volume", "HelmRelease", "kube-prometheus-stack"),
        (*PROMETHEUS, "retentionSize"),
        "120GiB",
    ),
    Mutation("class of Prometheus' volume", "StorageClass", "metrics"),
    Mutation("key of a receiver", "ExternalSecret", "pagerduty"),
    Mutation(
        *("secret that Alertmanager mounts", "HelmRelease", "kube-prometheus-stack"),
        ("spec", "values", "alertmanager", "alertmanagerSpec", "secrets"),
    ),
    Mutation(
        *("receiver of a route", "HelmRelease", "kube-prometheus-stack"),
        ("spec", "values", "alertmanager", "config", "receivers", "on-call"),
    ),
    Mutation("eyes on Flux", "PodMonitor", "helm-controller"),
    Mutation("eyes on External Secrets", "PodMonitor", "external-secrets"),
    Mutation(
        *("states of Flux' objects", "HelmRelease", "kube-prometheus-stack"),
        ("spec", "values", "kube-state-metrics"),
    ),
    Mutation(
        *("release that is tried again", "HelmRelease", "karpenter"),
        ("spec", "install", "strategy"),
    ),
    Mutation(
        *("upgrade that is tried again", "HelmRelease", "karpenter"),
        ("spec", "upgrade"),
        {"crds": "Skip", "remediation": {"retries": 3}},
    ),
    Mutation(
        *("nodes that get new AMIs", "Deployment", MODEL),
        ("spec", "template", "metadata", "annotations", "karpenter.sh/do-not-disrupt"),
        "true",
    ),
    Mutation(
        *("one run of a batch", "Job", "backfill-batch-*"),
        ("spec", "ttlSecondsAfterFinished"),
        3600,
        "serving",
    ),
    Mutation(
        "plug-in of a pool's fabric",
        "HelmRelease",
        "aws-efa-k8s-device-plugin",
        ("spec", "values", "supportedInstanceLabels"),
        GONE,
        "serving",
    ),
    Mutation(
        "level of LeaderWorkerSet's controller",
        "HelmRelease",
        "lws",
        ("spec", "values", "podSecurityContext", "seccompProfile"),
        GONE,
        "serving",
    ),
    Mutation(
        *("level of a gateway's pods", "HelmRelease", "istiod"),
        ("spec", "values", "gateways"),
        GONE,
        "serving",
    ),
    Mutation(
        "a resource that no node has",
        "LeaderWorkerSet",
        GROUP,
        (*GROUP_WORKER, "containers", 0, "resources", "limits", "hugepages-2Mi"),
        "5128Mi",
        "serving",
    ),
    Mutation("batch confined", "CronJob", "nightly", (*CRON_POD, "securityContext"), GONE, "serving"),
    Mutation("restart of a run", "CronJob", "nightly", (*CRON_POD, "restartPolicy"), "Always", "serving"),
    Mutation("policy of a batch", "NetworkPolicy", "nightly", (), GONE, "serving"),
    Mutation("secret of the API key", "ExternalSecret", "clients", (), GONE, "serving"),
    Mutation(
        *("key that the server asks for", "Deployment", "split"),
        (*POD, "containers", 0, "env", "VLLM_API_KEY"),
        GONE,
        "serving",
    ),
    Mutation(
        *("repository of Triton", "ConfigMap", "triton-chat-repository"),
        (),
        GONE,
        "serving",
    ),
    Mutation(
        "copy on the node's disk",
        "Deployment",
        "local-disk",
        (*POD, "initContainers", "copy-weights"),
        GONE,
        "serving",
    ),
    Mutation(
        "streaming",
        "Deployment",
        "streamed",
        (*POD, "containers", 0, "args", "--load-format"),
        GONE,
        "serving",
    ),
    Mutation(
        "priority of a share", "Deployment", "chat", (*POD, "priorityClassName"), "model-server", "existing"
    ),
    Mutation(
        "lifetime in Auto Mode",
        "NodePool",
        "g6e",
        ("spec", "template", "spec", "expireAfter"),
        "Never",
        "auto",
    ),
    Mutation(
        "drain in Auto Mode",
        "NodePool",
        "general",
        ("spec", "template", "spec", "terminationGracePeriod"),
        GONE,
        "auto",
    ),
    Mutation("policies in Auto Mode", "ConfigMap", "amazon-vpc-cni", (), GONE, "auto"),
    Mutation("policies on a node", "NodeClass", "g6e", ("spec", "networkPolicy"), GONE, "auto"),
    Mutation(
        "networks of a gateway",
        "Gateway",
        "public",
        ("spec", "infrastructure", "parametersRef"),
        GONE,
        "auto",
    ),
    Mutation("settings of a gateway", "ConfigMap", "public-service", (), GONE, "auto"),
    Mutation("quota of a share", "ResourceQuota", "search-accelerators", (), GONE, "existing"),
    Mutation(
        "scope of a share",
        "ResourceQuota",
        "search-accelerators",
        ("spec", "scopeSelector"),
        GONE,
        "existing",
    ),
    *(
        Mutation(name, kind, changed, path, value, "serving")
        for name, kind, changed, path, value in (
            ("way out of the proxy", "Gateway", "internal", (), GONE),
            ("TLS of a gateway", "Gateway", "internal", (*LISTENER, "protocol"), "HTTP"),
            ("certificate of a gateway", "ExternalSecret", "internal-certificate", (), GONE),
            (
                "routes of one namespace",
                "Gateway",
                "public",
                (*LISTENER, "allowedRoutes", "namespaces", "from"),
                "All",
            ),
            ("API alone", "HTTPRoute", "moe", (*ROUTE, "matches", 0, "path", "value"), "/"),
            ("API alone, everywhere", "HTTPRoute", "moe", (*ROUTE, "matches"), GONE),
            ("Service of a route", "HTTPRoute", "moe", (*ROUTE, "backendRefs", 0, "name"), "mo"),
            ("port of a route", "HTTPRoute", "moe", (*ROUTE, "backendRefs", 0, "port"), 8000),
            ("Service of the proxy", "Service", "litellm", (), GONE),
            ("key of the proxy", "ExternalSecret", "master-key", (), GONE),
            ("settings of the proxy", "ConfigMap", "litellm", (), GONE),
            ("members of a pool", "InferencePool", "split", (*MEMBERS, "modelyard.dev/model"), "spilt"),
            ("port of a pool", "InferencePool", "split", ("spec", "targetPorts", 0, "number"), 8001),
            ("picker of a pool", "InferencePool", "split", ("spec", "endpointPickerRef", "name"), "picker"),
            ("settings of a router", "ConfigMap", "split-router", (), GONE),
            ("account of a router", "ServiceAccount", "split-router", (), GONE),
        )
    ),
    Mutation(
        "engine from the registry",
        "Deployment",
        "split",
        (*SERVER, "image"),
        "vllm/vllm-openai:v0.33.0",
        "serving",
    ),
    Mutation(
        "sidecar from the registry",
        "Deployment",
        "split",
        (*POD, "initContainers", "routing-sidecar", "image"),
        "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0",
        "serving",
    ),
    Mutation(
        "job from the registry",
        "CronJob",
        "*",
        (*CRON_POD, "containers", 0, "image"),
        "docker.io/library/python:3.13.7-slim",
        "serving",
    ),
    Mutation(
        "chart from the registry",
        "HelmRepository",
        "keda",
        ("spec", "url"),
        "https://kedacore.github.io/charts",
        "serving",
    ),
    Mutation(
        "images of a chart from the registry",
        "HelmRelease",
        "kube-prometheus-stack",
        ("spec", "values", "kube-state-metrics", "image"),
        GONE,
        "serving",
    ),
)
