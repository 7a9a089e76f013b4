"""Who may use a cluster: one EKS access entry for each IAM principal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

_ADMINISTERS: Final = "AmazonEKSClusterAdminPolicy"
_READS: Final = "AmazonEKSViewPolicy"
# AmazonEKSAdminViewPolicy would allow reading secrets.
_EDITS: Final = "AmazonEKSEditPolicy"


@dataclass(frozen=True, kw_only=True)
class TeamAccess:
    """IAM principals that may edit some namespaces and read others."""

    principals: Sequence[str]
    """ARNs of IAM roles or users."""
    edits: Sequence[str]
    """Namespaces."""
    reads: Sequence[str] = ()
    """Namespaces to read, except their secrets."""


@dataclass(frozen=True)
class PolicyScope:
    """An EKS access policy, and where it applies."""

    policy: str
    namespaces: tuple[str, ...] = ()
    """Empty: the whole cluster."""


def access_by_principal(
    admins: Sequence[str], viewers: Sequence[str], teams: Mapping[str, TeamAccess]
) -> dict[str, tuple[PolicyScope, ...]]:
    """ARN of each principal to what it may do.

    EKS has one access entry for a principal and associates a policy with it once: a second entry is refused,
    which rolls a new cluster back. So the lists are merged, and what a wider scope includes is left out.
    """
    edits: dict[str, dict[str, None]] = {}
    reads: dict[str, dict[str, None]] = {}
    for team in teams.values():
        for principal in team.principals:
            edits.setdefault(principal, {}).update(dict.fromkeys(team.edits))
            reads.setdefault(principal, {}).update(dict.fromkeys(team.reads))
    found: dict[str, tuple[PolicyScope, ...]] = {}
    for principal in dict.fromkeys((*admins, *viewers, *edits)):
        if principal in admins:
            found[principal] = (PolicyScope(_ADMINISTERS),)
            continue
        edited, read = tuple(edits.get(principal, ())), tuple(reads.get(principal, ()))
        scopes = [PolicyScope(_EDITS, edited)] if edited else []
        if principal in viewers:
            scopes.append(PolicyScope(_READS))
        elif read:
            scopes.append(PolicyScope(_READS, read))
        found[principal] = tuple(scopes)
    return found


def admit(scope: Construct, cluster: eks.ICluster, access: Mapping[str, Sequence[PolicyScope]]) -> None:
    """Make the access entries. Their ids know only the principal: one that moves to another list is updated,
    where a new entry would meet the old one."""
    entries = Construct(scope, "Access")
    for principal, scopes in access.items():
        eks.AccessEntry(
            entries,
            principal,
            cluster=cluster,
            principal=principal,
            access_policies=[
                eks.AccessPolicy.from_access_policy_name(
                    each.policy,
                    access_scope_type=eks.AccessScopeType.NAMESPACE
                    if each.namespaces
                    else eks.AccessScopeType.CLUSTER,
                    namespaces=list(each.namespaces) or None,
                )
                for each in scopes
            ],
        )
