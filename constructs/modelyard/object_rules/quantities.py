"""Kubernetes quantities: the only parser of amounts such as `50m` and `1.5Gi`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from modelyard.secret_values import shown

# apimachinery, api/resource: a number with a binary unit, a decimal unit or an exponent. Two exponent digits
# exceed 2^63 - 1, at which the API server caps amounts.
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?:(?P<exponent>[eE][+-]?[0-9]{1,2})|(?P<unit>[KMGTPE]i|[numkMGTPE]))?"
)
_UNITS: Final = {
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
    **{unit: Decimal(1000) ** power for unit, power in zip("num", (-3, -2, -1), strict=True)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
}


class NotAQuantity(ValueError):
    """Text that is not a Kubernetes quantity."""


def quantity(amount: object) -> Decimal:
    """`amount` in base units, such as bytes, CPUs or devices; 0 for None.

    Raises:
        NotAQuantity: it is not a quantity.
    """
    if amount is None:
        return Decimal(0)
    found = _QUANTITY.fullmatch(str(amount))
    if found is None:
        raise NotAQuantity(f"{shown(amount)} is no quantity")
    return Decimal(found["number"] + (found["exponent"] or "")) * _UNITS.get(found["unit"], Decimal(1))


def unreadable(amount: object) -> str:
    """Why `quantity` rejects it; empty if it does not."""
    try:
        quantity(amount)
    except NotAQuantity as error:
        return str(error)
    return ""
