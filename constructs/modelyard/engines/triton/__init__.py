"""NVIDIA Triton."""

from modelyard.engines.triton.engine import REPOSITORY, Triton, model_repository

__all__ = ["REPOSITORY", "Triton", "model_repository"]
