"""What the exit codes of `modelyard` mean."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EX_USAGE = 64
INTERRUPTED = 130

EXIT_CODES: Mapping[int, str] = MappingProxyType(
    {
        0: "Fine, or nothing to change.",
        1: "An error among the findings (with `--fail-on warning`, a warning), or a failure.",
        2: "Changes, with `render --detailed-exitcode`; or not everything could be checked: `doctor`, `secrets check`, "
        "`destroy-plan`.",
        EX_USAGE: "The command line is wrong.",
        INTERRUPTED: "Interrupted, by Ctrl-C or at a question.",
    }
)
