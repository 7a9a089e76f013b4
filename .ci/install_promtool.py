"""Install promtool into .tools for the tests of alert rules. If it cannot be installed, the tests are
skipped, and this says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / ".tools" / "promtool"
PACKAGE = "prometheus"  # Debian's, which carries promtool; PyPI and npm have no package of it


def main() -> int:
    if TARGET.exists() or shutil.which("promtool"):
        return 0
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print("no promtool: alert rules are not tried; install your system's prometheus package")
        return 0
    folder = TARGET.parent / "prometheus.deb"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:  # downloaded and unpacked, not installed: a test needs no running Prometheus
        subprocess.run(["apt-get", "-qq", "update"], check=True, capture_output=True)
        subprocess.run(["apt-get", "-qq", "download", PACKAGE], check=True, capture_output=True, cwd=folder)
        [package] = folder.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True, capture_output=True)
        shutil.copy(folder / "usr" / "bin" / "promtool", TARGET)
    except (subprocess.CalledProcessError, ValueError, OSError) as error:
        print(f"no promtool: alert rules are not tried; apt-get could not fetch {PACKAGE}: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
