"""The promotion commands in one place: CodePipeline and the GitHub workflow run the same commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

CHECKS: Final = ("make test", "make check", "make controls")
"""Checks that a change must pass before any deploy."""

SYNTH: Final = "make synth-pipeline"
"""Synthesises the pipeline with all its stages to `cdk.out`, with the checkers as plugins."""

SMOKE_WAIT_MINUTES: Final = 205
"""SMOKE_WAIT of the Makefile: how long a smoke step waits for the models; the sum of Flux' timeouts for all
folders."""

SMOKE_TIMEOUT_MINUTES: Final = SMOKE_WAIT_MINUTES + 30
"""Timeout of a smoke step from outside: installing and rendering before the wait take minutes."""

DEPLOY_TIMEOUT_MINUTES: Final = 120
"""Timeout of a deploy: a cluster takes a quarter of an hour, a rollout of its nodes longer."""


def deploy(environment: str) -> str:
    return f"make deploy ENV={environment}"


def protect(stacks: Sequence[str], *, role: str, region: str) -> tuple[str, ...]:
    """Termination protection for `stacks`, which CloudFormation's actions of a pipeline do not turn on
    (aws-cdk issue 17871). `role`: the deploy role of `cdk bootstrap`, in a session that may do this alone."""
    allowed = {"Effect": "Allow", "Action": "cloudformation:UpdateTerminationProtection", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]}, separators=(",", ":"))
    assume = (
        f"aws sts assume-role --role-arn {role} --role-session-name modelyard-protect --policy '{policy}' "
        "--query 'Credentials.[AccessKeyId,SecretAccessKey,SessionToken]' --output text"
    )
    return (
        f"CREDENTIALS=$({assume})",
        "set -- $CREDENTIALS",
        "export AWS_ACCESS_KEY_ID=$1 AWS_SECRET_ACCESS_KEY=$2 AWS_SESSION_TOKEN=$3",
        *(
            f"aws cloudformation update-termination-protection --enable-termination-protection --stack-name {stack} "
            f"--region {region}"
            for stack in stacks
        ),
    )


def smoke(environment: str) -> str:
    return f"make smoke ENV={environment}"
