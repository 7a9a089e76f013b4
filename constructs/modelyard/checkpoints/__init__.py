"""Model structure: facts from `config.json`, the modules that follow from them, and checkpoint formats."""

from modelyard.checkpoints.config import read_config
from modelyard.checkpoints.fields import UnreadableConfig
from modelyard.checkpoints.modules import Module, modules
from modelyard.checkpoints.quantization import Format, Quantization
from modelyard.checkpoints.shape import Architecture, Experts, LatentAttention, LinearAttention, Vision
from modelyard.checkpoints.table import architectures

__all__ = [
    "Architecture",
    "Experts",
    "Format",
    "LatentAttention",
    "LinearAttention",
    "Module",
    "Quantization",
    "UnreadableConfig",
    "Vision",
    "architectures",
    "modules",
    "read_config",
]
