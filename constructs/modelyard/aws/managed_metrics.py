"""Metrics in AWS: an Amazon Managed Service for Prometheus workspace, and Grafana on top."""

from __future__ import annotations

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_grafana as grafana
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.audit_log import AuditLog
from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.names import METRICS_ACCOUNT


class ManagedMetrics(Construct):
    """An encrypted workspace that one service account writes to, and an optional Grafana that reads it.

    Args:
        cluster_name: The EKS cluster.
        name: Name of the workspaces; default: the cluster's.
        namespace: Namespace of Prometheus.
        service_account: Service account of Prometheus.
        dashboards: Whether to create an Amazon Managed Grafana workspace, which needs an IAM Identity Center.
        log_retention_days: Days for which the workspace's own log is kept.
        removal_policy: What happens to workspace, key and log when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        name: str | None = None,
        namespace: str = "monitoring",
        service_account: str = METRICS_ACCOUNT,
        dashboards: bool = False,
        log_retention_days: int = 90,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        name = name or cluster_name
        self.key = EncryptionKey(self, "Key", description="Metrics", removal_policy=removal_policy)
        """Encrypts the workspace."""
        log = AuditLog(
            self,
            "Log",
            # The service writes only to groups with this prefix.
            name=f"/aws/vendedlogs/prometheus/{name}",
            retention_days=log_retention_days,
            removal_policy=removal_policy,
        )
        self.workspace = aps.CfnWorkspace(
            self,
            "Workspace",
            alias=name,
            kms_key_arn=self.key.key_arn,
            logging_configuration=aps.CfnWorkspace.LoggingConfigurationProperty(
                log_group_arn=log.log_group_arn
            ),
        )
        """Prometheus writes to its `attr_prometheus_endpoint`."""
        self.workspace.apply_removal_policy(removal_policy)
        self.writer = PodIdentityRole(self, "WriterRole", description="Prometheus: write to the workspace")
        """IAM role of Prometheus."""
        self.writer.add_to_policy(
            iam.PolicyStatement(actions=["aps:RemoteWrite"], resources=[self.workspace.attr_arn])
        )
        self.writer.associate(cluster_name=cluster_name, namespace=namespace, service_account=service_account)
        self.grafana: grafana.CfnWorkspace | None = self._grafana(name) if dashboards else None
        """The Grafana workspace, if `dashboards` is set."""

    def _grafana(self, name: str) -> grafana.CfnWorkspace:
        role = iam.Role(
            self,
            "GrafanaRole",
            description="Grafana: read the metrics workspace",
            assumed_by=iam.ServicePrincipal(
                "grafana.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            ),
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=[
                    "aps:DescribeWorkspace",
                    "aps:GetLabels",
                    "aps:GetMetricMetadata",
                    "aps:GetSeries",
                    "aps:QueryMetrics",
                ],
                resources=[self.workspace.attr_arn],
            )
        )
        return grafana.CfnWorkspace(
            self,
            "Grafana",
            name=name,
            account_access_type="CURRENT_ACCOUNT",
            authentication_providers=["AWS_SSO"],
            permission_type="CUSTOMER_MANAGED",
            data_sources=["PROMETHEUS"],
            role_arn=role.role_arn,
        )
