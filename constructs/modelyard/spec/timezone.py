"""Time zone names of the IANA database."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import AfterValidator

from modelyard.reading import closest


@cache
def _names() -> frozenset[str]:
    # From the package, not the machine's database: every machine gives the same answer, slim images too.
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def check_timezone(name: str) -> str:
    """`name`, if the database has it.

    Raises:
        ValueError: it is unknown; KEDA would reject the scaler, and nothing would wake the model.
    """
    if name == "UTC" or name in _names():  # the default needs no file access
        return name
    by_lower = {known.lower(): known for known in _names()}
    # GMT+5 is five hours west of GMT in the database, so names with numbers get no suggestion.
    words = name.lower() if name.replace("/", "").replace("_", "").isalpha() else ""
    close = closest(words, by_lower, least=0.7)
    raise ValueError(
        "is no time zone of the IANA database" + (f" (did you mean '{by_lower[close[0]]}'?)" if close else "")
    )


TimeZone = Annotated[str, AfterValidator(check_timezone)]
"""The IANA name of a time zone."""
