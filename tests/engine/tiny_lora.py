"""Write a random LoRA adapter for the tiny Qwen3 into the given folder. Runs with the Python of
.venv-vllm."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch  # type: ignore[import-not-found]
from safetensors.torch import save_file  # type: ignore[import-not-found]
from transformers import AutoConfig  # type: ignore[import-not-found]

RANK = 8

if __name__ == "__main__":
    target, base = Path(sys.argv[1]), AutoConfig.from_pretrained(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    width = base.num_attention_heads * base.head_dim
    tensors = {}
    for layer in range(base.num_hidden_layers):
        at = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        # Large enough that the adapter's answers differ from the base model's.
        tensors[f"{at}.lora_A.weight"] = torch.randn(RANK, base.hidden_size, dtype=torch.bfloat16)
        tensors[f"{at}.lora_B.weight"] = torch.randn(width, RANK, dtype=torch.bfloat16)
    save_file(tensors, target / "adapter_model.safetensors")
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": RANK,
        "target_modules": ["q_proj"],
        "bias": "none",
        "base_model_name_or_path": sys.argv[2],
    }
    (target / "adapter_config.json").write_text(json.dumps(settings), encoding="utf-8")
