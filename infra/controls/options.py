"""Accepted findings for options that the shipped environments do not use; the others are in
`acknowledgements`."""

from __future__ import annotations

from typing import Final

from infra.controls.acknowledgement import AcceptedRules, managed, wild
from modelyard.aws.karpenter_permissions import TAGGED_AT_LAUNCH

OPTIONS: Final = (
    AcceptedRules(
        "cdk-nag",
        managed("AmazonEKSWorkerNodeMinimalPolicy", "AmazonEC2ContainerRegistryPullOnly"),
        "Cluster/Cluster/NodeRole/*",
        "the policies that EKS documents for nodes of Auto Mode; pods have roles of their own",
    ),
    AcceptedRules(
        "cdk-nag",
        managed(
            "AmazonEKSClusterPolicy",
            "AmazonEKSComputePolicy",
            "AmazonEKSBlockStoragePolicy",
            "AmazonEKSLoadBalancingPolicy",
            "AmazonEKSNetworkingPolicy",
        ),
        "Cluster/Cluster/ClusterRole/*",
        "the policies that EKS documents for the control plane of Auto Mode; AWS extends them when EKS needs more",
    ),
    AcceptedRules(
        "cdk-nag",
        wild(*(f"arn:aws:ec2:{{region}}:{{account}}:{kind}/*" for kind in TAGGED_AT_LAUNCH)),
        "Cluster/Cluster/ClusterRole/*",
        "nodes that do not exist yet; every write is bound to this cluster's tag, as EKS documents it for tags of one's own",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("arn:aws:s3:::{bucket}/*"),
        "ModelCache/Reader/Role/*",
        "every object of a bucket that the environment names: models name their files, templates do not know them",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("<Weights79DEE8EF.Arn>/*"),
        "ModelCache/Cache/*Role/*",
        "the file system is the bucket: every object of it is a file",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("arn:<AWS::Partition>:events:{region}:{account}:rule/DO-NOT-DELETE-S3-Files*"),
        "ModelCache/Cache/ServiceRole/*",
        "the rules of S3 Files, by the prefix that the service gives them, and by its name as their owner",
    ),
    *(
        AcceptedRules(
            "cdk-nag",
            wild("arn:aws:ecr:{region}:{account}:repository/{environment}/*"),
            path,
            "repositories that ECR makes at the first pull; all are below the environment's name",
        )
        for path in ("Cluster/Cluster/NodeRole/*", "Delivery/Flux/InstallerRole/*")
    ),
    AcceptedRules(
        "cdk-nag",
        wild("*"),
        "Delivery/Flux/InstallerRole/*",
        "a login to ECR, which has no resource; infra/controls/iam_rules.py has the source",
    ),
    AcceptedRules(
        "template-rules",
        ("anomaly-monitor-of-tags",),
        "Cost/Alarms/AnomalyMonitor",
        "the environment says `anomalyMonitor: tag`, for a payer's account; doctor asks whether it is one",
    ),
)
"""Checked only where a test uses the option: tests/fixtures/platforms."""
