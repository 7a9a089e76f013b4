"""What all models of an environment share: namespace, nodes, cache, secrets, shares of teams."""
