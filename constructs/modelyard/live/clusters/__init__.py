"""A cluster's later days: upgrades, and taking it down in the order that leaves nothing."""
