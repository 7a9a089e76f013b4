"""Findings of a cluster's API server on the objects of a plan."""

from __future__ import annotations

from contextlib import closing

from modelyard.cli.extras import needed_for
from modelyard.cli.workspace import CommandError
from modelyard.findings import Finding
from modelyard.live.api.answers import Unreachable, WrongContext
from modelyard.live.api.kubernetes import LiveCluster, open_cluster
from modelyard.live.clusters.acceptance import accepted_by, how_to_mark, is_marked
from modelyard.object_rules.broken import broken
from modelyard.objects.composition import Hook, RenderError, environment_objects
from modelyard.planning import Plan
from modelyard.reading import short

_FIX = "do as the server says; `modelyard explain CLUSTER003`"


def asked_findings(plan: Plan, hook: Hook | None, context: str) -> tuple[list[Finding], list[str]]:
    """What the API server of `context` would refuse, and what it could not be asked.

    Raises:
        CommandError: it is not reached, or is of another environment and its owner has not marked it.
    """
    try:
        folders = environment_objects(plan, hook)
    except RenderError:
        return [], []  # told already
    objects = [item for items in folders.values() for item in items]
    try:
        with closing(_opened(plan, context)) as cluster:
            found = accepted_by(cluster, objects)
    except Unreachable as why:
        raise CommandError(str(why)) from None
    unasked = [f"{count} objects: {why}" for why, count in sorted(found.unasked.items())]
    refused = [broken(item, short(said, 400), _FIX, code="CLUSTER003") for item, said in found.refused]
    return refused, unasked


def _opened(plan: Plan, context: str) -> LiveCluster:
    """The cluster of the context; one of others only if it is marked."""
    environment = plan.environment
    with needed_for("modelyard validate --context", "cluster"):
        try:
            return open_cluster(environment, context)
        except WrongContext as why:
            cluster = open_cluster(environment, context, foreign=True)
            if not is_marked(cluster, environment.name):
                cluster.close()
                raise CommandError(
                    f"{why}; to ask this one nevertheless: {how_to_mark(context, environment.name)}"
                ) from None
    return cluster
