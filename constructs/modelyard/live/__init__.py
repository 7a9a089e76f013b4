"""Calls to AWS or a cluster: account checks before a deploy, deployed state, delivery, and teardown.

    api             all connections: AWS through boto3, clusters through lightkube; why a call failed
    eks, parameters, stacks   reads of EKS, Parameter Store and CloudFormation, for the packages below
    account         checks of an account, the values of its secrets, and its prices
    clusters        draining a cluster, its leftovers, and upgrades to the next minor
    delivery        the rendered tree against the bucket that Flux reads
    verification    whether an environment is up as deployed

boto3 and lightkube are imported where a connection is opened, not before: other commands start without them.
"""
