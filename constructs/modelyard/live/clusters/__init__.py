"""Day-2 operations of a cluster: upgrades, and draining it in the order that leaves nothing behind."""
