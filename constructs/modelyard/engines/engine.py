"""What every engine has to say of itself; one class an engine says it."""

from __future__ import annotations

import json
from typing import Any, Protocol

from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings


class Engine(Protocol):
    """An inference engine: its command line and environment. Paths, ports and flags that differ by release are data of
    the `Release`."""

    def command(self, settings: ServeSettings) -> tuple[str, ...]:
        """The container's command; empty for the image's own entrypoint."""

    def args(self, settings: ServeSettings, release: Release) -> tuple[str, ...]:
        """Arguments of the server; of the leader where a replica has several pods."""

    def env(self, settings: ServeSettings) -> dict[str, str]:
        """Environment variables that the engine needs besides the ones for its caches."""


def free_args(settings: ServeSettings, release: Release) -> list[str]:
    """The user's own flags, in alphabetical order, as the release spells them."""
    args: list[str] = []
    for name, value in sorted(settings.extra.items()):
        if value is True:
            args.append(f"--{name}")
        elif value is False:
            args.append(f"--no-{name}")
        elif isinstance(value, list) and name in release.flags and release.flags[name].many:
            args += [f"--{name}", *(str(item) for item in value)]
        else:
            args.append(f"--{name}={value if isinstance(value, str | int | float) else compact_json(value)}")
    return args


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
