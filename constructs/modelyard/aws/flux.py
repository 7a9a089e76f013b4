"""Flux: installed once; from then on it keeps the cluster in sync with the bucket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk.lambda_layer_kubectl_v36 import KubectlV36Layer
from constructs import Construct

from modelyard.aws.image_cache import may_fill, may_pull
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.names import FLUX_NAMESPACE
from modelyard.objects.delivery.guard import guard
from modelyard.objects.delivery.kustomizations import (
    DELIVERY,
    FLUX_SOURCE,
    FLUX_WORKERS,
    FOLDER_MINUTES,
    Dependency,
    flux_kustomization,
)
from modelyard.releases import Chart, ImageRoutes, chart, charts, ecr_repositories

# The chart ships its CRDs as templates, so a Bucket in the same release would be unknown to the API server:
# hooks are applied after the release is ready. Helm deletes and recreates hooks by default, and deleting a
# Kustomization deletes every model. `hook-failed` never applies to these kinds; it only overrides the
# default, so that Helm 4 updates them in place.
_AFTER_CRDS: Final = {
    "helm.sh/hook": "post-install,post-upgrade",
    "helm.sh/hook-delete-policy": "hook-failed",
}


class Flux(Construct):
    """Flux's source, kustomize and helm controllers, reading one bucket with their own identity.

    The tree's folders are applied in order: `addons`, then `monitoring` and `platform`, then what folder
    `delivery` says: a Kustomization for each model, for its weights and for its checks. CloudFormation
    manages only one Kubernetes object, the Helm release; uninstalling it leaves the cluster's workloads and
    Flux's own objects in place.

    Args:
        cluster_name: The EKS cluster.
        vpc: VPC of the cluster.
        cluster_security_group: Security group of the cluster, attached to the installer's Lambda functions.
        bucket: Bucket with the rendered tree.
        subnets: Private subnets with a route to ghcr.io; default: the private subnets of `vpc`.
        substitutions: Deploy-time values for `${NAME}` in `platform`.
        addon_substitutions: The same for `addons`.
        delivery_substitutions: The same for `delivery`, whose Kustomizations pass them on.
        monitoring: Whether the tree has a folder `monitoring`.
        shared: Whether the cluster has objects of others, which Flux then leaves alone.
        images: From where Flux' own chart and images, and the tree's charts, are pulled; default: from where
            they are published.
        image_cache: Prefix of the repositories in ECR that Flux may fill, see `ImageCache`; default: none.
        log_retention_days: Days for which the installer's logs are kept.
        removal_policy: What happens to those logs when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        vpc: ec2.IVpc,
        cluster_security_group: ec2.ISecurityGroup,
        bucket: s3.IBucket,
        subnets: Sequence[ec2.ISubnet] | None = None,
        substitutions: Mapping[str, str] | None = None,
        addon_substitutions: Mapping[str, str] | None = None,
        delivery_substitutions: Mapping[str, str] | None = None,
        monitoring: bool = True,
        shared: bool = False,
        images: ImageRoutes | None = None,
        image_cache: str | None = None,
        log_retention_days: int = 90,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.source_role = PodIdentityRole(self, "SourceRole", description="Flux: read the rendered tree")
        """IAM role of the source controller."""
        self.source_role.add_to_policy(
            iam.PolicyStatement(actions=["s3:ListBucket"], resources=[bucket.bucket_arn])
        )
        self.source_role.add_to_policy(
            iam.PolicyStatement(actions=["s3:GetObject"], resources=[bucket.arn_for_objects("*")])
        )
        release, pulled = chart("flux2"), images or ImageRoutes()
        _allow_charts(self.source_role, pulled, charts().values(), image_cache)
        association = self.source_role.associate(
            cluster_name=cluster_name, namespace=FLUX_NAMESPACE, service_account="source-controller"
        )

        # An imported cluster ignores `kubectl_provider_options`: one import creates the provider, another
        # uses it.
        imported = eks.Cluster.from_cluster_attributes(self, "Cluster", cluster_name=cluster_name, vpc=vpc)
        role = _installer_role(self, cluster_arn=imported.cluster_arn)
        _allow_charts(role, pulled, [release], image_cache)
        installer = eks.KubectlProvider(
            self,
            "Installer",
            cluster=imported,
            kubectl_layer=KubectlV36Layer(self, "Kubectl"),
            private_subnets=list(vpc.private_subnets if subnets is None else subnets),
            role=role.without_policy_updates(),
            # Its functions join the cluster's security group, the only one that the private endpoint admits.
            security_groups=[cluster_security_group],
        )
        # A condition for a policy of the provider's own role, which is not used here.
        self.node.try_remove_child("HasEcrPublic")
        kept_logs = _keep_logs(installer, days=log_retention_days, removal_policy=removal_policy)
        assert installer.role is not None
        access = eks.AccessEntry(
            self,
            "InstallerAccess",
            cluster=imported,
            principal=installer.role.role_arn,
            access_policies=[
                eks.AccessPolicy.from_access_policy_name(
                    "AmazonEKSClusterAdminPolicy", access_scope_type=eks.AccessScopeType.CLUSTER
                )
            ],
        )
        self.release = eks.HelmChart(
            self,
            "Release",
            cluster=eks.Cluster.from_cluster_attributes(
                self, "Installed", cluster_name=cluster_name, kubectl_provider=installer
            ),
            release="flux",
            repository=f"{pulled.chart(release)}/{release.name}",
            chart=release.name,
            version=release.version,
            namespace=FLUX_NAMESPACE,
            create_namespace=True,
            wait=True,
            timeout=Duration.minutes(10),  # its Lambda function has fifteen
            values=flux_values(
                bucket_name=bucket.bucket_name,
                region=Stack.of(self).region,
                substitutions=substitutions,
                addon_substitutions=addon_substitutions,
                delivery_substitutions=delivery_substitutions,
                monitoring=monitoring,
                shared=shared,
                images=pulled,
            ),
        )
        """The Helm release; objects that must exist before Flux starts are its dependencies."""
        # Pods get an identity only if the association exists when they start.
        # The first call of a function creates its log group, which CloudFormation then cannot create.
        self.release.node.add_dependency(association, access, *kept_logs)


