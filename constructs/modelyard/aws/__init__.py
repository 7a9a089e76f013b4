"""CDK constructs for the AWS half: network, cluster, Karpenter, model cache, secrets and delivery."""

from modelyard.aws.cluster import InferenceCluster
from modelyard.aws.delivery import Delivery
from modelyard.aws.flux import Flux
from modelyard.aws.karpenter import KarpenterController
from modelyard.aws.model_cache import ModelCache
from modelyard.aws.network import InferenceNetwork
from modelyard.aws.secrets import ModelSecrets

__all__ = [
    "Delivery",
    "Flux",
    "InferenceCluster",
    "InferenceNetwork",
    "KarpenterController",
    "ModelCache",
    "ModelSecrets",
]
