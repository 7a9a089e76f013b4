"""What must not stand in a file or a message: values of secrets, known by their shape, their name or their
randomness.

Nothing here asks anybody: a value is judged by what it looks like.
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
