"""Calls to AWS, a cluster or the Hub: account checks before a deploy, deployed state, delivery, and teardown.

    api             all connections: AWS through boto3, clusters through lightkube; why a call failed
    eks, parameters, stacks   reads of EKS, Parameter Store and CloudFormation, for the packages below
    account         checks of an account, the values of its secrets, and its prices
    checkpoints     facts of a checkpoint: from the Hub, a bucket or a folder to its record
    clusters        draining a cluster, its leftovers, and upgrades to the next minor
    delivery        the rendered tree against the bucket that Flux reads
    verification    whether an environment is up as deployed

boto3, lightkube and huggingface_hub are imported where a connection is opened, not before: other commands
start without them.
"""
