"""Stack `ModelCache`: the weights, apart from the cluster so that either can be kept without the other."""

from __future__ import annotations

from constructs import Construct

from infra.cluster import cluster_security_group
from infra.environment_stack import EnvironmentStack
from infra.network import vpc_of
from modelyard.aws.model_cache import ModelCache
from modelyard.spec import Environment


class ModelCacheStack(EnvironmentStack):
    concern = "model-cache"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: shared model cache on EFS"
        )
        vpc = vpc_of(self)
        cache = ModelCache(
            self,
            "Cache",
            vpc=vpc,
            subnets=vpc.private_subnets,
            clients=cluster_security_group(self),
            removal_policy=self.removal_policy,
        )
        self.publish("file-system-id", cache.file_system.file_system_id)
        self.publish("access-point-id", cache.access_point.access_point_id)
