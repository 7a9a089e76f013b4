"""Stack `GitHub`: the role that a repository's workflow assumes in one environment, and GitHub as an OIDC
issuer.
issuer."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import promotion
from infra.bootstrap import bootstrap_role_arn
from infra.environment_stack import EnvironmentStack
from modelyard.spec import Environment, Pipeline

_ISSUER: Final = "token.actions.githubusercontent.com"
_AUDIENCE: Final = "sts.amazonaws.com"


class GitHubStack(EnvironmentStack):
    """Deployed once by an administrator, so that the workflow can then deploy without a stored key.

    The token must be for this repository (by its numbers, where `pipeline.yaml` has them) *and* for the
    GitHub environment of the same name, so required reviewers approve before credentials are issued. The role
    may only assume the roles of `cdk bootstrap`.
    """

    concern = "github"

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Environment, pipeline: Pipeline
    ) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: the role of the GitHub workflow"
        )
        provider = f"arn:{self.partition}:iam::{self.account}:oidc-provider/{_ISSUER}"
        role = iam.Role(
            self,
            "Deployer",
            role_name=f"modelyard-{settings.name}-github",
            description=f"Workflow of {pipeline.repository} in {settings.name}",
            # One job deploys and waits for the models, in one session.
            max_session_duration=Duration.minutes(
                promotion.DEPLOY_TIMEOUT_MINUTES + promotion.SMOKE_TIMEOUT_MINUTES
            ),
            assumed_by=iam.WebIdentityPrincipal(
                provider,
                conditions={
                    "StringEquals": {
                        f"{_ISSUER}:aud": _AUDIENCE,
                        f"{_ISSUER}:sub": f"{pipeline.github_subject}:environment:{settings.name}",
                    }
                },
            ),
            inline_policies={
                "Bootstrap": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(
                            actions=["sts:AssumeRole"],
                            resources=[
                                bootstrap_role_arn(name, account=settings.account, region=settings.region)
                                for name in ("deploy", "file-publishing", "lookup")
                            ],
                        )
                    ]
                )
            },
        )
        if pipeline.github_oidc_provider == "create":
            issuer = iam.CfnOIDCProvider(self, "Issuer", url=f"https://{_ISSUER}", client_id_list=[_AUDIENCE])
            role.node.add_dependency(issuer)
        self.publish("deployer-role", role.role_arn)
