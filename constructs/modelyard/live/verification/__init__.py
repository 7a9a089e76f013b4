"""Whether an environment is up as deployed, read only through AWS APIs."""
