"""Interactive commands start no jsii, no Node and no connection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

COMMANDS = [
    ["validate"],
    ["plan", "--env", "prod"],
    ["explain", "qwen3-32b-fp8", "--env", "prod"],
    ["estimate", "--model", "Qwen/Qwen3-8B", "--accelerator", "l40s"],
    ["size", "qwen3-32b-fp8", "--env", "prod"],
    ["catalog", "instances", "--env", "prod"],
    ["schema", "--env", "prod"],
]

# Runs the commands in one fresh interpreter, refuses processes and sockets, and looks at the modules after
# each.
_PROBE = """
import contextlib, io, json, sys

def refuse(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.fork") or event.startswith("socket."):
        raise RuntimeError(event)

sys.addaudithook(refuse)
from modelyard.cli.main import main

report = []
for command in json.loads(sys.argv[1]):
    sys.argv = ["modelyard", *command]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    loaded = sorted({"aws_cdk", "cdk8s", "constructs", "jsii"} & set(sys.modules))
    report.append([command[0], code, loaded])
print(json.dumps(report))
"""


def test_pure_commands_load_no_jsii_and_open_no_socket() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _PROBE, json.dumps(COMMANDS)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "MODELYARD_CRDS"},  # which renders
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [[command[0], 0, []] for command in COMMANDS]


def test_the_commands_start_without_aiconfigurator_boto3_and_lightkube() -> None:
    """The dependencies of the first take seconds to import; the others are extras that most commands never
    need."""
    heavy = {"pandas", "aiconfigurator", "boto3", "botocore", "lightkube", "httpx2"}
    code = f"import sys, modelyard.cli.main; print({heavy} & set(sys.modules))"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "set()"
