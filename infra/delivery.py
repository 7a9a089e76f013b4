"""Stack `Delivery`: the rendered tree in a bucket, and Flux to apply it."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Acknowledgment, Validations
from constructs import Construct

from infra.cluster import cluster_security_group
from infra.environment_stack import EnvironmentStack
from infra.model_cache import ModelCacheStack
from infra.network import vpc_of
from modelyard.aws.delivery import Delivery
from modelyard.aws.flux import Flux
from modelyard.spec import Environment


class DeliveryStack(EnvironmentStack):
    concern = "delivery"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment, tree: Path) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: rendered manifests, and Flux"
        )
        delivery = Delivery(
            self,
            "Delivery",
            tree=tree,
            log_retention_days=settings.cluster.log_retention_days,
            removal_policy=self.removal_policy,
        )
        if settings.delivery != "flux":
            return
        vpc = vpc_of(self)
        Validations.of(self).acknowledge(
            Acknowledgment(
                id="CloudFormation-Validate::W2001",
                reason="functions name their subnets; the VPC's id goes unused",
            )
        )
        flux = Flux(
            self,
            "Flux",
            cluster_name=settings.cluster_name,
            vpc=vpc,
            subnets=vpc.private_subnets,
            cluster_security_group=cluster_security_group(self),
            bucket=delivery.bucket,
            substitutions=self._substitutions(),
            monitoring=settings.monitoring.enabled,
            checks=settings.checks.enabled,
            log_retention_days=settings.cluster.log_retention_days,
            removal_policy=self.removal_policy,
        )
        # The first thing Flux sees is a whole tree.
        flux.release.node.add_dependency(delivery.upload)

    def _substitutions(self) -> dict[str, str]:
        cache = self.settings.cache
        return {
            "modelyard_efs_file_system_id": cache.file_system_id
            or self.read(ModelCacheStack, "file-system-id"),
            "modelyard_efs_access_point_id": cache.access_point_id
            or self.read(ModelCacheStack, "access-point-id"),
        }
