"""The user's input: models, environments and pools, as frozen objects and as YAML."""

from modelyard.spec.environment import Environment
from modelyard.spec.loading import Catalogue, load_catalogue, load_environment, load_model, load_pipeline
from modelyard.spec.model import Model
from modelyard.spec.pipeline import Pipeline
from modelyard.spec.pool import Pool

__all__ = [
    "Catalogue",
    "Environment",
    "Model",
    "Pipeline",
    "Pool",
    "load_catalogue",
    "load_environment",
    "load_model",
    "load_pipeline",
]
