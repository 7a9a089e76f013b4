"""Checks of where a starting replica's images come from."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.planning.checks.proposal import Proposal
from modelyard.releases import DOCKER_HUB, registry_of


def limited_registries(proposal: Proposal) -> Iterator[Finding]:
    """Strict environments whose new nodes ask Docker Hub, which counts pulls by address."""
    environment = proposal.environment
    if not environment.strict or environment.routes.used:
        return
    asking = sorted(
        {
            planned.model.name
            for planned in proposal.plans
            if registry_of(planned.serving.release.image_for(cpu=planned.serving.on_cpu))[0] == DOCKER_HUB
        }
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
