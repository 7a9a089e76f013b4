"""Mistakes that used to pass `validate` and fail later, or never scale up: refused at their place in the
file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id
from hypothesis import given
from hypothesis import strategies as st

from modelyard.findings import CHECKS, Finding
from modelyard.object_rules.sizes import size_findings
from modelyard.spec import load_catalogue, load_environment, load_model, load_pipeline
from modelyard.spec.cron import check_cron
from modelyard.spec.labels import is_label_value, is_qualified_name
from modelyard.spec.operation import PATCHABLE
from modelyard.spec.uri import check_uri
from tests.unit.given import Modelyard, codes
from tests.unit.test_environment_files import FILE
from tests.unit.test_model_files import THREE_LINES, places, problems

VERDICTS = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "cron" / "verdicts.json").read_text(encoding="utf-8")
)["verdicts"]
RANGE = THREE_LINES.replace("replicas: 2", "replicas: {min: 0, max: 2}")


def hours(**changes: str) -> str:
    lines = {"start": "0 7 * * 1-5", "end": "0 19 * * 1-5", "timezone": "Europe/Berlin"} | changes
    return f"{RANGE}scaling: {{schedule: [{json.dumps(lines)}]}}\n"


class TestCron:
    @pytest.mark.parametrize("verdict", ["ok", "refused", "never"])
    def test_an_expression_is_judged_as_robfig_cron_judges_it(self, verdict: str) -> None:
        """Kubernetes and KEDA read expressions with it; its verdicts were recorded."""
        expressions = [text for text, said in VERDICTS if said == verdict]
        assert len(expressions) >= 25

        wrong = []
        for text in expressions:
            try:
                check_cron(text)
                passes = True
            except ValueError:
                passes = False
            if passes is not (verdict == "ok"):
                wrong.append(text)

        assert wrong == []

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"start": "99 25 * * *"}, "minute 99 is not within 0 to 59"),
            ({"start": "0 25 * * *"}, "hour 25 is not within 0 to 23"),
            ({"start": "0 0 * * 7"}, "day of week 7 is not within 0 to 6"),
            ({"start": "0 0 30 2 *"}, "never comes true: no month that it names has a day 30"),
            ({"end": "0 7 * *"}, "must have five fields"),
            ({"end": "0  7 * * 1-5"}, "start and end are the same"),
            ({"timezone": "Europe/Berln"}, "did you mean 'Europe/Berlin'?"),
            ({"timezone": "europe/berlin"}, "did you mean 'Europe/Berlin'?"),
            ({"timezone": "Mars/Olympus_Mons"}, "is no time zone of the IANA database"),
        ],
    )
    def test_hours_that_never_come_are_named(
        self, tmp_path: Path, changes: dict[str, str], said: str
    ) -> None:
        [finding] = problems(tmp_path, hours(**changes))

        assert finding.code == "SPEC003"
        assert said in finding.message
        assert finding.location is not None
        assert finding.location.line == 4

    def test_good_hours_pass_in_all_three_places(self, tmp_path: Path) -> None:
        assert problems(tmp_path, hours()) == []
        batch = "batch: {input: efs://batches/in, output: efs://batches/out, schedule: 0 3 * * *}\n"
        assert problems(tmp_path, THREE_LINES.replace("replicas: 2", "replicas: 1") + batch) == []
        assert codes(problems(tmp_path, THREE_LINES + batch.replace("0 3", "0 24"))).count("SPEC003") >= 1

    def test_office_hours_are_held_to_the_same(self, tmp_path: Path) -> None:
        path = tmp_path / "lab.yaml"
        path.write_text(FILE + "officeHours: {start: 0 7 * * 8, end: 0 19 * * 1, timezone: CEST}\n")

        said = [finding.message for finding in load_environment(path)[2]]

        assert any("day of week" in message for message in said)
        assert any("time zone" in message for message in said)


class TestAddresses:
    @pytest.mark.parametrize(
        "uri",
        [
            "s3://a-bucket/../../b",
            "s3://a-bucket/./b",
            "efs://../../etc",
            "efs://models/..",
            "hf://../..",
            "hf://Qwen/-x",
            "hf://Qwen/x--y",
            "hf://Qwen/x.git",
            "hf://Qwen/" + "x" * 97,
            "hf://Qwen/modèle",
        ],
    )
    def test_one_that_leads_elsewhere_or_nowhere_is_refused(self, tmp_path: Path, uri: str) -> None:
        found = problems(tmp_path, THREE_LINES.replace("hf://Qwen/Qwen3-32B-FP8", uri))

        assert "SPEC003" in codes(found)

    @pytest.mark.parametrize(
        "lines",
        [
            "adapters: [{name: legal, uri: hf://a/..}]\n",
            "speculativeDecoding: {method: draft, model: hf://a/b--c}\n",
            "batch: {input: efs://batches/../x, output: efs://batches/out}\n",
        ],
    )
    def test_so_is_one_of_what_belongs_to_the_model(self, tmp_path: Path, lines: str) -> None:
        assert "SPEC003" in codes(problems(tmp_path, THREE_LINES + lines))

    @pytest.mark.parametrize("change", ["revision: ../../main", "file: ../x.gguf"])
    def test_so_is_a_path_beside_it(self, tmp_path: Path, change: str) -> None:
        text = THREE_LINES.replace("hf://Qwen/Qwen3-32B-FP8", f"{{uri: hf://Qwen/Qwen3-32B-FP8, {change}}}")

        assert "SPEC003" in codes(problems(tmp_path, text))

    @given(st.from_regex(r"[A-Za-z0-9_.é-]{1,20}/[A-Za-z0-9_.-]{1,100}", fullmatch=True))
    def test_a_repository_passes_where_the_hub_library_lets_it_pass(self, repository: str) -> None:
        try:
            validate_repo_id(repository)
            known = True
        except HFValidationError:
            known = False
        try:
            check_uri(f"hf://{repository}")
            passes = True
        except ValueError:
            passes = False

        assert passes is known


class TestFolders:
    def test_a_folder_is_a_teams(self, tmp_path: Path) -> None:
        for name in ("base.yaml", "search/qwen.yml", "legal/gemma.yaml"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(THREE_LINES + "owner: {costCenter: c1}\n" * ("/" in name))

        catalogue, findings = load_catalogue(tmp_path)

        assert findings == []
        owners = {name: model.owner and model.owner.team for name, model in catalogue.models.items()}
        assert owners == {"base": None, "qwen": "search", "gemma": "legal"}
        alone, _, _ = load_model(tmp_path / "search" / "qwen.yml", team="search")
        assert alone == catalogue.models["qwen"]

    def test_an_owner_that_contradicts_the_folder_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "search").mkdir()
        (tmp_path / "search" / "qwen.yaml").write_text(THREE_LINES + "owner: {team: legal}\n")

        [finding] = load_catalogue(tmp_path)[1]

        assert places([finding]) == [("SPEC005", 4, 15)]

    def test_names_are_taken_over_all_folders(self, tmp_path: Path) -> None:
        for team in ("a", "b"):
            (tmp_path / team).mkdir()
            (tmp_path / team / "qwen.yaml").write_text(THREE_LINES)

        assert codes(load_catalogue(tmp_path)[1]) == ["SPEC004"]

    def test_files_that_would_be_overlooked_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "qwen.yaml").write_text(THREE_LINES)
        deep = tmp_path / "search" / "eu" / "gemma.yaml"
        deep.parent.mkdir(parents=True)
        deep.write_text(THREE_LINES)

        [finding] = load_catalogue(tmp_path)[1]

        assert (finding.code, finding.location and finding.location.file) == ("SPEC005", str(deep))
        assert finding.fix == f"move it to {tmp_path / 'search' / 'gemma.yaml'}"

    def test_a_folder_that_cannot_be_read_is_a_finding_and_takes_no_model_away(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "search").mkdir()
        (tmp_path / "qwen.yaml").write_text(THREE_LINES)
        listed = Path.iterdir

        def denied(folder: Path) -> Iterator[Path]:
            if folder.name == "search":
                raise PermissionError(13, "Permission denied", str(folder))
            return listed(folder)

        monkeypatch.setattr(Path, "iterdir", denied)

        [finding] = load_catalogue(tmp_path)[1]

        assert str(finding).startswith(
            f"{tmp_path}/search:1:1 YAML001 error: cannot read the folder: Permission denied"
        )
        assert "No such file" in str(load_catalogue(tmp_path / "nowhere")[1][0])

    def test_links_to_folders_are_no_way_into_the_rest_of_the_disk(self, tmp_path: Path) -> None:
        (tmp_path / "search" / "deep").mkdir(parents=True)
        (tmp_path / "search" / "deep" / "again").symlink_to(tmp_path)
        (tmp_path / "search" / "root").symlink_to("/")
        (tmp_path / "search" / "qwen.yaml").write_text(THREE_LINES)

        assert load_catalogue(tmp_path)[1] == []

    def test_a_folder_of_something_else_is_given_up(self, tmp_path: Path) -> None:
        (tmp_path / "qwen.yaml").write_text(THREE_LINES)
        (tmp_path / "usr").symlink_to("/usr")

        findings = load_catalogue(tmp_path)[1]

        assert set(codes(findings)) == {"SPEC005"}
        assert len(findings) <= 21

    @pytest.mark.parametrize(
        "name", [".hidden.yaml", "x.yaml~", "#x.yaml#", ".#x.yaml", ".x.yaml.swp", "README.md", ".git/x.yaml"]
    )
    def test_hidden_files_and_those_of_editors_are_not_read(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "qwen.yaml").write_text(THREE_LINES)
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("half: [")

        catalogue, findings = load_catalogue(tmp_path)

        assert (list(catalogue.models), findings) == (["qwen"], [])

    def test_the_command_reads_a_teams_file_as_the_folder_would(
        self, modelyard: Modelyard, tmp_path: Path
    ) -> None:
        path = tmp_path / "models" / "search" / "qwen.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(THREE_LINES + "owner: {team: legal}\n")

        answer = modelyard("validate", "-e", "dev", str(path), "--models", str(tmp_path / "models"))

        assert "SPEC005" in answer.err

    def test_yml_is_as_good_for_environments_and_pipelines(
        self, modelyard: Modelyard, tmp_path: Path
    ) -> None:
        environments = tmp_path / "environments"
        environments.mkdir()
        (environments / "lab.yml").write_text(FILE)
        (environments / ".lab.yaml.swp").write_text("half: [")
        options = ("--environments", str(environments))

        assert "in lab:" in modelyard("validate", *options).out
        assert "no environment 'prod'" in modelyard("validate", "-e", "prod", *options).err
        (environments / "lab.yaml").write_text(FILE)
        both = modelyard("validate", *options)
        assert (both.code, both.err.count("SPEC004")) == (1, 1)
        assert "environment 'lab' stands in lab.yaml and lab.yml" in both.err

    def test_a_pipeline_in_two_files_is_none(self, tmp_path: Path, root: Path) -> None:
        text = (root / "pipeline.yaml").read_text(encoding="utf-8")
        (tmp_path / "pipeline.yml").write_text(text)
        assert load_pipeline(tmp_path / "pipeline.yaml")[0] is not None

        (tmp_path / "pipeline.yaml").write_text(text)
        assert codes(load_pipeline(tmp_path / "pipeline.yaml")[2]) == ["SPEC004"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("network: {cidr: 10.0.0.300/16}", "must be an IPv4 network"),
        ("network: {cidr: 10.64.1.0/16}", "has host bits set"),
        ("cluster: {publicAccessCidrs: [1.2.3]}", "publicAccessCidrs"),
        ("gateways: {public: {domain: a.example, certificate: c, cidrs: [10.0.0.0/99]}}", "IPv4 network"),
        ("acknowledge: [{code: CAP999, reason: long enough}]", "no finding of this code"),
        ("tags: {'aws:x': y}", "aws:"),
        ("tags: {cost: 'a\\b'}", "part of a tag"),
        ("monitoring: {labels: {'a b': c}}", "no key of a label"),
        ("account: '١٢٣٤٥٦٧٨٩٠١٢'", "must look like 123456789012"),
    ],
)
def test_what_aws_or_kubernetes_would_refuse_in_an_environment(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "lab.yaml"
    key = line.partition(":")[0]
    kept = "".join(each for each in FILE.splitlines(keepends=True) if not each.startswith(f"{key}:"))
    path.write_text(f"{kept}{line}\n", encoding="utf-8")

    messages = [str(finding) for finding in load_environment(path)[2]]

    assert any(said in message for message in messages), messages


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Depoyment", "did you mean Deployment?"),
        ("deployment", "did you mean Deployment?"),
        ("Pod", "known kinds are ConfigMap, CronJob"),
    ],
)
def test_a_patch_of_a_kind_that_no_model_renders(tmp_path: Path, kind: str, said: str) -> None:
    [finding] = problems(tmp_path, f"{THREE_LINES}patches: [{{kind: {kind}, merge: {{}}}}]")

    assert places([finding]) == [("SPEC003", 4, 18)]
    assert said in finding.message
    assert kind not in PATCHABLE


def test_texts_that_become_annotations_have_a_limit(tmp_path: Path) -> None:
    text = f"{THREE_LINES}description: {'x' * 5000}\nowner: {{team: a, contact: {'y' * 300}}}\n"

    assert codes(problems(tmp_path, text)) == ["SPEC003", "SPEC003"]


def sized(**metadata: Any) -> list[Finding]:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, "data": {}}
    return list(size_findings([item]))


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"annotations": {"a.example/x": "y" * (256 << 10)}}, "annotations have 262,"),
        ({"annotations": {"a b": "y"}}, "is no key"),
        ({"labels": {"x": "y" * 64}}, "the value of label x is none"),
        ({"labels": {"-x": "y"}}, "is no key"),
    ],
)
def test_metadata_that_the_api_server_refuses_is_a_finding(metadata: dict[str, Any], said: str) -> None:
    [finding] = sized(**metadata)

    assert finding.code == "K8S001"
    assert said in finding.message


def test_metadata_that_it_takes_is_none() -> None:
    assert sized(annotations={"a.example/X": "y" * 250_000}, labels={"a.example/X_y": "1.0-b", "c": ""}) == []
    assert CHECKS["K8S001"].severity == "error"


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [("a", True, True), ("A.b_c-d", True, True), ("x/y", True, False), ("", False, True), ("a/", False, False), ("ü", False, False), ("x" * 64, False, False), ("X.example/a", False, False)],  # noqa: E501
)  # fmt: skip
def test_labels_are_spelled_as_kubernetes_spells_them(text: str, key: bool, value: bool) -> None:
    assert (is_qualified_name(text), is_label_value(text)) == (key, value)
