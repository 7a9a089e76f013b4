"""Install promtool and amtool into .tools for the tests of alert rules and receivers. If one cannot be
installed, its tests are skipped, and this says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / ".tools"
PACKAGES = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}  # Debian's; PyPI and npm have none


def main() -> int:
    missing = {
        tool: package
        for tool, package in PACKAGES.items()
        if not (TOOLS / tool).exists() and not shutil.which(tool)
    }
    if missing and (os.geteuid() != 0 or not shutil.which("apt-get")):
        print(
            f"no {', '.join(missing)}: alert rules and receivers are not tried; install your system's packages"
        )
    elif missing:
        install(missing)
    return 0


def install(missing: dict[str, str]) -> None:
    folder = TOOLS / "prometheus.deb"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:  # downloaded and unpacked, not installed: a test needs no running Prometheus
        subprocess.run(["apt-get", "-qq", "update"], check=True, capture_output=True)
        for tool, package in missing.items():
            subprocess.run(
                ["apt-get", "-qq", "download", package], check=True, capture_output=True, cwd=folder
            )
            [archive] = folder.glob(f"{package}_*.deb")
            subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True, capture_output=True)
            shutil.copy(folder / "usr" / "bin" / tool, TOOLS / tool)
    except (subprocess.CalledProcessError, ValueError, OSError) as error:
        print(f"not all of {', '.join(missing)} could be fetched: what they check is not tried: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
