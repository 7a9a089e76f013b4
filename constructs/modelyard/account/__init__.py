"""An AWS account: what it has and lacks for an environment, the values of its secrets, and its prices.

boto3 is imported where a session is opened, not before: the commands that need no account start without it.
"""
