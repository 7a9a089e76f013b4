"""What holds of every pool and every model, against checks written independently of the planner."""
