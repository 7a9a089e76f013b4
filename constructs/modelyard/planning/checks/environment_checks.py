"""Checks of an environment on its own and against the catalogue's model names."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.hardware import accelerator_named, accelerators
from modelyard.planning.checks.proposal import Proposal
from modelyard.planning.placement import launchable
from modelyard.reading import suggestion


def unpinned_images(proposal: Proposal) -> Iterator[Finding]:
    """AMIs that are not pinned."""
    environment = proposal.environment
    general = environment.cluster.general_nodes.ami
    used = [("general nodes", general, ("cluster", "generalNodes", "ami"))]
    for name, pool in environment.pools.items():
        if accelerator_named(pool.accelerator) and launchable(pool, environment.region):
            used.append((f"pool {name}", pool.ami, ("pools", name, "ami")))
    for nodes, ami, field in used:
        if ami.endswith("@latest"):
            yield Finding(
                "AMI001",
                f"{nodes}: the AMI follows {ami}",
                "pin a release such as al2023@v20260714",
                subject=proposal.subject,
                field=field,
            )


def model_cache(proposal: Proposal) -> Iterator[Finding]:
    """A cache in one zone that pods elsewhere reach only across zones."""
    environment = proposal.environment
    if environment.cache.file_system == "lustre" and len(environment.availability_zones) > 1:
        yield Finding(
            "CACHE001",
            f"the Lustre file system lives in {environment.availability_zones[0]} alone",
            "use efs, or acknowledge it",
            subject=proposal.subject,
            field=("cache", "fileSystem"),
        )


def gateways(proposal: Proposal) -> Iterator[Finding]:
    """CIDR restrictions that EKS Auto Mode does not enforce."""
    environment = proposal.environment
    if not environment.cluster.auto_mode:
        return
    for name in ("internal", "public"):
        gateway = environment.gateways.of(name)
        if gateway and gateway.class_name != "istio" and set(gateway.cidrs) - {"0.0.0.0/0"}:
            yield Finding(
                "SEC004",
                f"EKS Auto Mode does not limit load balancers of GatewayClass {gateway.class_name} to cidrs: it reads them "
                "from the Service alone, which only Istio's gateways can be told",
                f"leave gateways.{name}.className out, which is istio, or compute: karpenter",
                subject=proposal.subject,
                field=("gateways", name, "cidrs"),
            )


def teams_accelerators(proposal: Proposal) -> Iterator[Finding]:
    """Team grants for unknown accelerators."""
    for name, team in proposal.environment.teams.items():
        for field, kinds in (("accelerators", team.accelerators or {}), ("notebooks", team.notebooks)):
            for kind in kinds:
                if kind not in accelerators():
                    yield Finding(
                        "HW001",
                        f"team {name}: unknown accelerator '{kind}'",
                        suggestion(kind, accelerators()) + f"use one of {', '.join(accelerators())}",
                        subject=proposal.subject,
                        field=("teams", name, field, kind),
                    )


def contradicting_access(proposal: Proposal) -> Iterator[Finding]:
    """Principals that are to administer the cluster and only to read it."""
    cluster = proposal.environment.cluster
    for index, viewer in enumerate(cluster.viewers):
        if viewer in cluster.admins:
            yield Finding(
                "SEC006",
                f"{viewer} is under cluster.admins and under cluster.viewers: one may read no secrets, the other everything",
                "remove it from one of them",
                subject=proposal.subject,
                field=("cluster", "viewers", index),
            )


def overrides(proposal: Proposal) -> Iterator[Finding]:
    """Overrides that name an undefined model or pool."""
    environment, models = proposal.environment, proposal.catalogue.models
    for name, override in environment.overrides.items():
        if name not in models:
            yield Finding(
                "ENV002",
                f"override for unknown model '{name}'",
                f"{suggestion(name, models)}known models are {', '.join(models) or 'none'}",
                subject=proposal.subject,
                field=("overrides", name),
            )
        elif override.pool and override.pool not in environment.pools:
            yield Finding(
                "ENV002",
                f"override of {name} names unknown pool '{override.pool}'",
                f"{suggestion(override.pool, environment.pools)}known pools are {', '.join(environment.pools) or 'none'}",
                subject=proposal.subject,
                field=("overrides", name, "pool"),
            )


def gateway_names(proposal: Proposal) -> Iterator[Finding]:
    """Names that the LiteLLM gateway would route to either of two models."""
    if proposal.environment.litellm is None:
        return
    owners: dict[str, str] = {}
    for planned in proposal.plans:
        if planned.role == "prefill":
            continue
        for name in planned.gateway_names:
            owner = owners.setdefault(name, planned.model.name)
            if owner != planned.model.name:
                adapter = name in {each.name for each in planned.model.adapters}
                yield Finding(
                    "NAME001",
                    f"the LiteLLM gateway would send requests for '{name}' to {owner} or to {planned.model.name}",
                    f"choose another name {'for the adapter' if adapter else 'under servedNames'}",
                    subject=planned.model.name,
                    field=("adapters",) if adapter else ("model", "servedNames"),
                )
