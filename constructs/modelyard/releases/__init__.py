"""Versions of everything the platform installs, from one dated file."""

from modelyard.releases.releases import (
    Chart,
    Definitions,
    Minor,
    addon_version,
    addons,
    chart,
    charts,
    definitions,
    kubectl,
    minors,
    node_release,
)

__all__ = [
    "Chart",
    "Definitions",
    "Minor",
    "addon_version",
    "addons",
    "chart",
    "charts",
    "definitions",
    "kubectl",
    "minors",
    "node_release",
]
