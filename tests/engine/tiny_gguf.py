"""Write a llama model with random parameters as one GGUF file: PATH generate|embed|slow.

`slow` is large enough that a test can observe it loading and answering. Runs with the Python of .venv-llama.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gguf  # type: ignore[import-not-found]
import numpy as np

HEADS, KV_HEADS, LENGTH = 4, 2, 4096
MARKS = ["<|im_start|>", "<|im_end|>"]
# Tools are there because llama-server learns from the template how a model writes its calls, or offers none.
CHAT_TEMPLATE = (
    "{% if tools %}<|im_start|>system\nYou may call:\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
    "<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content or '' }}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def alphabet() -> list[str]:
    """GPT-2's letters for the 256 bytes: themselves where they print, and letters from 256 on for the
    rest."""
    printing = {
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    }
    others = iter(range(256, 512))
    return [chr(byte) if byte in printing else chr(next(others)) for byte in range(256)]


def tensors(vocabulary: int, hidden: int, layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes, rows first."""
    head, inner = hidden // HEADS, 2 * hidden
    yield "token_embd", (vocabulary, hidden)
    yield "output", (vocabulary, hidden)
    yield "output_norm", (hidden,)
    for layer in range(layers):
        at = f"blk.{layer}"
        yield f"{at}.attn_norm", (hidden,)
        yield f"{at}.ffn_norm", (hidden,)
        yield f"{at}.attn_q", (hidden, hidden)
        yield f"{at}.attn_k", (KV_HEADS * head, hidden)
        yield f"{at}.attn_v", (KV_HEADS * head, hidden)
        yield f"{at}.attn_output", (hidden, hidden)
        yield f"{at}.ffn_gate", (inner, hidden)
        yield f"{at}.ffn_up", (inner, hidden)
        yield f"{at}.ffn_down", (hidden, inner)


def write(path: Path, *, hidden: int, layers: int, embed: bool) -> None:
    letters = alphabet()
    tokens = [*letters, "es", *MARKS]  # one merge, because a tokenizer without any is refused
    kinds = [gguf.TokenType.NORMAL] * (len(letters) + 1) + [gguf.TokenType.CONTROL] * len(MARKS)
    file = gguf.GGUFWriter(path, "llama")
    file.add_name("tiny")
    file.add_context_length(LENGTH)
    file.add_embedding_length(hidden)
    file.add_block_count(layers)
    file.add_feed_forward_length(2 * hidden)
    file.add_head_count(HEADS)
    file.add_head_count_kv(KV_HEADS)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_rope_freq_base(10000.0)
    file.add_vocab_size(len(tokens))
    file.add_file_type(gguf.LlamaFileType.ALL_F32)
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list(tokens)
    file.add_token_types(kinds)
    file.add_token_merges(["e s"])
    file.add_bos_token_id(tokens.index(MARKS[0]))
    file.add_eos_token_id(tokens.index(MARKS[1]))
    file.add_add_bos_token(False)
    file.add_chat_template(CHAT_TEMPLATE)
    if embed:
        file.add_pooling_type(gguf.PoolingType.MEAN)
    random = np.random.default_rng(0)
    for name, shape in tensors(len(tokens), hidden, layers):
        # Norms near one and small matrices: activations stay in range however many tokens pass through.
        values = np.ones(shape) if len(shape) == 1 else random.normal(0, 0.1, shape)
        file.add_tensor(f"{name}.weight", values.astype(np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


if __name__ == "__main__":
    size = (768, 24) if sys.argv[2] == "slow" else (64, 2)
    write(Path(sys.argv[1]), hidden=size[0], layers=size[1], embed=sys.argv[2] == "embed")
