"""An AWS account: what it has and lacks for an environment, the values of its secrets, and its prices."""
