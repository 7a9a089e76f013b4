"""Clients of a served model: checks of what it answers, and load that measures how fast.

A job in the cluster runs these very modules from a ConfigMap, without the rest of Modelyard: they import the
standard library, each other, and what their job installs.
"""
