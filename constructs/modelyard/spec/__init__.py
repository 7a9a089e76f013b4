"""What users write: models, environments and pools, as frozen objects and as YAML."""

from modelyard.spec.environment import Environment, Pool
from modelyard.spec.loading import Catalogue, load_catalogue, load_environment, load_model
from modelyard.spec.model import Model

__all__ = ["Catalogue", "Environment", "Model", "Pool", "load_catalogue", "load_environment", "load_model"]
