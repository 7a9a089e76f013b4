"""Stack `Pipeline`: CodePipeline promotes a push through the environments, and updates itself first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aws_cdk import Duration, Stack, Stage, Tags, pipelines
from aws_cdk import Environment as AwsEnvironment
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import promotion
from infra.bootstrap import bootstrap_role_arn
from infra.pipeline_notices import PipelineNotices
from infra.pipeline_permissions import narrow_permissions
from infra.platform import add_platform
from modelyard.aws.audit_log import AuditLog
from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.exact_actions import use_exact_actions
from modelyard.aws.private_bucket import PrivateBucket
from modelyard.spec import Environment, Pipeline

NAME: Final = "modelyard-pipeline"
CDK_CLI: Final = "2.1148.1"
"""As in package.json; otherwise the pipeline would update itself with npm's latest release."""

CDK_ASSETS: Final = "4.7.3"
"""Publishes the templates' assets; pinned for the same reason."""

_RUNTIMES: Final = {"nodejs": "22", "python": "3.13"}


class EnvironmentStage(Stage):
    """The stacks of one environment, named as by `cdk deploy -c env=NAME`."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment, tree: Path) -> None:
        super().__init__(scope, construct_id)
        self.settings = settings
        self.stacks = add_platform(self, settings, tree=tree)


class PipelineStack(Stack):
    """Source, checks and synthesis, then each environment with its smoke step, after its approval if it has
    one."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        pipeline: Pipeline,
        environments: Sequence[tuple[Environment, Path]],  # in stage order, with their rendered trees
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=NAME,
            description="Modelyard: promotion through the environments",
            env=AwsEnvironment(account=pipeline.account, region=pipeline.region),
            termination_protection=True,
        )
        Tags.of(self).add("modelyard:pipeline", pipeline.repository)
        self.log = AuditLog(self, "BuildLog", retention_days=pipeline.log_retention_days)
        self.source = pipelines.CodePipelineSource.connection(
            pipeline.repository, pipeline.branch, connection_arn=pipeline.connection_arn
        )
        self.pipeline = pipelines.CodePipeline(
            self,
            "Pipeline",
            pipeline_name=NAME,
            pipeline_type=codepipeline.PipelineType.V2,
            # A second push waits for the first, so environments never mix commits.
            execution_mode=codepipeline.ExecutionMode.QUEUED,
            artifact_bucket=self._artifacts(),
            cross_account_keys=True,
            cli_version=CDK_CLI,
            cdk_assets_cli_version=CDK_ASSETS,
            synth=pipelines.ShellStep(
                "Synth",
                input=self.source,
                commands=[*promotion.CHECKS, promotion.SYNTH],
                primary_output_directory="cdk.out",
            ),
            synth_code_build_defaults=pipelines.CodeBuildOptions(
                build_environment=codebuild.BuildEnvironment(compute_type=codebuild.ComputeType.LARGE),
                timeout=Duration.hours(2),
            ),
            code_build_defaults=pipelines.CodeBuildOptions(
                build_environment=codebuild.BuildEnvironment(
                    build_image=codebuild.LinuxBuildImage.STANDARD_8_0
                ),
                # jsii and the CDK CLI need Node 22 or later, in every project of the pipeline.
                partial_build_spec=codebuild.BuildSpec.from_object(
                    {"phases": {"install": {"runtime-versions": _RUNTIMES}}}
                ),
                logging=codebuild.LoggingOptions(
                    cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=self.log)
                ),
            ),
        )
        if pipeline.notify:
            PipelineNotices(
                self,
                "Notices",
                pipeline=NAME,
                emails=pipeline.notify.emails,
                topic_arn=pipeline.notify.topic_arn,
            )
        approvals = {stage.environment: stage.approval for stage in pipeline.stages}
        self.stages = [self._add(settings, tree, approvals[settings.name]) for settings, tree in environments]
        # Built now, not during synthesis, so that aspects and acknowledgements see its resources.
        self.pipeline.build_pipeline()
        narrow_permissions(self)
        use_exact_actions(self)

    def _add(self, settings: Environment, tree: Path, approval: str | None) -> EnvironmentStage:
        stage = EnvironmentStage(self, settings.name.capitalize(), settings=settings, tree=tree)
        asked = (
            [pipelines.ManualApprovalStep(f"Approve{stage.node.id}", comment=approval)] if approval else []
        )
        smoke, after = self._smoke(settings), []
        if protected := [each.stack_name for each in stage.stacks if each.termination_protection]:
            protect = self._protect(settings, protected)
            smoke.add_step_dependency(protect)
            after.append(protect)
        self.pipeline.add_stage(stage, pre=asked, post=[*after, smoke])
        return stage

    def _protect(self, settings: Environment, stacks: Sequence[str]) -> pipelines.CodeBuildStep:
        deploy = bootstrap_role_arn(
            "deploy", account=settings.account, region=settings.region, partition=self.partition
        )
        return pipelines.CodeBuildStep(
            f"Protect{settings.name.capitalize()}",
            input=self.source,
            commands=list(promotion.protect(stacks, role=deploy, region=settings.region)),
            role_policy_statements=[iam.PolicyStatement(actions=["sts:AssumeRole"], resources=[deploy])],
        )

    def _smoke(self, settings: Environment) -> pipelines.CodeBuildStep:
        lookup = bootstrap_role_arn("lookup", account=settings.account, region=settings.region)
        return pipelines.CodeBuildStep(
            f"Smoke{settings.name.capitalize()}",
            input=self.source,
            commands=[promotion.smoke(settings.name)],
            role_policy_statements=[iam.PolicyStatement(actions=["sts:AssumeRole"], resources=[lookup])],
            timeout=Duration.minutes(promotion.SMOKE_TIMEOUT_MINUTES),  # CodeBuild's default is an hour
        )

    def _artifacts(self) -> PrivateBucket:
        """Source and templates in transit; the environments' accounts read them with this key."""
        key = EncryptionKey(self, "ArtifactsKey", description="Artifacts of the pipeline")
        return PrivateBucket(self, "Artifacts", key=key, expire_days=90, old_versions_days=7)
