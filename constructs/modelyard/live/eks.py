"""Reads of EKS: a cluster, its add-ons and its node groups."""

from __future__ import annotations

from typing import Any

from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation

DESCRIBE_CLUSTER = Operation("eks", "DescribeCluster")
LIST_ADDONS = Operation("eks", "ListAddons")
DESCRIBE_ADDON = Operation("eks", "DescribeAddon")
LIST_NODE_GROUPS = Operation("eks", "ListNodegroups")
DESCRIBE_NODE_GROUP = Operation("eks", "DescribeNodegroup")
ABSENT = "ResourceNotFoundException"


def described_cluster(ask: Ask, cluster: str) -> dict[str, Any] | None:
    """The cluster; None if it does not exist.

    Raises:
        Unanswered: AWS does not answer.
    """
    try:
        answer: dict[str, Any] = ask(DESCRIBE_CLUSTER, name=cluster)["cluster"]
    except Refusal as refused:
        if refused.code == ABSENT:
            return None
        raise
    return answer


def addon_names(ask: Ask, cluster: str) -> list[str]:
    """Names of the cluster's add-ons.

    Raises:
        Unanswered: AWS does not answer; a Refusal with code ABSENT if the cluster does not exist.
    """
    return list(ask(LIST_ADDONS, clusterName=cluster)["addons"])


def described_addon(ask: Ask, cluster: str, name: str) -> dict[str, Any]:
    """One add-on.

    Raises:
        Unanswered: AWS does not answer.
    """
    answer: dict[str, Any] = ask(DESCRIBE_ADDON, clusterName=cluster, addonName=name)["addon"]
    return answer


def described_node_groups(ask: Ask, cluster: str) -> dict[str, dict[str, Any]]:
    """The node groups by name.

    Raises:
        Unanswered: AWS does not answer.
    """
    names = sorted(ask(LIST_NODE_GROUPS, clusterName=cluster)["nodegroups"])
    return {
        name: ask(DESCRIBE_NODE_GROUP, clusterName=cluster, nodegroupName=name)["nodegroup"] for name in names
    }


def issues(described: dict[str, Any]) -> list[str]:
    """Health issues that EKS reports for a cluster or a part of it."""
    found = described.get("health", {}).get("issues", [])
    return [f"{issue.get('code')}: {issue.get('message', 'no message')}" for issue in found]
