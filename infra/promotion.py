"""The commands of promotion, in one place: CodePipeline and the GitHub workflow run the same ones."""

from __future__ import annotations

from typing import Final

CHECKS: Final = ("make test", "make check", "make controls")
"""What a change has to pass before anything is deployed."""

SYNTH: Final = "make synth-pipeline"
"""The pipeline with all its stages, to `cdk.out`, with the checkers as plugins."""


def deploy(environment: str) -> str:
    return f"make deploy ENV={environment}"


def smoke(environment: str) -> str:
    return f"make smoke ENV={environment}"
