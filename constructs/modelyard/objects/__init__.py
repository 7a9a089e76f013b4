"""Kubernetes objects as plain data, made of a plan: `composition` says which, `rendering` writes them."""
