"""The organisation's charts: Python code in the project, configured in `modelyard.yaml`, that adds or
replaces objects."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from modelyard.failure import Failure
from modelyard.spec.loading import load_settings

if TYPE_CHECKING:
    from modelyard.objects.composition import Composition, Hook

SETTINGS = Path("modelyard.yaml")
COMPOSE = "compose"
_EXTRA = ("cdk8s", "constructs")


class ChartsError(Failure):
    """The project's charts cannot be used; the text says where and why."""


def project_hook(root: Path = Path()) -> Hook | None:
    """The composition hook of the project at `root`; None if `modelyard.yaml` names no charts.

    The package is loaded under its own name, so that imports between its modules work; `sys.path` is not
    changed.

    Raises:
        ChartsError: the settings cannot be read, or the charts cannot be loaded.
    """
    settings, findings = load_settings(root / SETTINGS)
    if settings is None:
        raise ChartsError("\n".join(map(str, findings)))
    return None if settings.charts is None else _hook(root / settings.charts)


def _hook(path: Path) -> Hook:
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        raise ChartsError(
            f"{SETTINGS}: charts: there is no {file}; name a Python package or file of the project"
        )
    module = _guarded(path, lambda: _loaded(path, file))
    compose = getattr(module, COMPOSE, None)
    if not callable(compose):
        raise ChartsError(
            f"{file}: no function {COMPOSE}; define `def {COMPOSE}(composition: Composition) -> None`"
        )
    hook: Hook = compose

    def guarded(composition: Composition) -> None:
        from modelyard.objects.composition import check_usable  # lazy: only projects with charts need it

        def composed() -> None:
            hook(composition)
            check_usable(composition.folders)

        _guarded(path, composed)

    return guarded


def _loaded(path: Path, file: Path) -> ModuleType:
    name = path.stem
    if (there := sys.modules.get(name)) is not None and getattr(there, "__file__", None) == str(
        file.resolve()
    ):
        return there
    places = [str(path.resolve())] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, file.resolve(), submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise ChartsError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    if name in sys.stdlib_module_names or _is_installed(there):
        raise ChartsError(f"{SETTINGS}: charts: {path} has the name of the Python module {name}; rename it")
    for loaded in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
        del sys.modules[loaded]  # another project's
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_installed(module: ModuleType | None) -> bool:
    """Whether others import it: it is not the code of a project."""
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(sys.prefix)


T = TypeVar("T")


def _guarded(path: Path, do: Callable[[], T]) -> T:
    """Turn errors in the organisation's code into a message with file and line, without our traceback."""
    try:
        return do()
    except ChartsError:
        raise
    except Failure as error:
        raise ChartsError(f"{path}: {error}") from error
    except ModuleNotFoundError as error:
        if error.name in _EXTRA:
            raise ChartsError(
                f"{path}: {error.name} is not installed; it comes with the extra modelyard[k8s]"
            ) from error
        raise ChartsError(f"{_place(path, error)}: {error}") from error
    except Exception as error:
        raise ChartsError(f"{_place(path, error)}: {type(error).__name__}: {error}") from error


def _place(path: Path, error: Exception) -> str:
    """File and line of the innermost frame below `path`."""
    inside = str(path.resolve())
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(inside)]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(path)
