"""CDK constructs for the AWS half: network, cluster, Karpenter, model cache, secrets and delivery."""
