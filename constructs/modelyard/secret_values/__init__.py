"""Detects secret values in files and messages, by shape, name or randomness.

Detection is offline: only the value's text counts.
"""

from modelyard.secret_values.documents import Suspect, mask_key, suspects, without
from modelyard.secret_values.names import is_harmless, names_a_secret
from modelyard.secret_values.randomness import random_values
from modelyard.secret_values.settings import settings
from modelyard.secret_values.shapes import HIDDEN, Sighting, mask, sightings, with_anchors
from modelyard.secret_values.shown import shown

__all__ = [
    "HIDDEN",
    "Sighting",
    "Suspect",
    "is_harmless",
    "mask",
    "mask_key",
    "names_a_secret",
    "random_values",
    "settings",
    "shown",
    "sightings",
    "suspects",
    "with_anchors",
    "without",
]
