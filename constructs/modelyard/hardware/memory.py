"""An amount of memory with an explicit unit."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 << 20
_GIB = 1 << 30


@dataclass(frozen=True, order=True)
class Memory:
    """An amount in bytes; a remainder of a budget may be negative."""

    in_bytes: int

    @classmethod
    def bytes(cls, amount: float) -> Memory:
        return cls(round(amount))

    @classmethod
    def mib(cls, amount: float) -> Memory:
        return cls(round(amount * _MIB))

    @classmethod
    def gib(cls, amount: float) -> Memory:
        return cls(round(amount * _GIB))

    @property
    def in_mib(self) -> float:
        return self.in_bytes / _MIB

    @property
    def in_gib(self) -> float:
        return self.in_bytes / _GIB

    @property
    def quantity(self) -> str:
        """The Kubernetes quantity, rounded up to whole Mi, in Gi if exact."""
        mib = -(-self.in_bytes // _MIB)
        return f"{mib // 1024}Gi" if mib % 1024 == 0 else f"{mib}Mi"

    def __add__(self, other: Memory) -> Memory:
        return Memory(self.in_bytes + other.in_bytes)

    def __sub__(self, other: Memory) -> Memory:
        return Memory(self.in_bytes - other.in_bytes)

    def __mul__(self, factor: float) -> Memory:
        return Memory(round(self.in_bytes * factor))

    def __str__(self) -> str:
        return f"{self.in_gib:.1f} GiB"
