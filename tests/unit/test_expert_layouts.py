"""gpt-oss on each GPU generation: the experts' tensors as vLLM makes them, counted a second way, and as its
logs say."""

from __future__ import annotations

import re
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import NamedTuple

import pytest

from modelyard.checkpoints import Architecture, architectures
from modelyard.checkpoints.quantization import read_quantization
from modelyard.checkpoints.shape import StoredWeights
from modelyard.engines import newest_release
from modelyard.engines.expert_layouts import ExpertLayout, expert_layout
from modelyard.hardware import Memory, accelerators
from modelyard.memory.expert_tensors import expert_bytes
from modelyard.memory.ledger import memory_ledger
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.requests import Run
from modelyard.memory.weights import weights_per_accelerator
from modelyard.spec.model import Model

MODELS = architectures()
SMALL, LARGE = MODELS["openai/gpt-oss-20b"], MODELS["openai/gpt-oss-120b"]
GIB = 1 << 30


def layout(version: str, capability: tuple[int, int]) -> ExpertLayout:
    found = expert_layout("vllm", version, capability)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("version", "capability", "name"),
    [
        ("0.10.1", (9, 0), "marlin"),  # torch 2.7
        ("0.11.2", (9, 0), "marlin"),  # no triton_kernels in the wheel
        ("0.12.0", (9, 0), "hopper-twice"),
        ("0.16.0", (9, 0), "hopper-twice"),
        ("0.19.0", (9, 0), "hopper-64-twice"),
        ("0.24.0", (9, 0), "hopper-twice"),
        ("0.25.1", (9, 0), "hopper"),
        ("0.33.0", (9, 0), "hopper-groups"),
        *(
            (version, ampere_or_ada, "marlin")
            for version in ("0.10.1", "0.33.0")
            for ampere_or_ada in ((8, 0), (8, 6), (8, 9))
        ),
        ("0.12.0", (10, 0), "trtllm-256"),
        ("0.12.0", (10, 3), "blackwell-twice"),
        ("0.13.0", (10, 3), "trtllm-256"),
        ("0.26.0", (10, 0), "trtllm-256"),
        ("0.27.0", (10, 0), "trtllm"),
        ("0.33.0", (12, 0), "marlin"),
    ],
)
def test_the_back_end_follows_version_and_gpu_generation(
    version: str, capability: tuple[int, int], name: str
) -> None:
    assert layout(version, capability).name == name


def test_nothing_is_said_of_other_engines_older_versions_and_no_gpu() -> None:
    assert expert_layout("vllm", "0.9.2", (9, 0)) is None
    assert expert_layout("vllm", "0.33.0", None) is None
    assert expert_layout("vllm-neuron", "0.33.0", (9, 0)) is None


def test_a_back_end_that_the_file_names_wins() -> None:
    """`--moe-backend`: Marlin on Hopper takes what it takes on Ampere."""
    hopper, blackwell = (9, 0), (10, 0)

    assert expert_layout("vllm", "0.33.0", hopper, "marlin") == layout("0.33.0", (8, 0))
    assert expert_layout("vllm", "0.33.0", blackwell, "flashinfer_trtllm") == layout("0.33.0", blackwell)
    assert expert_layout("vllm", "0.33.0", hopper, "auto") == layout("0.33.0", hopper)
    assert expert_layout("vllm", "0.33.0", hopper, "triton") == layout("0.33.0", hopper)


def test_the_ledger_of_a_model_file_reads_the_back_end() -> None:
    def weights(**args: object) -> Memory:
        model = Model.model_validate(
            {
                "name": "gpt-oss",
                "model": "hf://openai/gpt-oss-120b",
                "accelerator": "h100",
                "replicas": 1,
                "engine": {"args": args},
            }
        )
        h100, release = accelerators()["h100"], newest_release("vllm")
        run = Run.of_file(model, LARGE, h100, Parallelism(1), release)
        return memory_ledger(run.at(8192)).weights

    assert weights(**{"moe-backend": "marlin"}).in_gib - weights().in_gib == pytest.approx(4.9, abs=0.1)


class Shapes(NamedTuple):
    """Rows × bytes of one expert's tensors, as a debugger would print them: packed values, scales, the
    checkpoint's scales if they stay, bytes of the biases."""

    w13: tuple[int, int]
    w2: tuple[int, int]
    w13_scale: tuple[int, int]
    w2_scale: tuple[int, int]
    bias: int
    left: tuple[int, int] = (0, 0)

    @property
    def size(self) -> int:
        pairs = (self.w13, self.w2, self.w13_scale, self.w2_scale, self.left)
        return sum(rows * columns for rows, columns in pairs) + self.bias


