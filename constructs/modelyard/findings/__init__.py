"""The registry of checks: every problem Modelyard can report has a code, a cause, a fix and a page."""

from modelyard.findings.finding import Finding, Location, Severity, worst
from modelyard.findings.registry import CHECKS, Check, check

__all__ = ["CHECKS", "Check", "Finding", "Location", "Severity", "check", "worst"]
