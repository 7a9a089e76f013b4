"""The rendered tree as one file."""

from __future__ import annotations

import zipfile
from pathlib import Path

from modelyard.writing import tree_files

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest date of the zip format, so that the archive does not depend on when it is made."""


def archive(tree: Path, file: Path) -> Path:
    """Write `tree` into the zip `file`, reproducibly: the same tree gives the same bytes.

    CDK would copy and hash a folder file by file, which takes seconds for hundreds of models.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archived:
        for name, content in tree_files(tree).items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            archived.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return file
