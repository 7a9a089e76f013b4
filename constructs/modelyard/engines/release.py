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
"""How running requests finish on shutdown: `flag`: the engine takes a drain time on its command line;
`signal`: it finishes them on SIGTERM, however long that takes; `wait`: it does not, so SIGTERM must be
delayed."""


@dataclass(frozen=True)
class Flag:
    """One command line flag: its JSON type, and its allowed values, if limited.

    `many`: takes several values. `only_on`: a switch that cannot be negated.
    """

    name: str
    type: str
    choices: tuple[Any, ...] = ()
    many: bool = False
    only_on: bool = False


@dataclass(frozen=True)
class Release:
    """One release of an engine.

    `image`: for accelerators; `cpu_image`: for CPUs, if the engine has one. `health` and `metrics_path`:
    paths on the server's port; `metrics_need_key`: metrics need the API key; `api_key_env`: the variable for
    the key. `floor`: the oldest version without a known vulnerability. `tracing`: whether the image can send
    traces. `efa`: whether it has the libraries with which NCCL uses EFA. `fetches_vocabularies`: whether its
    libraries download vocabularies when they start. `supports`: features of a model file that the engine
    supports, by the names in `memory/capability.py`.
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
    efa: bool
    fetches_vocabularies: bool
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
        """Whether this version has a known vulnerability."""
        return self.floor is not None and release_order(self.version) < release_order(self.floor)

    def image_for(self, *, cpu: bool) -> str:
        """The image for CPUs, or for accelerators."""
        return self.cpu_image if cpu and self.cpu_image else self.image

    def least_capability(self, quantization: str) -> Capability | None:
        """Minimum compute capability of a quantization method; None if the release does not support the
        method."""
        text = self._quantization.get(quantization)
        return compute_capability(text) if text else None
