"""Install uv, at the version and hashes of uv.lock, into .tools/uv: the first step; uv does the rest."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / ".tools" / "uv"


def requirement() -> str:
    """The line for pip, with the hash of every wheel."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    uv = next(package for package in lock["package"] if package["name"] == "uv")
    hashes = " ".join(f"--hash={wheel['hash']}" for wheel in uv["wheels"])
    return f"uv=={uv['version']} {hashes}\n"


def main() -> int:
    try:
        venv.create(TARGET, with_pip=True, clear=True)
    except subprocess.CalledProcessError:
        print(
            "python3 has no ensurepip; install your system's venv package (Debian: python3-venv)",
            file=sys.stderr,
        )
        return 1
    pinned = TARGET / "requirements.txt"
    pinned.write_text(requirement(), encoding="utf-8")
    pip = [str(TARGET / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-qq"]
    return subprocess.run(
        [*pip, "install", "--require-hashes", "--only-binary=:all:", "-r", str(pinned)], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
