"""Stack `Delivery`: the rendered tree in a bucket, and Flux to apply it."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import Acknowledgment, Validations
from constructs import Construct

from infra.cluster import cluster_security_group
from infra.environment_stack import EnvironmentStack
from infra.metrics import MetricsStack
from infra.model_cache import HANDED_OVER, ModelCacheStack
from infra.network import vpc_of
from modelyard.aws.argo_cd import ManagedArgoCd
from modelyard.aws.check_reports import CheckReports
from modelyard.aws.delivery import Delivery
from modelyard.aws.flux import Flux
from modelyard.names import (
    ACCESS_POINT_ID,
    CHECKS_ACCOUNT,
    FILE_SYSTEM_ID,
    METRICS_VARIABLE,
    REPORTS_VARIABLE,
    cache_variable,
)
from modelyard.spec import Environment
from modelyard.spec.environment import ArgoCdCapability as ManagedArgoCdSettings


class DeliveryStack(EnvironmentStack):
    concern = "delivery"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment, tree: Path) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: rendered manifests, and Flux"
        )
        if settings.git and settings.git.managed:
            self._argo_cd(settings.git.managed)
        if settings.delivery != "flux":
            return
        delivery = Delivery(
            self,
            "Delivery",
            tree=tree,
            writers=settings.publishers,
            log_retention_days=settings.cluster.log_retention_days,
            removal_policy=self.removal_policy,
        )
        self.publish("bucket", delivery.bucket.bucket_name)
        vpc = vpc_of(self)
        Validations.of(self).acknowledge(
            Acknowledgment(
                id="CloudFormation-Validate::W2001",
                reason="functions name their subnets; the VPC's id goes unused",
            )
        )
        reports = self._reports() if settings.reports_checks else None
        flux = Flux(
            self,
            "Flux",
            cluster_name=settings.cluster_name,
            vpc=vpc,
            subnets=vpc.private_subnets,
            cluster_security_group=cluster_security_group(self),
            bucket=delivery.bucket,
            substitutions=self._substitutions(),
            addon_substitutions={METRICS_VARIABLE: self.read(MetricsStack, "prometheus-endpoint")}
            if MetricsStack.needed(settings)
            else None,
            monitoring=settings.monitoring.enabled,
            shared=settings.cluster.existing is not None,
            delivery_substitutions={REPORTS_VARIABLE: reports.bucket.bucket_name} if reports else None,
            images=settings.routes,
            image_cache=settings.image_cache,
            log_retention_days=settings.cluster.log_retention_days,
            removal_policy=self.removal_policy,
        )
        # Flux must find a complete tree when it starts.
        flux.release.node.add_dependency(delivery.upload)
        if reports:  # pods get an identity only if the association exists when they start
            flux.release.node.add_dependency(reports.association)

    def _reports(self) -> CheckReports:
        reports = CheckReports(
            self,
            "Reports",
            cluster_name=self.settings.cluster_name,
            namespace=self.settings.namespace,
            service_account=CHECKS_ACCOUNT,
            removal_policy=self.removal_policy,
        )
        self.publish("reports", reports.bucket.bucket_name)
        return reports

    def _argo_cd(self, managed: ManagedArgoCdSettings) -> None:
        ManagedArgoCd(
            self,
            "ArgoCd",
            cluster_name=self.settings.cluster_name,
            identity_center=managed.identity_center,
            identity_center_region=managed.region or self.settings.region,
            admins=managed.admins,
        )

    @staticmethod
    def needed(settings: Environment) -> bool:
        """Whether there is anything to create."""
        return settings.delivers_from_aws

    def _substitutions(self) -> dict[str, str]:
        cache = self.settings.cache
        if cache.file_system_id and cache.access_point_id:
            values = {FILE_SYSTEM_ID: cache.file_system_id, ACCESS_POINT_ID: cache.access_point_id}
        else:
            values = {key: self.read(ModelCacheStack, key) for key in HANDED_OVER[cache.file_system]}
        return {cache_variable(cache.file_system, key): value for key, value in values.items()}
