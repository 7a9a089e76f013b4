"""A model's pods, workloads, autoscaling and weights."""
