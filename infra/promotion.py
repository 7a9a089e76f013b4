"""The commands of promotion, in one place: CodePipeline and the GitHub workflow run the same ones."""

from __future__ import annotations

from typing import Final

CHECKS: Final = ("make test", "make check", "make controls")
"""What a change has to pass before anything is deployed."""

SYNTH: Final = "make synth-pipeline"
"""The pipeline with all its stages, to `cdk.out`, with the checkers as plugins."""

SMOKE_WAIT_MINUTES: Final = 175
"""SMOKE_WAIT of the Makefile: how long a smoke step waits for the models, which is what Flux grants all
folders."""

SMOKE_TIMEOUT_MINUTES: Final = SMOKE_WAIT_MINUTES + 30
"""When a smoke step is ended from outside: what it installs and renders before it waits takes minutes."""

DEPLOY_TIMEOUT_MINUTES: Final = 120
"""The same of a deploy: a cluster takes a quarter of an hour, a rollout of its nodes longer."""


def deploy(environment: str) -> str:
    return f"make deploy ENV={environment}"


def smoke(environment: str) -> str:
    return f"make smoke ENV={environment}"
