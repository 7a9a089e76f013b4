"""SGLang on NVIDIA GPUs."""

from modelyard.engines.sglang.engine import Sglang

__all__ = ["Sglang"]
