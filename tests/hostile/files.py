"""Every hostile file by name: small files are in `tests/fixtures/hostile`, large ones are generated here.

Each is a model file, or a model file and the config.json that it names. They are the same in every run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

FIXTURES: Final = Path(__file__).parents[1] / "fixtures" / "hostile"
THREE_LINES: Final = "model: hf://Qwen/Qwen3-8B\naccelerator: l40s\nreplicas: 2\n"

_WITH_CONFIG = "model: {{uri: 'hf://a/b', config: {}}}\naccelerator: l40s\nreplicas: 2\n"
_QWEN = {
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 4096,
    "head_dim": 128,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
}


def _more(text: str) -> str:
    return THREE_LINES + text


def _quantized(**said: object) -> str:
    return json.dumps({**_QWEN, "quantization_config": said})


# Built here: a token of this shape in a file is one that somebody has to revoke.
_TOKEN = "hf_" + "aB3dE" * 7


GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    "variables_250000": lambda: _more(
        "engine:\n  env:\n" + "".join(f"    A{n}: '1'\n" for n in range(250_000))
    ),
    "levels_3000_block": lambda: _more("description:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, 600))),
    "levels_3000_flow": lambda: _more("description: " + "[" * 3000 + "]" * 3000 + "\n"),
    "levels_100000_flow": lambda: _more("description: " + "[" * 100_000 + "\n"),
    "levels_of_dashes": lambda: _more("description:\n  " + "- " * 100_000 + "\n"),
    "levels_of_questions": lambda: _more("? " * 100_000 + "\n"),
    "lines_with_a_colon": lambda: _more("a: \n" * 250_000),
    "lines_of_questions": lambda: _more("? a\n" * 60_000),
    "lines_that_end_in_cr": lambda: _more("a: b\r" * 50_000),
    "blank_lines": lambda: _more("\n" * 250_000 + "drain: 60s\n"),
    "comments": lambda: _more("#\n" * 125_000),
    "documents": lambda: _more("--- a\n" * 40_000),
    "long_line": lambda: _more(f"description: {'x ' * 125_000}\n"),
    "long_text": lambda: _more("description: |\n" + "  x\n" * 62_000),
    "long_key": lambda: _more(f"? {'k' * 250_000}\n: 1\n"),
    "long_tag": lambda: _more(f"description: !{'x' * 250_000} a\n"),
    "long_anchor": lambda: _more(f"description: &{'x' * 250_000} a\n"),
    "long_number": lambda: _more(f"drain: {'1' * 250_000}\n"),
    "anchors": lambda: _more("description: [" + ", ".join(f"&a{n} x" for n in range(20_000)) + "]\n"),
    "merges": lambda: _more(
        "a: &a {x: 1}\ndescription: [" + ", ".join("{<<: *a}" for _ in range(15_000)) + "]\n"
    ),
    "chain_of_aliases": lambda: _more(
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 3000))
    ),
    # Within the limits: these are read to the end, and everything after the reader has to do with them.
    "tokens_2900": lambda: _more(
        "engine:\n  env:\n" + "".join(f"    A{n}: {_TOKEN}{n}\n" for n in range(2900))
    ),
    "passwords_2900": lambda: _more(
        "engine:\n  env:\n" + "".join(f"    A{n}_PASSWORD: hunter{n}\n" for n in range(2900))
    ),
    "comments_with_tokens": lambda: _more(
        "".join(f"# {_TOKEN}{n} password=hunter{n}\n" for n in range(3900))
    ),
    "line_of_tokens": lambda: _more("description: '" + f"{_TOKEN} " * 6000 + "'\n"),
    "variables_2900": lambda: _more("engine:\n  env:\n" + "".join(f"    A{n}: '1'\n" for n in range(2900))),
    "wrong_variables_2900": lambda: _more(
        "engine:\n  env:\n" + "".join(f"    a{n}: 1\n" for n in range(2900))
    ),
    "unknown_keys_2900": lambda: _more("".join(f"replicaz{n}: 1\n" for n in range(2900))),
    "unknown_long_keys": lambda: _more("".join(f"{'replicas' * 100}{n}: 1\n" for n in range(250))),
    "adapters_900": lambda: _more(
        "adapters:\n" + "".join(f"- {{name: a{n}, uri: 'hf://a/b'}}\n" for n in range(900))
    ),
    "flags_2900": lambda: _more(
        "engine:\n  args:\n" + "".join(f"    max-modell-{n}: 1\n" for n in range(2900))
    ),
    "account_numbers": lambda: _more(
        "engine:\n  env:\n" + "".join(f"    A{n}: '{n:012}'\n" for n in range(2900))
    ),
    "arn_without_an_end": lambda: _more("description: " + "arn:aws" * 30_000 + "\n"),
    "patches_700": lambda: _more(
        "patches:\n" + "".join(f"- {{kind: Deployment, merge: {{a{n}: {n}}}}}\n" for n in range(700))
    ),
}
"""Model files, by name."""

NO_TEXT: Final[Mapping[str, bytes]] = {
    "nul": _more("description: a\0b\n").encode(),
    "utf_16": THREE_LINES.encode("utf-16"),
}
"""Model files that are made here because version control takes them for binaries."""

CONFIGS: Final[Mapping[str, Callable[[], str]]] = {
    "config_of_levels": lambda: "[" * 100_000 + "]" * 100_000,
    "config_of_900_levels": lambda: (
        json.dumps({**_QWEN, "a": 1})[:-1] + ', "b": ' + "[" * 900 + "]" * 900 + "}"
    ),
    "config_of_empty_lists": lambda: json.dumps({**_QWEN})[:-1] + ', "a": [' + "[]," * 1_300_000 + "[]]}",
    "config_of_5_mib": lambda: json.dumps({**_QWEN, "a": "x" * (5 << 20)}),
    "config_at_the_limit": lambda: json.dumps({**_QWEN, "a": [0] * 190_000}),
    "config_with_a_long_number": lambda: json.dumps({**_QWEN})[:-1] + ', "a": ' + "9" * 100_000 + "}",
    "config_of_layers": lambda: json.dumps({**_QWEN, "layer_types": ["full_attention"] * 150_000}),
    "config_with_many_names": lambda: _quantized(
        quant_method="awq", bits=4, modules_to_not_convert=[f"name{n}" for n in range(150_000)]
    ),
    "config_with_many_formats": lambda: _quantized(
        quant_method="modelopt",
        quant_algo="MIXED_PRECISION",
        quantized_layers={f"model.layers.{n}.mlp.x": {"quant_algo": "FP8"} for n in range(60_000)},
    ),
    "config_with_a_slow_pattern": lambda: _quantized(
        quant_method="compressed-tensors", ignore=["re:(.|.)*x$"]
    ),
    "config_with_many_patterns": lambda: _quantized(
        quant_method="awq", bits=4, modules_to_not_convert=[f"*a*{n}*b*" for n in range(20_000)]
    ),
    "config_with_an_endless_number": lambda: json.dumps(_QWEN).replace("4096,", "1e400,"),
    "config_of_nothing": lambda: json.dumps(dict.fromkeys(_QWEN, 0)),
    "config_of_negatives": lambda: json.dumps(
        {**dict.fromkeys(_QWEN, -1), "architectures": ["Qwen3ForCausalLM"]}
    ),
    "config_of_texts": lambda: json.dumps(
        {**dict.fromkeys(_QWEN, "9" * 1000), "architectures": ["LlamaForCausalLM"]}
    ),
}
"""Files config.json, by the name of the model file that points to each."""


def write_all(folder: Path) -> dict[str, Path]:
    """Write every hostile file into `folder`, a pipe, a device and a folder among them; where each model file
    is."""
    found = {path.stem.replace("-", "_"): path for path in sorted(FIXTURES.glob("*.yaml"))}
    for name, text in GENERATED.items():
        found[name] = folder / f"{name.replace('_', '-')}.yaml"
        found[name].write_text(text(), encoding="utf-8", newline="")
    for name, content in NO_TEXT.items():
        found[name] = folder / f"{name.replace('_', '-')}.yaml"
        found[name].write_bytes(content)
    for name, text in CONFIGS.items():
        (folder / f"{name}.json").write_text(text(), encoding="utf-8")
        found[name] = folder / f"{name.replace('_', '-')}.yaml"
        found[name].write_text(_WITH_CONFIG.format(f"{name}.json"), encoding="utf-8")
    return found | _not_regular(folder)


def _not_regular(folder: Path) -> dict[str, Path]:
    found = {name: folder / f"{name.replace('_', '-')}.yaml" for name in ("a_pipe", "a_device", "a_folder")}
    os.mkfifo(found["a_pipe"])
    found["a_device"].symlink_to("/dev/zero")
    found["a_folder"].mkdir()
    for name, target in (("config_is_a_pipe", "a-pipe.yaml"), ("config_is_a_device", "/dev/zero")):
        found[name] = folder / f"{name.replace('_', '-')}.yaml"
        found[name].write_text(_WITH_CONFIG.format(target), encoding="utf-8")
    return found
