"""Explicit IAM actions instead of the wildcards in CDK's grants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsii
from aws_cdk import Aspects, CfnResource, IAspect, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

EXACT: Final[Mapping[str, tuple[str, ...]]] = {
    "kms:GenerateDataKey*": ("kms:GenerateDataKey",),
    "kms:ReEncrypt*": ("kms:ReEncryptFrom", "kms:ReEncryptTo"),
    "s3:Abort*": ("s3:AbortMultipartUpload",),
    "s3:DeleteObject*": ("s3:DeleteObject",),
    "s3:GetBucket*": ("s3:GetBucketAcl", "s3:GetBucketLocation", "s3:GetBucketVersioning"),
    "s3:GetObject*": ("s3:GetObject", "s3:GetObjectVersion"),
    "s3:List*": ("s3:ListBucket",),
}
"""Wildcards of `grant_read_write`, and the actions that an upload, a download and a pipeline's artifacts
need."""

_LAST: Final = 900
"""Aspect priority: after aspects that add statements, before those that only read."""


def use_exact_actions(scope: IConstruct) -> None:
    """Replace wildcards below `scope` by explicit actions.

    `grant_read` and similar methods allow families of actions, such as `s3:GetObject*` with ACLs, retention
    and torrents, and cannot be narrowed. A wildcard that is not in `EXACT` stays, for the controls to find.
    """
    Aspects.of(scope).add(_ExactActions(), priority=_LAST)


@jsii.implements(IAspect)
class _ExactActions:
    def visit(self, node: IConstruct) -> None:
        # Set the property, not an override: tools that inspect constructs do not see overrides.
        if isinstance(node, iam.CfnPolicy | iam.CfnManagedPolicy | s3.CfnBucketPolicy):
            node.policy_document = _exact(node, node.policy_document)
        elif isinstance(node, kms.CfnKey):
            node.key_policy = _exact(node, node.key_policy)


def _exact(resource: CfnResource, document: Any) -> Any:
    resolved = Stack.of(resource).resolve(document)
    changed = False
    for statement in resolved["Statement"]:
        stated = statement.get("Action", [])
        actions = stated if isinstance(stated, list) else [stated]
        if any(action in EXACT for action in actions):
            exact = {name for action in actions for name in EXACT.get(action, (action,))}
            statement["Action"] = sorted(exact)
            changed = True
    return resolved if changed else document
