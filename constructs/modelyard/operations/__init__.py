"""Day two: taking an environment down in the order that leaves nothing, upgrades, and delivery without CDK.

Needs the extras `account` and `cluster` where a command asks AWS or the cluster.
"""
