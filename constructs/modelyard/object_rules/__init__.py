"""Rendered objects as plain data: the rules that they keep, and the definitions of custom resources that they
meet."""

from modelyard.object_rules.rules import check_objects

__all__ = ["check_objects"]
