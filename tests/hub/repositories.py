"""Repositories for the Hub of these tests."""

from __future__ import annotations

from typing import Any

from modelyard.checkpoints import architectures
from tests.hub.checkpoint_tensors import tensors_of
from tests.hub.fake_hub import Repository, Sparse, checkpoint_files

SMALL = "Qwen/Qwen3-0.6B"
COMMIT, LATER = "c" * 40, "d" * 40


def small_files(**config: Any) -> dict[str, Sparse]:
    """A small model of the table, with `config` over its config.json."""
    return checkpoint_files({**architectures().config(SMALL), **config}, tensors_of(architectures()[SMALL]))


def small(**changes: Any) -> Repository:
    """A repository with a small model of the table."""
    return Repository(**{"files": small_files(), "card": {"license": "apache-2.0"}, **changes})
