"""The accepted findings: which checker, which rule, where, and why. Nothing is accepted anywhere else.

A pattern that no longer matches anything is an error (`python -m infra.controls` and the tests name it).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from infra.controls.acknowledgement import AcceptedRules, Place, managed, wild
from infra.controls.options import OPTIONS
from infra.controls.violation import Checker, Violation

_NODE_POLICIES: Final = managed(
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
_UPLOAD: Final = "Delivery/Custom::CDKBucketDeployment*"
_ACCESS_LOGS: Final[tuple[tuple[Checker, str], ...]] = (
    ("cdk-nag", "AwsSolutions-S1"),
    ("checkov", "CKV_AWS_18"),
    ("cfn-guard", "s3_bucket_logging_enabled_check"),
)
_PROVIDER: Final = "Delivery/Flux/Installer/Provider/framework-onEvent"

ENVIRONMENT: Final = (
    AcceptedRules(
        "cdk-nag",
        managed("AmazonEKSClusterPolicy"),
        "Cluster/Cluster/Cluster/Role/*",
        "the policy that EKS documents for the control plane; AWS extends it when EKS needs more",
    ),
    AcceptedRules(
        "cdk-nag",
        _NODE_POLICIES,
        "Cluster/Cluster/SystemNodes/Role/*",
        "the policies that EKS documents for nodes; pods have roles of their own and cannot reach the node's",
    ),
    AcceptedRules(
        "cdk-nag",
        _NODE_POLICIES,
        "Karpenter/Karpenter/NodeRole/*",
        "the policies that Karpenter documents for nodes; pods cannot reach the node's role",
    ),
    *(
        AcceptedRules(
            "cdk-nag",
            wild("arn:aws:ecr:{region}:{account}:repository/{environment}/*"),
            path,
            "repositories that ECR makes at the first pull; all are below the environment's name",
        )
        for path in (
            "Cluster/Cluster/SystemNodes/Role/*",
            "Karpenter/Karpenter/NodeRole/*",
            "Delivery/Flux/SourceRole/*",
        )
    ),
    AcceptedRules(
        "cdk-nag",
        wild("*"),
        "Delivery/Flux/SourceRole/*",
        "a login to ECR, which has no resource; infra/controls/iam_rules.py has the source",
    ),
    AcceptedRules(
        "cdk-nag",
        managed("AmazonEKS_CNI_Policy"),
        "Cluster/Cluster/VpcCniRole/*",
        "the CNI's own policy; its add-on updates itself and may need what is added there",
    ),
    AcceptedRules(
        "cdk-nag",
        managed("service-role/AmazonEBSCSIDriverPolicy"),
        "Cluster/Cluster/EbsDriverRole/*",
        "the driver's own policy, bound by tags; its add-on updates itself and may need what is added there",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("<Weights79DEE8EF.Arn>/*"),
        "ModelCache/Reader/Role/*",
        "every object of the one bucket: models name their files, and are not known to the template",
    ),
    AcceptedRules(
        "cdk-nag",
        managed("service-role/AmazonEFSCSIDriverPolicy"),
        "Cluster/Cluster/EfsDriverRole/*",
        "the driver's own policy, bound by tags; its add-on updates itself and may need what is added there",
    ),
    AcceptedRules(
        "cdk-nag",
        wild(
            *(
                f"arn:aws:ec2:{{region}}:*:{kind}/*"
                for kind in (
                    "capacity-reservation",
                    "fleet",
                    "instance",
                    "launch-template",
                    "network-interface",
                    "placement-group",
                    "security-group",
                    "spot-instances-request",
                    "subnet",
                    "volume",
                )
            ),
            "arn:aws:ec2:{region}::image/*",
            "arn:aws:ec2:{region}::snapshot/*",
        ),
        "Karpenter/Karpenter/Policies/NodeLifecycle/*",
        "nodes that do not exist yet; every write is bound to this cluster's tags, as in Karpenter's reference",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("arn:aws:iam::{account}:instance-profile/*"),
        "Karpenter/Karpenter/Policies/*",
        "Karpenter lists and reads profiles by name; writes are bound to this cluster's tags",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("*"),
        "Karpenter/Karpenter/Policies/*",
        "reads for which AWS has no resources; infra/controls/iam_rules.py lists each with its source",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("arn:aws:ssm:{region}::parameter/aws/service/*"),
        "Karpenter/Karpenter/Policies/ResourceDiscovery/*",
        "public parameters of AWS, under which the ids of node images stand",
    ),
    AcceptedRules(
        "cdk-nag",
        ("AwsSolutions-SQS3",),
        "Karpenter/Karpenter/Interruptions/*",
        "a warning is worth nothing after five minutes, and less in a queue that nobody reads",
    ),
    AcceptedRules(
        "cfn-guard",
        ("sqs_dlq_check",),
        "Karpenter/Karpenter/Interruptions/*",
        "a warning is worth nothing after five minutes, and less in a queue that nobody reads",
    ),
    AcceptedRules(
        "checkov",
        ("CKV_AWS_27",),
        "Karpenter/Karpenter/Interruptions/*",
        "checkov knows KMS keys alone; the queue is encrypted with the key of SQS",
    ),
    AcceptedRules(
        "cdk-nag",
        ("AwsSolutions-SMG4",),
        "Secrets/Secrets/Secrets/*",
        "tokens of Hugging Face and certificates are issued elsewhere; AWS cannot rotate them",
    ),
    AcceptedRules(
        "cdk-nag",
        ("AwsSolutions-S1",),
        "ModelCache/Weights/*",
        "one role reads the bucket and nobody else; AWS CloudTrail's data events say who put what, where that is asked",
    ),
    AcceptedRules(
        "checkov",
        ("CKV_AWS_18",),
        "ModelCache/Weights/*",
        "one role reads the bucket and nobody else; AWS CloudTrail's data events say who put what, where that is asked",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_logging_enabled_check",),
        "ModelCache/Weights/*",
        "one role reads the bucket and nobody else; AWS CloudTrail's data events say who put what, where that is asked",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_default_encryption_kms_check",),
        "ModelCache/Weights/*",
        "encrypted with the key of S3: weights are no secret, and every reader would need a grant of ours",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_event_notifications_enabled_check",),
        "ModelCache/Weights/*",
        "servers read what they were told to; nothing waits for an event",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_object_lock_enabled_check",),
        "ModelCache/Weights/*",
        "weights can be fetched again; versions keep what was overwritten for 30 days",
    ),
    AcceptedRules(
        "cdk-nag",
        ("AwsSolutions-S1",),
        "Delivery/Delivery/Tree/*",
        "two roles reach the bucket, every version of every file stays for 90 days, and no secret is in it",
    ),
    AcceptedRules(
        "checkov",
        ("CKV_AWS_18",),
        "Delivery/Delivery/Tree/*",
        "two roles reach the bucket, every version of every file stays for 90 days, and no secret is in it",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_logging_enabled_check",),
        "Delivery/Delivery/Tree/*",
        "two roles reach the bucket, every version of every file stays for 90 days, and no secret is in it",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_default_encryption_kms_check",),
        "Delivery/Delivery/Tree/*",
        "encrypted with the key of S3; the tree holds no secret values, and a key of ours would add a way to fail",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_event_notifications_enabled_check",),
        "Delivery/Delivery/Tree/*",
        "Flux asks the bucket every minute; nothing waits for an event",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_object_lock_enabled_check",),
        "Delivery/Delivery/Tree/*",
        "every file can be rendered again from Git; a lock would keep the bucket of a destroyed environment",
    ),
    *(
        AcceptedRules(
            checker,
            (rule,),
            "Delivery/Reports/Bucket/*",
            "one role puts reports and does nothing else; what it overwrites stays as a version for 90 days",
        )
        for checker, rule in _ACCESS_LOGS
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_default_encryption_kms_check",),
        "Delivery/Reports/Bucket/*",
        "encrypted with the key of S3: the lookup role of `cdk bootstrap` reads the reports, and is denied kms:Decrypt",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_event_notifications_enabled_check",),
        "Delivery/Reports/Bucket/*",
        "`modelyard verify` asks the bucket as long as it waits; nothing else does",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_object_lock_enabled_check",),
        "Delivery/Reports/Bucket/*",
        "a model can be asked again; a lock would keep the bucket of a destroyed environment",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("<ReportsBucket95FE29A2.Arn>/*/*.json"),
        "Delivery/Reports/Role/*",
        "the reports of one named bucket, by job and pod: Kubernetes makes up the names of pods",
    ),
    AcceptedRules(
        "cdk-nag",
        managed("service-role/AWSLambdaBasicExecutionRole"),
        f"{_UPLOAD}/ServiceRole/*",
        "the role is CDK's; the policy lets the function write its log and nothing else",
    ),
    AcceptedRules(
        "cdk-nag",
        wild(
            "arn:aws:s3:::cdk-hnb659fds-assets-{account}-{region}/*",
            "<DeliveryTreeB2CC1712.Arn>/*",
        ),
        f"{_UPLOAD}/ServiceRole/*",
        "the objects of two named buckets: it copies a tree whose files are not known before it is rendered",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("<DeliveryTreeB2CC1712.Arn>/*"),
        "Delivery/Flux/SourceRole/*",
        "Flux reads the whole tree of one named bucket, and writes nothing",
    ),
    AcceptedRules(
        "cdk-nag",
        managed("service-role/AWSLambdaVPCAccessExecutionRole"),
        "Delivery/Flux/InstallerRole/*",
        "network interfaces in the VPC and the function's log; AWS documents this policy for it",
    ),
    AcceptedRules(
        "cdk-nag",
        managed("service-role/AWSLambdaBasicExecutionRole", "service-role/AWSLambdaVPCAccessExecutionRole"),
        f"{_PROVIDER}/ServiceRole/*",
        "the role is CDK's and takes no other; the policies are for the log and network interfaces",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("<FluxInstallerHandlerEE8EAF03.Arn>:*"),
        f"{_PROVIDER}/ServiceRole/*",
        "the versions of one named function",
    ),
    AcceptedRules(
        "cdk-nag",
        ("AwsSolutions-L1",),
        _UPLOAD + "/Resource",
        "the runtime is CDK's choice for its own code, tested with its release; it moves with aws-cdk-lib",
    ),
    AcceptedRules(
        "cdk-nag",
        ("AwsSolutions-L1",),
        "Delivery/Flux/Installer/Handler/Resource",
        "the runtime is CDK's choice for its own code, tested with its release; it moves with aws-cdk-lib",
    ),
    *(
        AcceptedRules(
            "checkov",
            ("CKV_AWS_115", "CKV_AWS_116", "CKV_AWS_173"),
            path,
            "called by CloudFormation alone, once a deployment, and waited for; its variables are no secrets",
        )
        for path in (f"{_UPLOAD}/Resource", "Delivery/Flux/Installer/*/Resource")
    ),
    AcceptedRules(
        "checkov",
        ("CKV_AWS_117",),
        f"{_UPLOAD}/Resource",
        "it talks to S3 and CloudFormation, and to nothing in the VPC",
    ),
    AcceptedRules(
        "cfn-guard",
        ("cloudwatch_log_group_encrypted_check",),
        "*",
        "CloudWatch encrypts every group with a key of its own; with a key of ours, losing it loses the evidence",
    ),
    AcceptedRules(
        "cfn-guard",
        ("cloudwatch_log_group_retention_period_check",),
        "*",
        "an environment that leaves nothing behind; where data stays, logs are kept for the year that the rule wants",
        disposable=True,
    ),
    AcceptedRules(
        "checkov",
        ("CKV_AWS_158",),
        "*",
        "CloudWatch encrypts every group with a key of its own; with a key of ours, losing it loses the evidence",
    ),
    AcceptedRules(
        "cfn-guard",
        ("kms_create_grant_aws_service_check",),
        "*Key/Resource",
        "the key policy is AWS's default: IAM of the account decides who may use the key",
    ),
    AcceptedRules(
        "cfn-guard",
        ("ec2_launch_template_monitoring_enabled_check",),
        "Cluster/Cluster/SystemNodes/Template/*",
        "Prometheus watches nodes every 30 seconds; detailed monitoring would be paid for and looked at by nobody",
    ),
    AcceptedRules(
        "cfn-guard",
        ("efs_automatic_backups_enabled_check",),
        "ModelCache/Cache/FileSystem/*",
        "every byte of the cache can be downloaded again from where it came",
    ),
    AcceptedRules(
        "cfn-lint",
        ("W3010",),
        "Network/Network/*",
        "zones are stated, since a look-up takes credentials",
    ),
    AcceptedRules(
        "cfn-lint",
        ("W3005",),
        "*",
        "CDK states dependencies that a reference implies already; the order is the same",
    ),
    AcceptedRules(
        "cfn-lint",
        ("W2001",),
        "*",
        "functions name their subnets; the VPC's id goes unused",
    ),
)
"""For the stacks of an environment."""

PIPELINE: Final = (
    AcceptedRules(
        "cdk-nag",
        ("AwsSolutions-S1",),
        "Pipeline/Artifacts/*",
        "the roles of one pipeline reach it, and CodePipeline keeps a record of every execution and its artifacts",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_logging_enabled_check",),
        "Pipeline/Artifacts/*",
        "the roles of one pipeline reach it, and CodePipeline keeps a record of every execution and its artifacts",
    ),
    AcceptedRules(
        "checkov",
        ("CKV_AWS_18",),
        "Pipeline/Artifacts/*",
        "the roles of one pipeline reach it, and CodePipeline keeps a record of every execution and its artifacts",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_event_notifications_enabled_check",),
        "Pipeline/Artifacts/*",
        "CodePipeline reads what it has written itself; nothing waits for an event",
    ),
    AcceptedRules(
        "cfn-guard",
        ("s3_bucket_object_lock_enabled_check",),
        "Pipeline/Artifacts/*",
        "artifacts are made again from the commit; they leave after 90 days",
    ),
    AcceptedRules(
        "cdk-nag",
        wild("<Artifacts82DD59A1.Arn>/*"),
        "Pipeline/Pipeline/*/DefaultPolicy/Resource",
        "objects of one named bucket, whose keys CodePipeline makes up for each execution",
    ),
    AcceptedRules(
        "cdk-nag",
        wild(
            "arn:aws:cloudformation:{region}:{account}:stack/CDKToolkit/*",
            "arn:aws:cloudformation:{region}:{account}:stack/modelyard-pipeline/*",
        ),
        "Pipeline/Pipeline/UpdatePipeline/SelfMutation/*",
        "two stacks by name; CloudFormation appends an id that nobody knows before it makes them",
    ),
)
"""For the stack of the pipeline."""

SHIPPED: Final[tuple[AcceptedRules, ...]] = (*ENVIRONMENT, *PIPELINE)
"""The acknowledgements that this repository's environments need."""

ACKNOWLEDGEMENTS: Final[tuple[AcceptedRules, ...]] = (*ENVIRONMENT, *OPTIONS, *PIPELINE)


@dataclass(frozen=True)
class Verdict:
    """The findings of some stacks: open findings, and the acknowledgements of the others."""

    open: tuple[Violation, ...]
    accepted: tuple[tuple[Violation, AcceptedRules], ...]


def judge(violations: Iterable[Violation], place: Place) -> Verdict:
    """Check `violations` of stacks in one place against the acknowledgements."""
    unaccepted, accepted = [], []
    for violation in sorted(set(violations)):
        covering = [each for each in ACKNOWLEDGEMENTS if each.covers(violation, place)]
        if covering:
            accepted.append((violation, covering[0]))
        else:
            unaccepted.append(violation)
    return Verdict(tuple(unaccepted), tuple(accepted))
