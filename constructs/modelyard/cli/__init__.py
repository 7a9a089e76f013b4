"""The `modelyard` command. Nothing here imports aws_cdk, cdk8s or constructs: the pure commands start in a
second."""
