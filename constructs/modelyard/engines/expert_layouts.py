"""How a release lays the experts of an MXFP4 checkpoint on a GPU, from dated tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from modelyard.engines.registry import engine as engine_called
from modelyard.engines.versions import stated_order
from modelyard.hardware.gpu_features import Capability, capability_rule
from modelyard.reading.table import read_table


@dataclass(frozen=True)
class ExpertLayout:
    """What a back end's kernels make of an expert's matrices; the table says how each was read.

    `hidden`, `intermediate`: multiples to which the sides are rounded up. `scale_groups`: the same for groups
    of scales. `value_tile`, `scale_tile`: rows and columns of the kernels' own layout, in bytes.
    `bias_bytes`: of one number. `scales_twice`: the checkpoint's scales stay beside the kernels'.
    """

    name: str
    hidden: int = 1
    intermediate: int = 1
    scale_groups: int = 1
    value_tile: tuple[int, int] = (1, 1)
    scale_tile: tuple[int, int] = (1, 1)
    bias_bytes: int = 2
    scales_twice: bool = False


@cache
def expert_layout(
    engine: str, version: str, capability: Capability | None, backend: str = "auto"
) -> ExpertLayout | None:
    """The layout that `engine` in `version` chooses on a GPU of `capability`, or that of `backend`
    (`--moe-backend`).

    None where nothing is known of it: another engine, a version before MXFP4, no GPU. The matrices then count
    as they are stored.
    """
    table = _table(engine)
    entries = [
        entry for entry in table.get("versions", []) if stated_order(entry["since"]) <= stated_order(version)
    ]
    if capability is None or not entries:
        return None
    row = next(row for row in entries[-1]["backends"] if capability_rule(row).holds(capability))
    name = table["chosen"].get(backend, row["layout"])
    return _layout(name, table["layouts"][name])


@cache
def _table(engine: str) -> Mapping[str, Any]:
    path = engine_called(engine).folder.joinpath("mxfp4.yaml")
    return read_table(path) if path.is_file() else {}


def _layout(name: str, row: Mapping[str, Any]) -> ExpertLayout:
    def tile(key: str) -> tuple[int, int]:
        rows, columns = row.get(key, (1, 1))
        return rows, columns

    return ExpertLayout(
        name=name,
        hidden=row.get("hidden", 1),
        intermediate=row["intermediate"],
        scale_groups=row.get("scaleGroups", 1),
        value_tile=tile("valueTile"),
        scale_tile=tile("scaleTile"),
        bias_bytes=row["biasBytes"],
        scales_twice=row.get("scalesTwice", False),
    )
