"""Properties of every pool and every model, checked by code written independently of the planner."""
