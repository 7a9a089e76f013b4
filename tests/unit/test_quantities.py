"""The only parser of Kubernetes quantities accepts exactly what the API server accepts."""

from __future__ import annotations

from decimal import Decimal

import pytest

from modelyard.object_rules.quantities import NotAQuantity, quantity, unreadable


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", "0"),
        ("8", "8"),
        (8, "8"),
        (0.5, "0.5"),
        ("50m", "0.05"),
        ("700m", "0.7"),
        ("1.5Gi", "1610612736"),
        ("64Mi", "67108864"),
        ("1Ki", "1024"),
        ("2Ti", "2199023255552"),
        ("1Pi", "1125899906842624"),
        ("1Ei", "1152921504606846976"),
        ("5k", "5000"),
        ("5M", "5000000"),
        ("5G", "5000000000"),
        ("5T", "5000000000000"),
        ("5P", "5000000000000000"),
        ("5E", "5000000000000000000"),
        ("3u", "0.000003"),
        ("3n", "0.000000003"),
        ("12e6", "12000000"),
        ("1E3", "1000"),
        ("1e-3", "0.001"),
        (".5Gi", "536870912"),
        ("2.", "2"),
        ("+1", "1"),
        ("-1", "-1"),
    ],
)
def test_an_amount_is_read_exactly(text: object, amount: str) -> None:
    assert quantity(text) == Decimal(amount)
    assert not unreadable(text)


def test_nothing_is_asked_for_where_there_is_no_amount() -> None:
    assert quantity(None) == 0


@pytest.mark.parametrize(
    "text",
    ["", " ", "lots", "2 Gi", "2GB", "2gi", "5K", "5KB", "m", "Gi", "1e", "1e3Gi", "1e999999999", "0x10", "1_000", "1,5Gi",
     "nan", "inf", "٣Gi", "2Gi\n", True, [], {"amount": 2}],
)  # fmt: skip
def test_text_that_is_no_quantity_raises_and_does_not_count_as_nothing(text: object) -> None:
    assert "is no quantity" in unreadable(text)
    with pytest.raises(NotAQuantity, match="is no quantity"):
        quantity(text)
