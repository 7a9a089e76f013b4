"""The project's own charts: one composition for `render`, `cdk8s synth` and `cdk deploy`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from modelyard.charts import ChartsError, project_hook
from modelyard.objects.composition import Composition, default_objects
from modelyard.objects.yaml_text import to_yaml
from modelyard.planning import Plan
from modelyard.project import load_project
from tests.contract.conftest import ROOT, folders_of

PLAIN = """
from charts.contacts import contact


def compose(composition):
    composition.add("platform", [contact(composition.environment.namespace)])
"""
CONTACTS = """
def contact(namespace):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "contact", "namespace": namespace},
        "data": {"slack": "#llm-platform"},
    }
"""
IN_A_CHART = """
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, JsonPatch


def compose(composition):
    chart = Chart(App(), "contact", disable_resource_name_hashes=True)
    metadata = ApiObjectMetadata(name="contact", namespace=composition.environment.namespace)
    item = ApiObject(chart, "Contact", api_version="v1", kind="ConfigMap", metadata=metadata)
    item.add_json_patch(JsonPatch.add("/data", {"slack": "#llm-platform"}))
    composition.add("platform", chart)
"""
FILE = Path("platform/configmap-contact.yaml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own with the shipped models and environments."""
    for name in ("models", "environments", "infra"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "cdk.json", "cdk8s.yaml", "modelyard.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "charts").mkdir()
    return tmp_path


def write(project: Path, text: str, **modules: str) -> None:
    (project / "charts" / "__init__.py").write_text(text, encoding="utf-8")
    for name, content in modules.items():
        (project / "charts" / f"{name}.py").write_text(content, encoding="utf-8")


def run(project: Path, *command: str, **variables: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def deployed(project: Path, name: str) -> bytes:
    """The object's file in the archive that `cdk deploy` uploads."""
    context = json.loads((project / "cdk.json").read_text(encoding="utf-8"))["context"] | {"env": name}
    out = project / "cdk.out"
    run(
        project, sys.executable, "app.py",
        CDK_OUTDIR=str(out), CDK_CONTEXT_JSON=json.dumps(context), CDK_VALIDATION="false",
    )  # fmt: skip
    for archive in out.rglob("*.zip"):
        with zipfile.ZipFile(archive) as files:
            if str(FILE) in files.namelist():
                return files.read(str(FILE))
    for path in out.rglob(FILE.name):
        return path.read_bytes()
    raise AssertionError(f"{FILE} is in no asset of {out}")


def synthesised(project: Path, name: str) -> bytes:
    """The object's file as `cdk8s synth` leaves it: the command removes the output folder and runs the app in
    a shell."""
    lines = (project / "cdk8s.yaml").read_text(encoding="utf-8").splitlines()
    [app] = [line.removeprefix("app: ") for line in lines if line.startswith("app: ")]
    run(project, "sh", "-c", app, CDK8S_OUTDIR="dist/cdk8s", MODELYARD_ENV=name)
    return (project / "dist" / "cdk8s" / name / FILE).read_bytes()


@pytest.mark.parametrize("text", [PLAIN, IN_A_CHART], ids=["plain", "cdk8s"])
def test_an_object_of_charts_is_the_same_in_render_and_cdk8s_synth_and_cdk_deploy(
    project: Path, text: str
) -> None:
    write(project, text, contacts=CONTACTS)
    run(project, "modelyard", "render", "--env", "dev")
    rendered = (project / "dist" / "dev" / FILE).read_bytes()
    assert b"#llm-platform" in rendered
    assert rendered == synthesised(project, "dev") == deployed(project, "dev")


def test_jsii_starts_only_where_a_chart_uses_cdk8s(project: Path) -> None:
    probe = (
        "import sys\nfrom pathlib import Path\nfrom modelyard.charts import project_hook\n"
        "from modelyard.objects.rendering import render\nfrom modelyard.project import load_project\n"
        "render(load_project('dev').plan(), Path('out'), hook=project_hook())\nprint('jsii' in sys.modules)\n"
    )
    write(project, PLAIN, contacts=CONTACTS)
    assert run(project, sys.executable, "-c", probe).strip() == "False"
    write(project, IN_A_CHART)
    assert run(project, sys.executable, "-c", probe).strip() == "True"


@pytest.fixture(scope="module")
def planned() -> Plan:
    found = load_project("dev", *folders_of("dev")).plan()
    assert found is not None
    return found


def refusal(project: Path, planned: Plan) -> str:
    def compose() -> None:
        if hook := project_hook(project):
            hook(Composition(planned, default_objects(planned)))

    with pytest.raises(ChartsError) as refused:
        compose()
    return str(refused.value).replace(str(project), "PROJECT")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "no function compose"),
        ("def compose(c:\n", "charts/__init__.py:1: SyntaxError"),
        ("import nowhere\n", "charts/__init__.py:1: No module named 'nowhere'"),
        ("def compose(c):\n    return 1 / 0\n", "charts/__init__.py:2: ZeroDivisionError: division by zero"),
        ("def compose(c):\n    c.replace('modles/x', [])\n", "no folder modles/x; there are addons, "),
        ("def compose(c):\n    c.add('platform', [{'kind': 'ConfigMap'}])\n", "ConfigMap  has no apiVersion, metadata.name"),
        ("def compose(c):\n    c.add('platform', c.folders['platform'][:1])\n", "Namespace models is there twice"),
    ],
)  # fmt: skip
def test_charts_that_cannot_be_used_are_one_error_with_its_place(
    project: Path, planned: Plan, text: str, said: str
) -> None:
    write(project, text)
    assert said in refusal(project, planned)


def test_charts_that_are_not_there_are_named(project: Path, planned: Plan) -> None:
    assert "there is no PROJECT/charts/__init__.py" in refusal(project, planned)


def test_settings_that_cannot_be_read_are_named_with_their_line(project: Path, planned: Plan) -> None:
    (project / "modelyard.yaml").write_text("chart: charts\n", encoding="utf-8")
    assert "modelyard.yaml:1" in refusal(project, planned)
    (project / "modelyard.yaml").write_text("charts: ../charts\n", encoding="utf-8")
    assert "must lie in the project" in refusal(project, planned)


@pytest.mark.parametrize("name", ["json.py", "yaml.py"])
def test_charts_cannot_take_the_place_of_another_module(project: Path, planned: Plan, name: str) -> None:
    (project / "modelyard.yaml").write_text(f"charts: {name}\n", encoding="utf-8")
    (project / name).write_text("def compose(c):\n    pass\n", encoding="utf-8")
    module = sys.modules[name[:-3]]

    assert f"{name} has the name of the Python module" in refusal(project, planned)
    assert sys.modules[name[:-3]] is module


def test_a_project_without_settings_has_no_charts(tmp_path: Path) -> None:
    assert project_hook(tmp_path) is None


def test_charts_of_two_projects_do_not_meet(tmp_path: Path, planned: Plan) -> None:
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name / "charts"
        folder.mkdir(parents=True)
        (tmp_path / name / "modelyard.yaml").write_text("charts: charts\n", encoding="utf-8")
        (folder / "__init__.py").write_text(PLAIN, encoding="utf-8")
        (folder / "contacts.py").write_text(CONTACTS.replace("llm-platform", name), encoding="utf-8")
        hook = project_hook(tmp_path / name)
        assert hook is not None
        composition = Composition(planned, {"platform": []})
        hook(composition)
        found.append(to_yaml(composition.folders["platform"][0]))
    assert ["#one" in found[0], "#two" in found[1]] == [True, True]
