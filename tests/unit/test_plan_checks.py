"""The tuple of checks contains every check."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import FunctionType

from modelyard.planning import checks


def public_functions(module: str) -> set[tuple[str, str]]:
    """Functions that a module of checks defines itself."""
    found = vars(import_module(module)).values()
    functions = [each for each in found if isinstance(each, FunctionType) and each.__module__ == module]
    return {(module, each.__name__) for each in functions if not each.__name__.startswith("_")}


def test_every_function_of_a_module_of_checks_is_registered_once() -> None:
    modules = [f"{checks.__name__}.{each.name}" for each in iter_modules(checks.__path__)]
    written = {each for name in modules if not name.endswith(".proposal") for each in public_functions(name)}
    registered = [(check.__module__, check.__name__) for check in checks.PLAN_CHECKS]

    assert set(registered) == written
    assert len(registered) == len(written)
