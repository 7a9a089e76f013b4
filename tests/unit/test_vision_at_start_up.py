"""What the profiling run of a vision model takes: the kind of item with most tokens, as many as a batch
holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modelyard.checkpoints import architectures
from modelyard.engines import newest_release
from modelyard.hardware import accelerators
from modelyard.memory.activation import largest_image
from modelyard.memory.ledger import memory_ledger
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.requests import Run

MODELS = architectures()
OLD, NEW, SMALL = (
    MODELS[name]
    for name in ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen3-VL-8B-Instruct", "google/gemma-3-12b-it")
)


def run(model: str, images: int, videos: int) -> Run:
    return Run(
        MODELS[model],
        accelerators()["h100"],
        newest_release("vllm").memory,
        Parallelism(1),
        image_limit=images,
        video_limit=videos,
    )


@pytest.mark.parametrize(
    ("length", "tokens"), [(8192, 8192), (16384, 16384), (32768, 32768), (40000, 32768), (128000, 114688)]
)
def test_a_video_counts_as_its_frames_while_they_fit_the_context(length: int, tokens: int) -> None:
    """Qwen 2.5 VL: up to 14 frames in pairs, each pair as large as the largest image."""
    assert largest_image(OLD, length, videos=1) == tokens
    assert largest_image(OLD, length) == min(length, 16384)


@pytest.mark.parametrize("arch", [NEW, SMALL], ids=["Qwen3-VL", "Gemma 3"])
def test_a_video_no_larger_than_an_image_changes_nothing(arch: object) -> None:
    assert largest_image(arch, 32768, videos=1) == largest_image(arch, 32768)  # type: ignore[arg-type]


def test_videos_take_their_room_before_the_cache() -> None:
    images, videos = (
        memory_ledger(run("Qwen/Qwen2.5-VL-7B-Instruct", 1, count).at(128000)) for count in (0, 1)
    )

    assert videos.activation.in_gib > 5 * images.activation.in_gib
    assert videos.kv_cache < images.kv_cache


def test_a_tower_for_videos_alone_is_profiled_too() -> None:
    model = "Qwen/Qwen3-VL-8B-Instruct"
    neither, videos, images = (
        memory_ledger(run(model, *limits).at(32768)).activation for limits in ((0, 0), (0, 1), (1, 0))
    )

    assert neither < videos == images


def test_a_tower_takes_no_less_than_starts_with_and_without_images_showed() -> None:
    """A public series of starts of Qwen3.6-35B-A3B: 1.56 GiB of cache between an image of 16,384 tokens and
    none, whatever the limit. The text's own peak, which it does not state, comes on top; the tower is
    Qwen3.5's."""
    few = replace(run("Qwen/Qwen3.5-35B-A3B", 1, 0), max_num_seqs=4, max_num_batched_tokens=2048)
    one, many = (
        memory_ledger(replace(few, image_limit=limit).at(65536)).activation.in_gib for limit in (1, 999)
    )

    assert one == many
    assert 1.56 <= one <= 1.56 + 0.5
