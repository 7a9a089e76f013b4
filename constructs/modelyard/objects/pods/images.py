"""Images and packages of several kinds of Jobs."""

from __future__ import annotations

from typing import Final

PYTHON: Final = "docker.io/library/python:3.13.7-slim"
BOTO3: Final = "boto3==1.44.5"
