"""Checks of where a starting replica's images come from."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.planning.checks.proposal import Proposal
from modelyard.releases import DOCKER_HUB, registry_of


def limited_registries(proposal: Proposal) -> Iterator[Finding]:
    """Strict environments whose new nodes ask Docker Hub, which counts pulls by address."""
    environment = proposal.environment
    if not environment.strict:
        return
    routes = environment.routes
    engines = {
        planned.model.name: planned.serving.release.image_for(cpu=planned.serving.on_cpu)
        for planned in proposal.plans
    }
    asking = sorted(
        name
        for name, image in engines.items()
        # What nobody admitted is an error already, REG001.
        if registry_of(routes.image(image))[0] == DOCKER_HUB and routes.passed_by(image) is None
    )
    if asking:
        yield Finding(
            "REG002",
            f"every new node asks {DOCKER_HUB} for the engine of {', '.join(asking)}, and shares its limit with all others "
            "behind the NAT gateway",
            "set registry: the host of a mirror, or pullThrough for a cache in Amazon ECR; docs/how-to/pull-from-a-registry.md",
            subject=proposal.subject,
            field=(),
        )
