"""Kubernetes objects as plain data, made from a plan: `composition` selects them, `rendering` writes them."""
