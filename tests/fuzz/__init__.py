"""Fuzzed input for every reader of untrusted data; `make fuzz` runs it, guided by coverage."""
