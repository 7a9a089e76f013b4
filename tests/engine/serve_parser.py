"""The installed `vllm serve` parser as a process: per line, a JSON list of arguments in and a JSON answer
out.

Runs with the Python of .venv-vllm. Importing vLLM takes half a minute, so one process answers for all tests.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import sys
from typing import Any

# Answers get the real standard output; whatever vLLM prints while it is imported goes to standard error.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import vllm.envs  # type: ignore[import-not-found]
from vllm.entrypoints.cli.run_batch import RunBatchSubcommand  # type: ignore[import-not-found]
from vllm.entrypoints.cli.serve import ServeSubcommand  # type: ignore[import-not-found]
from vllm.model_executor.models import ModelRegistry  # type: ignore[import-not-found]
from vllm.reasoning import ReasoningParserManager  # type: ignore[import-not-found]
from vllm.tool_parsers import ToolParserManager  # type: ignore[import-not-found]
from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found]

# As vllm.entrypoints.cli.main builds them.
parser = FlexibleArgumentParser(prog="vllm")
command = ServeSubcommand()
commands = parser.add_subparsers(dest="subparser")
serve = command.subparser_init(commands)
RunBatchSubcommand().subparser_init(commands)


def plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return repr(value)


def tell(answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer, default=plain) + "\n")
    answers.flush()


def parse(arguments: list[str]) -> dict[str, Any]:
    """Values, or what refuses them; both when single flags are right and only their combination is not.
    Arguments that begin with `run-batch` are that command's."""
    batch = arguments[:1] == ["run-batch"]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            namespace = parser.parse_args(arguments if batch else ["serve", *arguments])
    except SystemExit:
        return {"refused": said.getvalue().partition(" error: ")[2].strip()}
    except Exception as error:  # noqa: BLE001 - `--config` reads its file while it parses
        return {"refused": repr(error)}
    answer: dict[str, Any] = {"values": dict(vars(namespace))}
    try:
        if not batch:
            command.validate(namespace)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends `vllm serve`
        answer["refused"] = str(error)
    return answer


def facts() -> dict[str, Any]:
    options = {
        option.removeprefix("--"): {
            "dest": action.dest,
            "choices": None if action.choices is None else [c for c in action.choices if c is not None],
            "many": action.nargs in ("+", "*"),
        }
        for action in serve._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    return {
        "options": options,
        "version": vllm.__version__,
        "architectures": sorted(ModelRegistry.get_supported_archs()),
        "aliases": [[o.removeprefix("--") for o in action.option_strings] for action in serve._actions],
        "tool_parsers": ToolParserManager.list_registered(),
        "reasoning_parsers": ReasoningParserManager.list_registered(),
        "variables": sorted(vllm.envs.environment_variables),
    }


tell(facts())
for line in sys.stdin:
    tell(parse(json.loads(line)))
