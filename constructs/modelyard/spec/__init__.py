"""What users write: models, environments and pools, as frozen objects and as YAML."""

from modelyard.spec.environment import Environment
from modelyard.spec.loading import Catalogue, load_catalogue, load_environment, load_model
from modelyard.spec.model import Model
from modelyard.spec.pool import Pool

__all__ = ["Catalogue", "Environment", "Model", "Pool", "load_catalogue", "load_environment", "load_model"]
