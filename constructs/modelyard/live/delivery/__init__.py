"""The rendered tree on its way to the bucket that Flux reads, without CDK."""
