"""What a pod's container runs, as a process of this machine: its own command, variables and files.

Servers of models and the Jobs that ask them alone: there are no images here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.addresses import here
from tests.cluster.api import Api, Object
from tests.cluster.programs import ROOT

_COMPONENT = "app.kubernetes.io/component"


@dataclass(frozen=True)
class Command:
    """A process to start."""

    executable: Path
    arguments: list[str]
    variables: dict[str, str]


def component(pod: Object) -> str:
    return str(pod["metadata"].get("labels", {}).get(_COMPONENT, ""))


def played_engine(pod: Object, address: str) -> Command:
    """The played engine with the rendered arguments of the container."""
    container = pod["spec"]["containers"][0]
    arguments = ["-m", "tests.cluster.engine", *container.get("args", [])]
    variables = {"PYTHONPATH": str(ROOT), "POD_IP": here(address)}
    return Command(Path(sys.executable), arguments, variables)


def program(
    api: Api, pod: Object, folder: Path, *, account: Mapping[str, str], url: Callable[[str], str]
) -> Command:
    """The Python program of a Job that asks a model, from its ConfigMap.

    Played are its image, which is this Python with its packages, DNS (`url`) and its role (`account`).
    """
    container = pod["spec"]["containers"][0]
    folders = {mount: str(path) for mount, path in _volumes(api, pod, container, folder).items()}
    variables = {each["name"]: _value(pod, each) for each in container.get("env", [])}
    variables = {name: url(folders.get(value, value)) for name, value in variables.items()}
    arguments = [*container["command"][1:], *container.get("args", [])]
    return Command(Path(sys.executable), arguments, {**variables, "PACKAGES": "", **account})


def _volumes(api: Api, pod: Object, container: Object, folder: Path) -> dict[str, Path]:
    """Mount path to a folder with the volume's files."""
    volumes = {each["name"]: each for each in pod["spec"].get("volumes", [])}
    found = {}
    for mount in container.get("volumeMounts", []):
        found[mount["mountPath"]] = place = folder / mount["name"]
        place.mkdir(parents=True, exist_ok=True)
        source = volumes[mount["name"]].get("configMap")
        if source is None:
            continue
        item = api.get("v1", "ConfigMap", source["name"], pod["metadata"]["namespace"])
        assert item is not None, source["name"]
        files = source.get("items") or [{"key": key, "path": key} for key in item["data"]]
        for each in files:
            path = place / each["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(item["data"][each["key"]], encoding="utf-8")
    return found


def _value(pod: Object, variable: dict[str, Any]) -> str:
    """Of a variable; of references only those to the pod's name and labels are known."""
    if "value" in variable:
        return str(variable["value"])
    path = str(variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", ""))
    metadata = pod["metadata"]
    if path.startswith("metadata.labels['"):
        return str(metadata["labels"].get(path.split("'")[1], ""))
    return str(metadata.get(path.removeprefix("metadata."), ""))
