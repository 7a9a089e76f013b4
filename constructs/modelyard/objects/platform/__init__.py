"""Objects shared by all models of an environment: namespace, nodes, cache, secrets, team quotas."""
