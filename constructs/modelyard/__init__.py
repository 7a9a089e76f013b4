"""Modelyard: LLM inference on Amazon EKS as code."""
