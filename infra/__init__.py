"""Thin stacks, one concern per file; `infra.platform` assembles them for an environment."""
