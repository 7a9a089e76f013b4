"""Brings one repository at one revision into the model cache. The fetch job runs this file alone, as text.

A partial folder keeps what was downloaded, so a restart resumes; the rename makes a whole folder appear at
once, after sizes and checksums were compared. Exit codes: 3 no access, 4 no such file, 5 no room, 6 damaged.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_PACKAGES = "/tmp/hub"
_NOT_SERVED = ["*.pth", "*.gguf", "*.onnx", "original/*", "metal/*"]


def main() -> None:
    target, marker = Path(os.environ["TARGET"]), os.environ["MARKER"]
    if (target / marker).exists():
        _vocabulary(target)
        print(target, "is complete")
        return
    _install()
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import filter_repo_objects  # type: ignore[attr-defined] # public by its page

    repository, revision = os.environ["REPOSITORY"], os.environ["REVISION"]
    wanted = os.environ.get("FILES")
    choice: dict[str, Any] = (
        {"allow_patterns": wanted.split(",")} if wanted else {"ignore_patterns": _NOT_SERVED}
    )
    partial = target.with_name(target.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    info = _patient(
        repository, lambda: HfApi().model_info(repository, revision=revision, files_metadata=True)
    )
    commit = str(info.sha)
    files = list(filter_repo_objects(info.siblings or [], key=lambda file: file.rfilename, **choice))
    if not files:
        print("no file of", repository, "is", wanted)
        sys.exit(4)
    missing = sum(file.size or 0 for file in files if not (partial / file.rfilename).exists())
    free = shutil.disk_usage(partial).free
    if missing > free:
        print(missing, "bytes to download,", free, "free in the cache")
        sys.exit(5)
    _patient(repository, lambda: snapshot_download(repository, revision=commit, local_dir=partial, **choice))
    for file in files:
        path = partial / file.rfilename
        if path.stat().st_size != file.size or (file.lfs and _sha256(path) != file.lfs.sha256):
            path.unlink()
            print(file.rfilename, "is damaged and was removed; the next run fetches it again")
            sys.exit(6)
    _vocabulary(partial)
    (partial / marker).write_text(commit)
    partial.rename(target)
    print(target, "is complete:", len(files), "files of commit", commit)


def _vocabulary(folder: Path) -> None:
    """Put the file that a library of the engine would download beside the weights, if it needs one."""
    name = os.environ.get("VOCABULARY")
    if not name or (folder / name).exists():
        return
    with urllib.request.urlopen(os.environ["VOCABULARY_URL"], timeout=120) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != os.environ["VOCABULARY_SHA256"]:
        print(name, "is damaged: its checksum is not the one that the engine expects")
        sys.exit(6)
    (folder / name).parent.mkdir(exist_ok=True)
    beside = folder / f"{name}.partial"
    beside.write_bytes(content)
    beside.rename(folder / name)


def _install() -> None:
    """Make the client importable where the image does not have it."""
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", _PACKAGES, os.environ["HUB"]]
        subprocess.run(pip, check=True)
        sys.path.insert(0, _PACKAGES)


def _patient(repository: str, call: Callable[[], T], tries: int = 8) -> T:
    """Ask again where the Hub is busy, as late as it says; five minutes at the most where it says nothing."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError

    for attempt in range(tries):
        try:
            return call()
        except GatedRepoError:
            print("No access to", repository, "- accept its licence at https://huggingface.co/" + repository)
            sys.exit(3)
        except HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status not in (429, 500, 502, 503, 504) or attempt == tries - 1:
                raise
            said = error.response.headers.get("Retry-After", "")
            pause = min(int(said), 600) if said.isdigit() else min(2**attempt * 5, 300)
            print("the Hub answers", status, "- again in", pause, "s", flush=True)
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while piece := content.read(1 << 24):
            digest.update(piece)
    return digest.hexdigest()


if __name__ == "__main__":
    main()
