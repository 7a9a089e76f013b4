"""Checks of the templates: our own rules, third-party checkers, and the accepted findings."""
