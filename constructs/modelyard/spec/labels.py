"""Kubernetes labels and AWS tags, by the rules of their APIs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator

from modelyard.secret_values import shown

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_TAG_SIGNS = frozenset(" _.:/=+-@")


@lru_cache(maxsize=1 << 16)  # the objects of a thousand models share few keys
def is_qualified_name(text: str) -> bool:
    """Whether `text` is a valid label or annotation key (apimachinery's IsQualifiedName)."""
    domain, slash, name = text.rpartition("/")
    if slash and (len(domain) > 253 or not _DOMAIN.fullmatch(domain)):
        return False
    return bool(_NAME.fullmatch(name))


@lru_cache(maxsize=1 << 16)
def is_label_value(text: str) -> bool:
    """Whether `text` is a valid label value (apimachinery's IsValidLabelValue)."""
    return not text or bool(_NAME.fullmatch(text))


def _label_key(text: str) -> str:
    if not is_qualified_name(text):
        raise ValueError(
            f"{shown(text)} is no key of a label: [DOMAIN/]NAME of letters, digits, '-', '_' and '.', at most 63 characters"
        )
    return text


def _label_value(text: str) -> str:
    if not is_label_value(text):
        raise ValueError(
            "is no value of a label: letters, digits, '-', '_' and '.' between letters or digits, at most 63 characters"
        )
    return text


def _tag(text: str, *, most: int, least: int) -> str:
    strange = sorted({sign for sign in text if not sign.isalnum() and sign not in _TAG_SIGNS})
    if strange or not least <= len(text) <= most:
        raise ValueError(
            f"is no part of a tag: {least} to {most} letters, digits, spaces and _ . : / = + - @"
        )
    return text


def _tag_key(text: str) -> str:
    if text.lower().startswith("aws:"):
        raise ValueError("AWS keeps tags that begin with aws: for itself")
    return _tag(text, least=1, most=128)


def _tag_value(text: str) -> str:
    return _tag(text, least=0, most=256)


LabelKey = Annotated[str, AfterValidator(_label_key)]
LabelValue = Annotated[str, AfterValidator(_label_value)]
TagKey = Annotated[str, AfterValidator(_tag_key)]
TagValue = Annotated[str, AfterValidator(_tag_value)]
