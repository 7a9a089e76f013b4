"""Rules for rendered objects as plain data, and validation of custom resources against their CRDs."""

from modelyard.object_rules.rules import check_objects

__all__ = ["check_objects"]
