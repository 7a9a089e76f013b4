"""Parameter counts of transformers' model classes: a JSON list of configs on standard input, a list of
answers on standard output.

Runs with the Python of .venv-vllm. Models are built on the meta device, so their size does not matter.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

# The answer gets the real standard output; whatever is printed by imports goes to standard error.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # type: ignore[import-not-found]
import transformers  # type: ignore[import-not-found]


def count(config: dict[str, Any]) -> dict[str, Any]:
    """The model's parameters, shared ones once; or why there is no such model."""
    name = config["architectures"][0]
    model_class = getattr(transformers, name, None)
    if model_class is None:
        return {"missing": name}
    # Quantization swaps linear layers for packed ones, and rotary tables are no parameters (those of longrope
    # need a factor for every number); the count is about the matrices.
    plain = {
        key: value for key, value in config.items() if key not in ("quantization_config", "rope_scaling")
    }
    with torch.device("meta"):
        model = model_class(model_class.config_class.from_dict(plain))
    model.tie_weights()
    return {"parameters": sum(parameter.numel() for parameter in model.parameters())}


json.dump([count(config) for config in json.load(sys.stdin)], answers)
