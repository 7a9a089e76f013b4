"""Base class of an environment's stacks, and how stacks pass values to each other."""

from __future__ import annotations

from typing import ClassVar

from aws_cdk import Environment as AwsEnvironment
from aws_cdk import RemovalPolicy, Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from modelyard.aws.exact_actions import use_exact_actions
from modelyard.names import ENVIRONMENT_TAG, parameter_name, stack_name
from modelyard.spec import Environment


class EnvironmentStack(Stack):
    """A stack of one concern in one environment.

    Stacks pass values through SSM parameters with fixed paths, `/modelyard/ENVIRONMENT/CONCERN/KEY`. An
    export would couple the producer to every consumer: CloudFormation refuses to change or delete an imported
    export.
    """

    concern: ClassVar[str]

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Environment, description: str
    ) -> None:
        key, value = self.own_tag(settings)
        tags = {**settings.tags, key: value}
        super().__init__(
            scope,
            construct_id,
            stack_name=stack_name(settings.name, self.concern),
            description=description,
            env=AwsEnvironment(account=settings.account, region=settings.region),
            termination_protection=settings.removal == "retain",
            tags=tags,
        )
        self.settings = settings
        self._published = Construct(self, "Published")
        for key, value in tags.items():
            Tags.of(self).add(key, value)
        use_exact_actions(self)
        if settings.permissions_boundary:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(
                self, "PermissionsBoundary", settings.permissions_boundary
            )
            iam.PermissionsBoundary.of(self).apply(boundary)

    @staticmethod
    def own_tag(settings: Environment) -> tuple[str, str]:
        """Key and value of the tag on all resources of an environment, including nodes that Karpenter
        launches."""
        return ENVIRONMENT_TAG, settings.name

    @property
    def availability_zones(self) -> list[str]:
        # CDK would look up the account's zones, which needs credentials; the environment names them.
        return list(self.settings.availability_zones)

    @property
    def removal_policy(self) -> RemovalPolicy:
        # RETAIN would also keep what a failed first create has made, and its fixed names would make every
        # later attempt fail.
        keep = self.settings.removal == "retain"
        return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if keep else RemovalPolicy.DESTROY

    def publish(self, key: str, value: str) -> None:
        """Publish `value` for other stacks."""
        ssm.StringParameter(
            self._published,
            "".join(part.capitalize() for part in key.split("-")),
            parameter_name=parameter_name(self.settings.name, self.concern, key),
            string_value=value,
        )

    def read(self, producer: type[EnvironmentStack], key: str) -> str:
        """A value published by `producer`; CloudFormation reads it when it deploys this stack."""
        name = parameter_name(self.settings.name, producer.concern, key)
        return ssm.StringParameter.value_for_string_parameter(self, name)
