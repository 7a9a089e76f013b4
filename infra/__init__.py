"""Thin stacks, one concern a file; `infra.platform` puts them together for an environment."""
