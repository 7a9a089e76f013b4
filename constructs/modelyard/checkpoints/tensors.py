"""The tensors of a checkpoint, folded: `model.layers.{0..35}.mlp.up_proj.weight` stands for 36 tensors of one
type and shape.

A mixture-of-experts checkpoint has 90,000 tensors and two dozen kinds of them. Folded they are a page that
people can review, and whose changes a diff shows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

from modelyard.checkpoints.tensor_types import tensor_bytes, tensor_types

MOST_TENSORS = 1_000_000
"""Maximum tensors of a checkpoint; published ones have up to 200,000."""
MOST_DIMENSIONS = 8
_MOST_BYTES = 1 << 60
_LONGEST_NAME = 512

_NAME = re.compile(r"[A-Za-z0-9_.:/\-]+")
_RANGES = re.compile(r"\{((?:[0-9]{1,9}(?:\.\.[0-9]{1,9})?,)*[0-9]{1,9}(?:\.\.[0-9]{1,9})?)\}")
_INDEX = re.compile(r"(?<![^.])(0|[1-9][0-9]{0,8})(?![^.])")

Ranges = tuple[tuple[int, int], ...]


class WrongTensors(ValueError):
    """A list of tensors that no checkpoint has. The message quotes nothing of unlimited length."""


@dataclass(frozen=True)
class Tensors:
    """Tensors of one type and shape. `parts`: the name between its indices; `indices`: the values of each, as
    first and last of ranges."""

    parts: tuple[str, ...]
    indices: tuple[Ranges, ...]
    kind: str
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """The folded name."""
        shown = (f"{{{','.join(_shown(pair) for pair in ranges)}}}" for ranges in self.indices)
        return self.parts[0] + "".join(
            ranges + part for ranges, part in zip(shown, self.parts[1:], strict=True)
        )

    @cached_property
    def count(self) -> int:
        return prod(sum(last - first + 1 for first, last in ranges) for ranges in self.indices)

    @cached_property
    def bytes_of_one(self) -> int:
        return tensor_bytes(self.kind, self.shape)

    @property
    def bytes(self) -> int:
        return self.count * self.bytes_of_one

    @property
    def numbers(self) -> int:
        """Stored numbers of all of them; packed formats hold several weights in one."""
        return self.count * prod(self.shape)


def fold(tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> tuple[Tensors, ...]:
    """Fold `tensors`, type and shape by name, in the order of their names.

    Raises:
        WrongTensors: a name, type or shape that no checkpoint has.
    """
    if len(tensors) > MOST_TENSORS:
        raise WrongTensors(f"{len(tensors):,} tensors; {MOST_TENSORS:,} are the most")
    alike: dict[tuple[tuple[str, ...], str, tuple[int, ...]], set[tuple[int, ...]]] = defaultdict(set)
    for name, (kind, shape) in tensors.items():
        if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
            raise WrongTensors(f"a tensor called {name[:60]!r}")
        _check(name, kind, shape)
        pieces = _INDEX.split(name)
        alike[tuple(pieces[::2]), kind, shape].add(tuple(map(int, pieces[1::2])))
    found = [
        Tensors(parts, indices, kind, shape)
        for (parts, kind, shape), values in alike.items()
        for indices in _products(values)
    ]
    return tuple(sorted(found, key=lambda each: (each.parts, each.indices, each.kind)))


def unfolded(name: str, kind: str, shape: tuple[int, ...]) -> Tensors:
    """The tensors that a folded `name` stands for.

    Raises:
        WrongTensors: a name, type or shape that no checkpoint has.
    """
    pieces = _RANGES.split(name)
    if len(name) > 64 * _LONGEST_NAME or not all(not part or _NAME.fullmatch(part) for part in pieces[::2]):
        raise WrongTensors(f"a tensor called {name[:60]!r}")
    _check(name, kind, shape)
    indices = tuple(_parsed(piece, name) for piece in pieces[1::2])
    found = Tensors(tuple(pieces[::2]), indices, kind, shape)
    if found.count > MOST_TENSORS:
        raise WrongTensors(f"{name[:60]!r} stands for {found.count:,} tensors; {MOST_TENSORS:,} are the most")
    return found


def _parsed(text: str, name: str) -> Ranges:
    pairs = [pair.partition("..") for pair in text.split(",")]
    ranges = tuple((int(first), int(last or first)) for first, _, last in pairs)
    flat = [number for pair in ranges for number in pair]
    ascending = all(first <= last for first, last in ranges) and all(
        before[1] < after[0] for before, after in pairwise(ranges)
    )
    if not ascending or max(flat) > MOST_TENSORS:
        raise WrongTensors(f"{name[:60]!r} has indices that do not ascend")
    return ranges


def _check(name: str, kind: str, shape: tuple[int, ...]) -> None:
    if kind not in tensor_types():
        raise WrongTensors(f"{name[:60]} is of type {kind[:20]!r}, which is not known")
    if len(shape) > MOST_DIMENSIONS or any(size < 0 for size in shape) or prod(shape) > _MOST_BYTES:
        raise WrongTensors(f"{name[:60]} has the impossible shape {list(shape)[:9]}")


def _products(values: set[tuple[int, ...]]) -> Iterator[tuple[Ranges, ...]]:
    """`values` as few products of index ranges."""
    if not next(iter(values)):
        yield ()
        return
    rests: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    for first, *rest in values:
        rests[first].add(tuple(rest))
    alike: dict[frozenset[tuple[int, ...]], list[int]] = defaultdict(list)
    for first in sorted(rests):
        alike[frozenset(rests[first])].append(first)
    for rest_values, firsts in alike.items():
        for rest_ranges in _products(set(rest_values)):
            yield (_ranges(firsts), *rest_ranges)


def _ranges(numbers: Iterable[int]) -> Ranges:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def _shown(pair: tuple[int, int]) -> str:
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}..{pair[1]}"
