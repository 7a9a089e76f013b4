"""The list of commands: its help, shown without importing them, equals their own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from modelyard.cli.commands import COMMANDS
from modelyard.cli.main import app


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says_of_itself(name: str) -> None:
    group = typer.main.get_group(app)
    command = group.get_command(typer.Context(group), name)
    assert command is not None
    assert (command.help or "").splitlines()[0] == COMMANDS[name]


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys\nfrom modelyard.cli.main import main\nsys.argv = ['modelyard', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print({'pydantic', 'ruamel', 'rich', 'yaml'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in COMMANDS)
    assert done.stderr.strip() == "set()"
