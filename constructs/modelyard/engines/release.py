"""One release of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from modelyard.engines.memory_facts import MemoryFacts
from modelyard.engines.versions import release_order
from modelyard.hardware import compute_capability
from modelyard.hardware.gpu_features import Capability

Drain = Literal["flag", "signal", "wait"]
"""How running requests get to finish: the engine takes a time on its command line; it finishes them on
SIGTERM however long that takes; or it does not, so that the signal has to wait."""


@dataclass(frozen=True)
class Flag:
    """One command line flag: its JSON type, and the values it is limited to, if any.

    `many`: it takes several values. `only_on`: a switch without a spelling for off.
    """

    name: str
    type: str
    choices: tuple[Any, ...] = ()
    many: bool = False
    only_on: bool = False


@dataclass(frozen=True)
class Release:
    """One release of an engine.

    `image` is for accelerators, `cpu_image` for CPUs where the engine has one. `health` and `metrics_path`
    are paths of the server's port; `metrics_need_key` where the latter asks for the API key, `api_key_env`
    how the key is told. `floor` is the oldest version without a known hole, `tracing` whether the image can
    send traces. `supports`: what of a model file the engine can do, by the names in `memory/capability.py`.
    """

    engine: str
    version: str
    image: str
    cpu_image: str | None
    health: str
    metrics_path: str
    metrics_need_key: bool
    api_key_env: str | None
    drain: Drain
    floor: str | None
    tracing: bool
    memory: MemoryFacts
    architectures: frozenset[str]
    flags: Mapping[str, Flag]
    owned: Mapping[str, str]
    removed: Mapping[str, str]
    tool_parsers: frozenset[str]
    reasoning_parsers: frozenset[str]
    tasks: frozenset[str]
    supports: frozenset[str]
    _quantization: Mapping[str, str]

    @property
    def below_floor(self) -> bool:
        """Whether a hole is known in this version."""
        return self.floor is not None and release_order(self.version) < release_order(self.floor)

    def image_for(self, *, cpu: bool) -> str:
        """The image for CPUs, or for accelerators."""
        return self.cpu_image if cpu and self.cpu_image else self.image

    def least_capability(self, quantization: str) -> Capability | None:
        """The least compute capability for a quantization method; None when the release does not know the
        method."""
        text = self._quantization.get(quantization)
        return compute_capability(text) if text else None
