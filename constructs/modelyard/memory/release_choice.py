"""The engine and release that serve a model."""

from __future__ import annotations

from modelyard.engines import Release, newest_release, release
from modelyard.engines.engine import Engine
from modelyard.engines.registry import named_engine, places, usual_engine
from modelyard.findings import Finding
from modelyard.hardware import Accelerator
from modelyard.spec.model import Model


def engine_of(model: Model, accelerator: Accelerator) -> Engine:
    """The engine in the model file, or the default for its format and accelerator."""
    if model.engine.name != "auto":
        return named_engine(model.engine.name, model.engine.backend)
    return usual_engine(accelerator, gguf=bool(model.model.file))


def engine_for(model: Model, accelerator: Accelerator) -> Release | Finding:
    """The engine release that serves `model` on `accelerator`."""
    engine = engine_of(model, accelerator)
    name = engine.name
    if not engine.runs_on(accelerator):
        return Finding(
            "ENG001",
            f"engine {name} does not run on {accelerator.name}",
            f"use {places()}",
            subject=model.name,
            field=("engine", "name") if model.engine.name != "auto" else ("accelerator",),
        )
    if (found := release(name, model.engine.version)) is None:
        return Finding(
            "ENG001",
            f"no facts about {name} {model.engine.version}",
            f"use {newest_release(name).version}, or leave engine.version out",
            subject=model.name,
            field=("engine", "version"),
        )
    return found
