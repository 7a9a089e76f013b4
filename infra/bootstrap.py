"""The roles of `cdk bootstrap`: deployers may assume these, and nothing else."""

from __future__ import annotations

from typing import Literal

from aws_cdk import Aws, DefaultStackSynthesizer

BootstrapRole = Literal["deploy", "file-publishing", "lookup"]


def bootstrap_role_arn(
    role: BootstrapRole, *, account: str, region: str, partition: str = Aws.PARTITION
) -> str:
    """ARN of a role of the modern bootstrap stack, with the default qualifier."""
    name = f"cdk-{DefaultStackSynthesizer.DEFAULT_QUALIFIER}-{role}-role-{account}-{region}"
    return f"arn:{partition}:iam::{account}:role/{name}"
