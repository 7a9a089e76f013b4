"""An AWS account: prerequisites of an environment, the values of its secrets, and its prices."""
