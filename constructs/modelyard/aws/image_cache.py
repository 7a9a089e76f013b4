"""Amazon ECR as a cache of other registries: nodes pull from ECR, and ECR fetches what it does not have."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.releases import EcrRepositories, upstreams


class ImageCache(Construct):
    """A pull-through cache rule for each registry, and the template of the repositories that ECR makes.

    Repositories are made at the first pull and belong to no stack: they outlive this construct. Whoever pulls
    first needs `may_fill`.

    Args:
        prefix: First part of the repositories' names, at most 20 characters; images of a registry are at
            `PREFIX/FOLDER/NAME`, with the folder of `modelyard.releases.upstreams`.
        registries: Hosts of the registries, such as quay.io.
        credentials: Host to the ARN of a secret with `username` and `accessToken`, for the registries that
            ask; its name begins with `ecr-pullthroughcache/`, and it is in this account and region.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        prefix: str,
        registries: tuple[str, ...],
        credentials: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        template = ecr.CfnRepositoryCreationTemplate(
            self,
            "Template",
            prefix=prefix,
            applied_for=["PULL_THROUGH_CACHE"],
            description="Modelyard: images of other registries",
            # A key of ours or tags would take a role that ECR assumes for each repository.
            encryption_configuration=ecr.CfnRepositoryCreationTemplate.EncryptionConfigurationProperty(
                encryption_type="AES256"
            ),
            # Where a tag may not move, ECR cannot refresh it; what we pull is pinned to a version.
            image_tag_mutability="MUTABLE",
        )
        known = upstreams()
        for host in registries:
            upstream = known[host]
            rule = ecr.CfnPullThroughCacheRule(
                self,
                upstream.folder.capitalize(),
                ecr_repository_prefix=f"{prefix}/{upstream.folder}",
                upstream_registry=upstream.name,
                upstream_registry_url=upstream.url,
                credential_arn=(credentials or {}).get(host),
            )
            # A repository that a pull makes before the template exists would not follow it.
            rule.add_resource_dependency(template)


def may_fill(role: iam.Role, prefix: str) -> None:
    """Let `role` be the first who pulls an image through the cache at `prefix`: ECR imports it, and makes its
    repository, with the permissions of whoever asks."""
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["ecr:BatchImportUpstreamImage", "ecr:CreateRepository"],
            resources=[_repositories(role, None, prefix)],
        )
    )


def may_pull(role: iam.Role, places: tuple[EcrRepositories, ...]) -> None:
    """Let `role` pull images and charts from `places`."""
    role.add_to_policy(iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"]))
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            resources=[_repositories(role, place, place.prefix) for place in places],
        )
    )


def _repositories(scope: Construct, place: EcrRepositories | None, prefix: str) -> str:
    return Stack.of(scope).format_arn(
        service="ecr",
        region=place.region if place else None,
        account=place.account if place else None,
        resource="repository",
        resource_name=f"{prefix}/*" if prefix else "*",
    )