# 2880 becomes 3072 and 2944 or 3072; half a byte a value, a scale for 32.
ONE_RANK = {
    ("0.33.0", (8, 9)): Shapes((5888, 1536), (3072, 1472), (5888, 96), (3072, 92), 2 * (5888 + 3072)),
    ("0.33.0", (10, 0)): Shapes((5888, 1536), (3072, 1472), (5888, 96), (3072, 92), 4 * (5888 + 3072)),
    ("0.26.0", (10, 0)): Shapes((6144, 1536), (3072, 1536), (6144, 96), (3072, 96), 4 * (6144 + 3072)),
    ("0.25.1", (9, 0)): Shapes((5760, 1440), (2880, 1440), (5888, 90), (3072, 90), 4 * (5760 + 2880)),
    ("0.33.0", (9, 0)): Shapes((5760, 1440), (2880, 1440), (5888, 92), (3072, 92), 4 * (5760 + 2880)),
    ("0.14.1", (9, 0)): Shapes(
        (5760, 1440), (2880, 1440), (5888, 90), (3072, 90), 4 * (5760 + 2880), (8640, 90)
    ),
    ("0.19.0", (9, 0)): Shapes(
        (5760, 1472), (2880, 1472), (5888, 90), (3072, 90), 4 * (5760 + 2880), (8640, 90)
    ),
}
# Eight ranks: 360 of the intermediate size each.
EIGHT_RANKS = {
    ("0.33.0", (8, 9)): Shapes((768, 1536), (3072, 192), (768, 96), (3072, 12), 2 * (768 + 3072)),
    ("0.33.0", (9, 0)): Shapes((768, 1440), (2880, 192), (768, 92), (3072, 12), 4 * (768 + 2880)),
    ("0.26.0", (10, 0)): Shapes((1024, 1536), (3072, 256), (1024, 96), (3072, 16), 4 * (1024 + 3072)),
}


@pytest.mark.parametrize("model", [SMALL, LARGE], ids=["20b", "120b"])
@pytest.mark.parametrize(
    ("ranks", "version", "capability", "shapes"),
    [
        *((1, *key, shapes) for key, shapes in ONE_RANK.items()),
        *((8, *key, shapes) for key, shapes in EIGHT_RANKS.items()),
    ],
    ids=str,
)
def test_an_experts_tensors_have_the_shapes_that_the_kernels_take(
    model: Architecture, ranks: int, version: str, capability: tuple[int, int], shapes: Shapes
) -> None:
    assert model.moe is not None
    ours = expert_bytes(model, layout(version, capability), Parallelism(ranks))

    # The allocator's rounding adds up to 1 MiB for each of six tensors.
    assert 0 <= ours - model.moe.count * shapes.size <= 6 << 20


def test_whole_experts_are_padded_once_and_shared_among_the_ranks() -> None:
    split = Parallelism(8, expert=True)
    shapes = ONE_RANK["0.33.0", (8, 9)]

    assert expert_bytes(LARGE, layout("0.33.0", (8, 9)), split) == pytest.approx(
        ceil(128 / 8) * shapes.size, rel=0.02
    )


@pytest.mark.parametrize(
    ("model", "ranks", "version", "capability", "gib"),
    [  # tests/accuracy/measurements.csv, m301, m303, m304, m306
        (LARGE, 1, "0.10.1", (9, 0), 65.9651),
        (LARGE, 1, "0.14.1", (9, 0), 64.38),
        (SMALL, 1, "0.19.0", (8, 0), 13.72),
        (LARGE, 2, "0.12.0", (8, 6), 34.3774),
    ],
)
def test_weights_are_what_start_up_logs_print(
    model: Architecture, ranks: int, version: str, capability: tuple[int, int], gib: float
) -> None:
    ours = weights_per_accelerator(model, Parallelism(ranks), layout=layout(version, capability))

    assert ours.in_gib == pytest.approx(gib, rel=0.0005)


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_no_gpu_holds_gpt_oss_in_the_size_of_its_checkpoint(capability: tuple[int, int]) -> None:
    """Padding off, the mistake that this was, is several percent short."""
    padded = weights_per_accelerator(LARGE, layout=layout("0.14.1", capability))

    assert padded.in_bytes > 1.05 * weights_per_accelerator(LARGE).in_bytes


def test_the_page_says_what_each_version_takes() -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/how-memory-is-predicted.md").read_text(
        encoding="utf-8"
    )
    rows = re.findall(r"^\| (0\.\d+) \| ([\d.]+) \| ([\d.]+) \([^|]+\| ([\d.]+) \|$", page, re.MULTILINE)

    assert len(rows) == 5
    for version, *cells in rows:
        for capability, said in zip(((8, 9), (9, 0), (10, 0)), cells, strict=True):
            ours = weights_per_accelerator(LARGE, layout=layout(version, capability)).in_gib
            assert f"{ours:.1f}" == said, (version, capability)


def test_what_is_stored_does_not_change_what_the_kernels_take() -> None:
    """With the checkpoint's exact sizes known, the experts still count as tensors."""
    expert = 128 * (2880 * 8640 * 17 // 32 + 8640 * 2)
    plain = 2 * (2880 * 5120 + 4096 * 2880 + 2880 * 128 + 8064 + 128 + 5760)
    vocabulary = 2 * 201088 * 2880
    stored = StoredWeights(
        total=2 * vocabulary + 36 * (expert + plain),
        layers=((plain, expert),) * 36,
        embedding=vocabulary,
        head=vocabulary,
        vision=0,
        drafts=0,
        other=5760,
    )
    where = layout("0.33.0", (8, 9))

    exact = weights_per_accelerator(replace(LARGE, stored=stored), layout=where)

    assert exact.in_bytes == pytest.approx(weights_per_accelerator(LARGE, layout=where).in_bytes, rel=0.001)


def test_other_methods_keep_their_matrices() -> None:
    """compressed-tensors and Quark store MXFP4 too, and vLLM does not pad theirs."""
    other = read_quantization(
        {
            "quant_method": "compressed-tensors",
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {"num_bits": 4, "type": "float", "group_size": 32},
                }
            },
        }
    )
    arch = replace(LARGE, quantization=other)

    assert weights_per_accelerator(arch, layout=layout("0.33.0", (8, 9))) == weights_per_accelerator(arch)
