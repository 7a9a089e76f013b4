"""Reusable cdk8s constructs: what a model, a pool, a cache and an add-on are in Kubernetes."""

from modelyard.k8s.accelerator_pool import AcceleratorPool
from modelyard.k8s.argocd import ArgoApplication
from modelyard.k8s.client_jobs import BenchJob, ClientPrograms, SmokeJob
from modelyard.k8s.general_pool import GeneralPool
from modelyard.k8s.helm_addon import HelmAddon
from modelyard.k8s.model_cache import SharedModelCache
from modelyard.k8s.model_namespace import ModelNamespace
from modelyard.k8s.model_server import ModelServer
from modelyard.k8s.monitoring import ModelRules, PlatformMonitoring
from modelyard.k8s.secrets import SynchronizedSecrets
from modelyard.k8s.tree import write_tree
from modelyard.k8s.weights import WeightsFetch
from modelyard.writing import Rendering

__all__ = [
    "AcceleratorPool",
    "ArgoApplication",
    "BenchJob",
    "ClientPrograms",
    "GeneralPool",
    "HelmAddon",
    "ModelNamespace",
    "ModelRules",
    "ModelServer",
    "PlatformMonitoring",
    "Rendering",
    "SharedModelCache",
    "SmokeJob",
    "SynchronizedSecrets",
    "WeightsFetch",
    "write_tree",
]
