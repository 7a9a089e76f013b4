"""Parts shared by all pods."""
