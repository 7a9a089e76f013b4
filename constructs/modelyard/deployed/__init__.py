"""What an account says of an environment that was deployed to it, read through AWS APIs alone."""
