"""The examples of `modelyard endpoint`, run as they are printed against a server that is there."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from modelyard.cli.call_examples import curl, python
from modelyard.cli.endpoints import API_KEY
from modelyard.objects.traffic.addresses import addresses
from modelyard.planning import ModelPlan
from modelyard.spec import Environment


def answers(plan: ModelPlan, environment: Environment, url: str, key: str | None) -> tuple[str, str]:
    """What curl and the Python client print, asked at `url` in place of the port-forward."""
    [forward] = [each for each in addresses(plan, environment) if each.way == "forward"]
    here = replace(forward, url=url)
    variables = {**os.environ, **({API_KEY: key} if key else {})}
    shell = curl(here, plan.model.task).replace("curl ", "curl --silent --show-error ", 1)
    printed = [
        subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        for command in (["sh", "-c", shell], [sys.executable, "-c", python(here, plan.model.task)])
    ]
    assert [(run.returncode, run.stderr) for run in printed] == [(0, "")] * 2, printed
    return printed[0].stdout, printed[1].stdout
