"""Build a Kubernetes control plane, Flux and their CRDs from Go modules, for `tests/cluster` alone.

No package registry has these programs ready-made. They are built once into a cache outside the checkout, one
folder a group, named after what it was built from. `.tools/control-plane.json` tells the tests where they
are; without Go that file is not there, and this says what is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "tests" / "cluster" / "tools"
PROGRAMS = ROOT / ".tools" / "control-plane.json"
CACHE_VARIABLE = "MODELYARD_CONTROL_PLANE"  # another folder for the cache

KUBERNETES = "1.36.3"
_VERSION = "k8s.io/component-base/version.git"  # else the server says v0.0.0, and controllers refuse it
_KARPENTER = "github.com/aws/karpenter-provider-aws"
_NO_SYMBOLS = "-s -w"


@dataclass(frozen=True)
class Group:
    """One Go module below tests/cluster/tools; `programs`: name to package, `crds`: module to its folder.

    `wanted` is false for what no test starts yet: `--all` builds it too.
    """

    name: str
    programs: dict[str, str] = field(default_factory=dict)
    crds: dict[str, str] = field(default_factory=dict)
    tags: str = ""
    linked: str = _NO_SYMBOLS
    wanted: bool = True

    @property
    def folder(self) -> Path:
        return MODULES / self.name


def _flux(name: str, *, build: bool = True) -> Group:
    module = f"github.com/fluxcd/{name}"
    return Group(name, {name: module} if build else {}, {module: "config/crd/bases"})


GROUPS = (
    Group("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Group(
        "kubernetes",
        {
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
        },
        tags="selinux,notest,grpcnotrace",
        linked=f"{_NO_SYMBOLS} -X {_VERSION}Version=v{KUBERNETES} -X {_VERSION}Major=1 -X {_VERSION}Minor=36",
    ),
    _flux("kustomize-controller"),
    _flux("source-controller"),
    _flux("helm-controller", build=False),
    Group("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, wanted=False),
    # 0.9.0, the release before the one that is rendered for: the module proxy refuses 0.10.0.
    Group("lws", {"lws": "sigs.k8s.io/lws/cmd"}, {"sigs.k8s.io/lws": "config/crd/bases"}),
    Group(
        "karpenter",
        {"karpenter": f"{_KARPENTER}/cmd/controller"},
        {_KARPENTER: "pkg/apis/crds"},
    ),
)


class CannotBuild(Exception):
    """The machine lacks something; nobody is to blame, and the tests are left out."""


def cache() -> Path:
    """Where the built programs are kept."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "modelyard" / "control-plane"


def go(*args: str | Path, folder: Path, log: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the machine's own Go, which neither fetches another one nor changes a go.mod."""
    settings = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off", "CGO_ENABLED": "0"}
    done = subprocess.run(
        ["go", *args], cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"go {' '.join(map(str, args))}\n{done.stderr}")
    return done


def go_version(groups: Sequence[Group]) -> str:
    """The machine's Go, such as go1.26.8.

    Raises:
        CannotBuild: there is none, or one of the modules needs a newer one.
    """
    texts = [(group.folder / "go.mod").read_text(encoding="utf-8") for group in groups]
    found = [re.search(r"^go (\S+)$", text, re.MULTILINE) for text in texts]
    needed = max(_numbers(line[1]) for line in found if line)
    how = f"install Go {'.'.join(map(str, needed))} or newer (https://go.dev/dl)"
    if shutil.which("go") is None:
        raise CannotBuild(f"go is not found; {how}")
    version = go("env", "GOVERSION", folder=ROOT).stdout.strip()
    if _numbers(version) < needed:
        raise CannotBuild(f"{version} is too old; {how}")
    return version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def key(group: Group, version: str) -> str:
    """Names the folder: another one for other modules, settings or another Go."""
    made_of = [version, repr(group)]
    made_of += [(group.folder / name).read_text(encoding="utf-8") for name in ("go.mod", "go.sum")]
    digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()
    return f"{group.name}-{digest[:12]}"


def built(group: Group, target: Path) -> bool:
    """Whether `target` is whole: it is renamed into its place when it is."""
    return target.is_dir() and all((target / name).is_file() for name in group.programs)


def build(group: Group, target: Path) -> Iterator[str]:
    """Make `target`; yields a line for each program, with the seconds that it took.

    Raises:
        CannotBuild: the sources cannot be had.
        RuntimeError: they do not compile.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{group.name}-", dir=target.parent))
    try:
        log = work / "build.log"
        for module, folder in group.crds.items():
            _copy_definitions(group, module, folder, work / "crds")
        for name, package in group.programs.items():
            began = time.monotonic()
            sources = go("list", "-deps", package, folder=group.folder, log=log)
            if sources.returncode:
                raise CannotBuild(f"{name}: Go cannot get its sources: {_last_line(sources.stderr)}")
            fetched = time.monotonic()
            flags = [
                "-trimpath",
                f"-ldflags={group.linked}",
                *([f"-tags={group.tags}"] if group.tags else []),
            ]
            made = go("build", *flags, "-o", work / name, package, folder=group.folder, log=log)
            if made.returncode:
                raise RuntimeError(f"{name} does not build:\n{made.stderr[-3000:]}")
            yield f"built {name}: {fetched - began:.0f} s for its sources, {time.monotonic() - fetched:.0f} s"
        if target.exists():  # another run was faster, or a program was removed from it
            shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _copy_definitions(group: Group, module: str, folder: str, target: Path) -> None:
    """The module's CRDs, as its own sources have them."""
    answer = go("mod", "download", "-json", module, folder=group.folder)
    if answer.returncode:
        raise CannotBuild(f"{module}: Go cannot get its sources: {_last_line(answer.stdout + answer.stderr)}")
    target.mkdir(exist_ok=True)
    for path in sorted((Path(json.loads(answer.stdout)["Dir"]) / folder).glob("*.yaml")):
        (target / path.name).write_bytes(path.read_bytes())  # without the read-only mode of Go's cache


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1].strip()


def install(groups: Sequence[Group]) -> int:
    """Build what is missing, and write where everything is."""
    version = go_version(groups)
    targets = {group.name: cache() / key(group, version) for group in groups}
    missing = [group for group in groups if not built(group, targets[group.name])]
    if missing:
        print("building a control plane: twenty-five minutes on two cores, the first time", flush=True)
    for group in missing:
        for line in build(group, targets[group.name]):
            print(line, flush=True)
    found = {
        "programs": {name: str(targets[group.name] / name) for group in groups for name in group.programs},
        "crds": [str(targets[group.name] / "crds") for group in groups if group.crds],
    }
    PROGRAMS.parent.mkdir(exist_ok=True)
    PROGRAMS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


def main(arguments: Sequence[str]) -> int:
    everything = "--all" in arguments
    try:
        return install([group for group in GROUPS if group.wanted or everything])
    except CannotBuild as reason:
        PROGRAMS.unlink(missing_ok=True)
        print(f"no control plane: {reason}")
        return 0
    except RuntimeError as problem:
        PROGRAMS.unlink(missing_ok=True)
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
