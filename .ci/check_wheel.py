"""The wheel holds the library and nothing else: no stacks, no charts, no second `constructs`."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

NEEDED = (
    "modelyard/py.typed",
    "modelyard/live/account/preflight.py",
    "modelyard/hardware/data/account.yaml",
    "modelyard/hardware/data/instance_types.json",
    "modelyard/engines/vllm/releases/0.33.0.json",
    "modelyard/releases/data/releases.yaml",
    "modelyard/secret_values/data/shapes.json",
    "modelyard/engines/vllm/memory.yaml",
    "modelyard/checkpoints/data/architectures.json",
    "modelyard/checkpoints/data/families.yaml",
    "modelyard/localcloud/server.py",
)

MANUAL = ".data/data/share/man/man1/modelyard.1"
"""The only file beside the library: installers put it below the environment's share/man."""


def main(folder: str) -> int:
    (wheel,) = Path(folder).glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if not name.endswith(("/", MANUAL))}
    strange = {top for top in tops if top != "modelyard" and not top.endswith(".dist-info")}
    missing = [name for name in NEEDED if name not in names]
    if not any(name.endswith(MANUAL) for name in names):
        missing.append(MANUAL)
    for problem in (
        *(f"must not hold {top}" for top in sorted(strange)),
        *(f"lacks {name}" for name in missing),
    ):
        print(f"{wheel.name} {problem}", file=sys.stderr)
    if not strange and not missing:
        print(f"{wheel.name}: {len(names)} files, all of them modelyard's")
    return 1 if strange or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
