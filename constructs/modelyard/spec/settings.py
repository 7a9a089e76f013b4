"""`modelyard.yaml`: settings of the project, beside its models and environments; most projects need none."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field, field_validator

from modelyard.spec.document import Document


class ProjectSettings(Document):
    """Settings for all environments of a project."""

    charts: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """A Python package or file of the project whose `compose` adds or replaces objects; default: Modelyard's
    composition as it is."""

    @field_validator("charts")
    @classmethod
    def _inside(cls, value: str | None) -> str | None:
        if value is not None:
            path = PurePosixPath(value)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError("must lie in the project: a path without '..', such as charts")
        return value
