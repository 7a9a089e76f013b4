"""What models are made of: facts of `config.json`, the modules they imply, and how checkpoints store them."""

from modelyard.architecture.config import read_config
from modelyard.architecture.fields import UnreadableConfig
from modelyard.architecture.modules import Module, modules
from modelyard.architecture.quantization import Format, Quantization
from modelyard.architecture.shape import Architecture, Experts, LatentAttention, LinearAttention, Vision
from modelyard.architecture.table import architectures

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
