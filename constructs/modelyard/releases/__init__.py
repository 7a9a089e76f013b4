"""Versions of everything the platform installs, from one dated file."""

from modelyard.releases.image_routes import (
    DOCKER_HUB,
    EcrRepositories,
    ImageRoutes,
    Upstream,
    ecr_repositories,
    registry_of,
    upstreams,
)
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
    "DOCKER_HUB",
    "Chart",
    "Definitions",
    "EcrRepositories",
    "ImageRoutes",
    "Minor",
    "Upstream",
    "addon_version",
    "addons",
    "chart",
    "charts",
    "definitions",
    "ecr_repositories",
    "kubectl",
    "minors",
    "node_release",
    "registry_of",
    "upstreams",
]
