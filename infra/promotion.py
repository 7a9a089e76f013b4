"""The promotion commands in one place: CodePipeline and the GitHub workflow run the same commands."""

from __future__ import annotations

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


def smoke(environment: str) -> str:
    return f"make smoke ENV={environment}"
