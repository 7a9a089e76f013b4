"""Delivery of the rendered tree to the bucket that Flux reads, without CDK."""
