"""What asks AWS or a cluster: whether an account has what a deploy needs, what stands, what is delivered, and
its end.

    api             the one way in: an account by boto3, a cluster by lightkube, why there is no answer
    eks, parameters, stacks   what EKS, Parameter Store and CloudFormation say, for all rooms below
    account         what an account has and lacks, the values of its secrets, and its prices
    clusters        how a cluster is emptied, what it leaves behind, and the way to its next minor
    delivery        the rendered tree against the bucket that Flux reads
    verification    whether an environment stands as it was deployed

boto3 and lightkube are imported where a connection is opened, not before: other commands start without them.
"""
