"""Client of the installed `vllm serve` parser."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.engine.installed import PYTHON, ROOT

PATH = "/models/x"


@dataclass(frozen=True)
class Refused:
    """What the parser said instead of values."""

    why: str


class ServeParser:
    """The real parser, in a process of its own."""

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            [PYTHON, ROOT / "tests" / "engine" / "serve_parser.py"],
            env={"PATH": os.environ["PATH"], "HOME": str(home), "VLLM_NO_USAGE_STATS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.facts = self._answer()
        self.options: dict[str, dict[str, Any]] = self.facts["options"]

    def __call__(self, *arguments: str) -> dict[str, Any] | Refused:
        """All values as `vllm serve` goes on with them."""
        answer = self._ask(arguments)
        return Refused(answer["refused"]) if "refused" in answer else answer["values"]

    def value(self, flag: str, *arguments: str) -> Any:
        """What `flag` is after `arguments`, whether or not it needs another flag beside it."""
        answer = self._ask((PATH, *arguments))
        return (
            answer["values"][self.options[flag]["dest"]] if "values" in answer else Refused(answer["refused"])
        )

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _ask(self, arguments: tuple[str, ...]) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"the parser's process ended with {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer


def json_type(parser: ServeParser, name: str) -> str:
    """The type in our table's words, from what the parser accepts: its own type functions say little."""

    def accepts(value: str) -> bool:
        return not isinstance(parser.value(name, f"--{name}={value}"), Refused)

    if choices := parser.options[name]["choices"]:
        return "integer" if isinstance(choices[0], int) else "string"
    if accepts("name=/path"):
        either = parser.value(name, f'--{name}={{"a":1}}')
        return "any" if isinstance(either, dict) else "string"
    if not isinstance(parser.value(name, f"--{name}"), Refused):
        return "boolean"
    if accepts("{}"):
        return "object"
    return "number" if accepts("0.5") else "integer"
