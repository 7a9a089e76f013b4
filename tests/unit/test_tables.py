"""Tables of the package: loaded quickly, with YAML 1.2 semantics."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from modelyard.reading.table import read_table

PRODUCT = Path(__file__).parents[2] / "constructs" / "modelyard"
TABLES = sorted(PRODUCT.rglob("*.yaml"))


def test_there_are_tables() -> None:
    assert len(TABLES) > 15


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(PRODUCT)))
def test_a_table_says_the_same_in_both_versions_of_yaml(path: Path) -> None:
    expected = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    assert read_table(path) == expected
    assert repr(read_table(path)) == repr(expected)
