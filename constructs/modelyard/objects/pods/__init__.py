"""What all pods have in common."""