def _allow_charts(
    role: iam.Role, images: ImageRoutes, pulled: Iterable[Chart], image_cache: str | None
) -> None:
    """Let `role` fetch those of the charts that are in ECR."""
    found = {place for each in pulled if (place := ecr_repositories(images.chart(each)))}
    cached = {place for place in found if image_cache and place.prefix.startswith(f"{image_cache}/")}
    whole = {replace(place, prefix=str(image_cache)) for place in cached}
    if places := sorted((found - cached) | whole, key=lambda place: (place.account, place.prefix)):
        may_pull(role, tuple(places))
    if image_cache and cached:
        may_fill(role, image_cache)


def _installer_role(scope: Construct, *, cluster_arn: str) -> iam.Role:
    """IAM role of the installer. The provider's own role could pull every image of every registry; the chart
    is not in ECR."""
    network = "service-role/AWSLambdaVPCAccessExecutionRole"  # network interfaces in the subnets, and its log
    return iam.Role(
        scope,
        "InstallerRole",
        description="Installs Flux: finds the cluster",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(network)],
        # Inline, so that the role has its permissions from the start, without waiting for a separate policy.
        inline_policies={
            "Cluster": iam.PolicyDocument(
                statements=[iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[cluster_arn])]
            )
        },
    )


def _keep_logs(
    installer: eks.KubectlProvider, *, days: int, removal_policy: RemovalPolicy
) -> list[logs.CfnLogGroup]:
    # The provider accepts no log groups; its own have two years of retention and outlive the stack.
    groups = [child for child in installer.node.find_all() if isinstance(child, logs.CfnLogGroup)]
    for group in groups:
        group.retention_in_days = days
        group.apply_removal_policy(removal_policy)
    return groups


def flux_values(
    *,
    bucket_name: str,
    region: str,
    substitutions: Mapping[str, str] | None = None,
    addon_substitutions: Mapping[str, str] | None = None,
    delivery_substitutions: Mapping[str, str] | None = None,
    monitoring: bool = True,
    shared: bool = False,
    images: ImageRoutes | None = None,
) -> dict[str, Any]:
    """Values of the flux2 chart: three controllers, the bucket, and the folders that come before the
    models."""
    # An add-on that breaks later must not keep a model from going back: once is enough.
    addons = [Dependency("addons", once=True)]
    objects = [
        _bucket(bucket_name, region),
        _kustomization("addons", substitutions=addon_substitutions),
        _kustomization("platform", after=addons, substitutions=substitutions),
        # Ready once its Kustomizations are applied; each of them says of itself whether its objects are
        # healthy.
        _kustomization(DELIVERY, wait=False, substitutions=delivery_substitutions),
    ]
    if monitoring:
        # No substitutions: dashboards contain Grafana's own ${variables}.
        objects.append(_kustomization("monitoring", after=addons))
    if shared:  # without hooks: before the Kustomizations
        objects += guard()
    values = {
        # Otherwise an uninstall would delete the CRDs, thus every Kustomization, and thus every model.
        "crds": {"annotations": {"helm.sh/resource-policy": "keep"}},
        "kustomizeController": {
            "container": {
                "additionalArgs": [
                    # A fix must not wait for the timeout of the broken revision; an undefined ${NAME} is an
                    # error, not "".
                    "--feature-gates=CancelHealthCheckOnNewRevision=true,StrictPostBuildSubstitutions=true",
                    f"--concurrent={FLUX_WORKERS}",
                    # After this time a model sees that its weights are there; the default is 30 s.
                    "--requeue-dependency=10s",
                ]
            },
            "resources": {"requests": {"cpu": "200m", "memory": "384Mi"}, "limits": {"memory": "1Gi"}},
        },
        "imageAutomationController": {"create": False},
        "imageReflectionController": {"create": False},
        "notificationController": {"create": False},
        "extraObjects": cast(list[Any], objects),
    }
    return images.values(chart("flux2"), values) if images else values


def _bucket(bucket_name: str, region: str) -> dict[str, Any]:
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "Bucket",
        "metadata": {"name": FLUX_SOURCE, "namespace": FLUX_NAMESPACE, "annotations": dict(_AFTER_CRDS)},
        "spec": {
            "provider": "aws",
            "bucketName": bucket_name,
            "endpoint": f"s3.{region}.amazonaws.com",
            "region": region,
            "interval": "1m",
        },
    }


def _kustomization(
    name: str,
    *,
    after: Sequence[Dependency] = (),
    wait: bool = True,
    substitutions: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    item = flux_kustomization(
        name,
        path=name,
        minutes=FOLDER_MINUTES.get(name, 10),
        after=after,
        wait=wait,
        substitutions=substitutions,
    )
    return {**item, "metadata": {**item["metadata"], "annotations": dict(_AFTER_CRDS)}}
