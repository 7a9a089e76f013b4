"""Whether an environment stands as it was deployed, read through AWS APIs alone."""
