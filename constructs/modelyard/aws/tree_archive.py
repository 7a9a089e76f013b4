"""The rendered tree as one file."""

from __future__ import annotations

import zipfile
from pathlib import Path

from modelyard.writing import tree_files

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first date that the format knows: the archive of a tree says nothing of when it was made."""


def archive(tree: Path, file: Path) -> Path:
    """Write `tree` into the zip `file`: the same tree always to the same bytes.

    CDK would copy a folder file by file and hash each on the way, which takes seconds for hundreds of models.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archived:
        for name, content in tree_files(tree).items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            archived.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return file
