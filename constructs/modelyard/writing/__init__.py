"""Atomic file writes that never overwrite other people's files."""

from modelyard.writing.file import write_file
from modelyard.writing.ownership import MARKER, NOTHING, Ownership, tree_files
from modelyard.writing.refusal import NotWritten
from modelyard.writing.tree import Rendering, write_tree_files

__all__ = [
    "MARKER",
    "NOTHING",
    "NotWritten",
    "Ownership",
    "Rendering",
    "tree_files",
    "write_file",
    "write_tree_files",
]
