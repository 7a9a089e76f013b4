"""The server command, from the plan's settings."""

from __future__ import annotations

from modelyard.engines.registry import engine
from modelyard.engines.release import Release
from modelyard.engines.settings import ServeSettings


def server_command(settings: ServeSettings, release: Release) -> tuple[str, ...]:
    """The container's command; empty for the image's entrypoint."""
    return engine(release.engine).command(settings)


def server_args(settings: ServeSettings, release: Release) -> tuple[str, ...]:
    """Arguments of the server; of the leader if a replica has several pods."""
    return engine(release.engine).args(settings, release)


def server_env(settings: ServeSettings, release: Release) -> dict[str, str]:
    """Environment variables of the engine, except those for its caches."""
    return engine(release.engine).env(settings)
