"""Files made to hang or crash a reader: each gives a finding at the place that exceeds a limit."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from modelyard.findings import Finding
from modelyard.reading import CONFIG, SPEC, FileKind, read_file
from modelyard.spec import load_catalogue, load_model
from modelyard.spec.loading import MOST_PROBLEMS
from modelyard.spec.yaml_reader import MOST_DEPTH, MOST_VALUES
from modelyard.spec.yaml_source import YamlSource, parse_yaml
from tests.hostile.files import CONFIGS, GENERATED, THREE_LINES, write_all
from tests.unit.given import Modelyard

# What each is refused with; the rest is readable, and judged by what it says.
REFUSED = {
    **dict.fromkeys(("alias_bomb", "mapping_bomb", "long_number", "long_hexadecimal_number"), "YAML002"),
    **dict.fromkeys(
        (
            *("alias_in_its_merge", "alias_in_itself", "control_character", "directive", "half_of_a_pair"),
            *(
                "key_of_a_list",
                "latin_1",
                "nul",
                "levels_of_questions",
                "long_tag",
                "tag_of_nothing",
                "tag_of_python",
                "tag_that_lies",
            ),
            *("two_documents", "utf_16", "a_pipe", "a_device", "a_folder"),
        ),
        "YAML001",
    ),
    **dict.fromkeys(
        (
            *(
                "variables_250000",
                "levels_3000_block",
                "levels_3000_flow",
                "levels_100000_flow",
                "levels_of_dashes",
            ),
            *("lines_with_a_colon", "lines_of_questions", "lines_that_end_in_cr"),
            *("blank_lines", "comments", "long_text", "long_key", "merges"),
            *("chain_of_aliases", "documents"),
        ),
        "YAML002",
    ),
    **dict.fromkeys(
        (
            *(
                "number_of_underscores",
                "path_to_a_device",
                "path_with_nul",
                "long_duration",
                "config_of_levels",
                "config_of_900_levels",
            ),
            *("config_of_empty_lists", "config_of_5_mib", "config_with_a_long_number"),
            *("config_is_a_pipe", "config_is_a_device"),
        ),
        "SPEC003",
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_all(tmp_path_factory.mktemp("hostile"))


def test_the_hostile_files_are_the_same_in_every_run() -> None:
    assert all(text() == text() for text in (*GENERATED.values(), *CONFIGS.values()))


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_file_is_one_finding_with_its_place(files: dict[str, Path], name: str) -> None:
    _, _, findings = load_model(files[name])

    assert findings[0].code == REFUSED[name], findings
    assert len(findings) == 1 or REFUSED[name] == "SPEC003"
    assert findings[0].location
    assert len(str(findings[0])) < 700


def test_the_other_hostile_files_are_read_to_a_bounded_list_of_findings(
    files: dict[str, Path], tmp_path: Path, modelyard: Modelyard
) -> None:
    environments = str(tmp_path)
    for name in sorted(files.keys() - REFUSED.keys()):
        answer = modelyard("validate", str(files[name]), "--environments", environments, "--env", "none")

        assert answer.code in (0, 1), name
        assert "Traceback" not in answer.err, name
        assert len(answer.err) < 100_000, name


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: " + "[" * 70, (1, 67)),
        ("a:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, 80)), (64, 64)),
        ("a: &a [x, x]\nb: &b [*a, *a]\n" + "c: [" + "*b, " * 2000 + "]\n", None),
        ("a: " + "1" * 41, (1, 4)),
    ],
)
def test_reading_ends_where_the_text_goes_too_far(text: str, place: tuple[int, int] | None) -> None:
    found = parse_yaml(text, "model.yaml")

    assert isinstance(found, Finding)
    assert found.code == "YAML002"
    assert found.location
    assert place is None or (found.location.line, found.location.column) == place


def test_an_alias_counts_as_what_it_stands_for() -> None:
    anchored = "a: &a [" + "x, " * 999 + "]\n"  # a thousand values
    fits = "b: [" + "*a, " * 4 + "]\n"  # another four thousand, and two of its own

    assert isinstance(parse_yaml(anchored + fits, "a"), YamlSource)
    assert isinstance(parse_yaml(anchored + fits + "c: *a\nd: [x]\n", "a"), Finding)
    assert MOST_VALUES == 6000


def test_levels_count_through_aliases() -> None:
    half = "[" * (MOST_DEPTH // 2) + "]" * (MOST_DEPTH // 2)

    assert isinstance(parse_yaml(f"a: &a {half}\nb: [*a]\n", "a"), YamlSource)
    assert isinstance(parse_yaml(f"a: &a {half}\nb: {half.replace('[]', '[*a]')}\n", "a"), Finding)


def test_aliases_and_merge_keys_within_the_limits_still_work() -> None:
    found = parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]\n", "a")

    assert isinstance(found, YamlSource)
    assert found.data == {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": [{"x": 1}, {"x": 1}]}


def test_dates_are_text_as_in_yaml_1_2() -> None:
    found = parse_yaml("a: 2026-12-24T11:30:00Z\nb: 2026-12-24\n", "a")

    assert isinstance(found, YamlSource)
    assert found.data == {"a": "2026-12-24T11:30:00Z", "b": "2026-12-24"}


def test_the_directive_of_yaml_1_2_says_nothing_new() -> None:
    found = parse_yaml(f"# ours\n%YAML 1.2\n---\n{THREE_LINES}", "a")

    assert isinstance(found, YamlSource)


@pytest.mark.parametrize(
    ("content", "place", "said"),
    [
        (b"a: b\nc: \xff\n", (2, 4), "byte 0xff is no UTF-8 text"),
        ("ä: \u00e4".encode() + b"\xc3", (1, 5), "byte 0xc3"),
        ("a: b".encode("utf-16"), (1, 1), "UTF-16"),
        ("a: b".encode("utf-32"), (1, 1), "UTF-32"),
    ],
)
def test_another_encoding_is_named_with_its_place(
    tmp_path: Path, content: bytes, place: tuple[int, int], said: str
) -> None:
    path = tmp_path / "model.yaml"
    path.write_bytes(content)

    found = read_file(path, SPEC)

    assert isinstance(found, Finding)
    assert found.location
    assert (found.location.line, found.location.column) == place
    assert said in found.message


def test_a_byte_order_mark_of_utf_8_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: b")

    assert read_file(path, SPEC) == "a: b"


def test_a_file_of_just_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    kind = FileKind("model file", 1024)
    path.write_bytes(b"x" * 1024)
    assert read_file(path, kind) == "x" * 1024

    path.write_bytes(b"x" * 1025)
    found = read_file(path, kind)

    assert isinstance(found, Finding)
    assert found.code == "YAML002"
    assert "more than 1 KiB, the most that a model file can have" in found.message


def test_what_is_no_regular_file_is_named_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    found = {name: read_file(tmp_path / name, CONFIG) for name in ("pipe", "folder", "device", "socket")}
    missing, loop = read_file(tmp_path / "missing", CONFIG), read_file(tmp_path / "loop", CONFIG)

    assert {name: each.message for name, each in found.items() if isinstance(each, Finding)} == {
        "pipe": "cannot read the file: it is a named pipe",
        "folder": "cannot read the file: it is a folder",
        "device": "cannot read the file: it is a device",
        "socket": "cannot read the file: it is a socket",
    }
    assert isinstance(missing, Finding)
    assert isinstance(loop, Finding)


def test_a_link_to_a_regular_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("a: b", encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to("model.yaml")

    assert read_file(tmp_path / "link.yaml", SPEC) == "a: b"


def test_a_hostile_file_does_not_hide_the_others_of_its_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text(THREE_LINES, encoding="utf-8")

    catalogue, findings = load_catalogue(tmp_path)

    assert list(catalogue.models) == ["b"] or [finding.code for finding in findings] != ["YAML001"]
    assert findings[0].code == "YAML001"


def test_the_first_hundred_problems_are_listed_and_the_rest_is_counted(files: dict[str, Path]) -> None:
    _, _, findings = load_model(files["unknown_keys_2900"])

    assert len(findings) == 101
    assert findings[-1].message == "2800 further problems of this kind are not listed"


class TestALargeFileThatIsRight:
    def test_a_model_with_hundreds_of_variables(self, tmp_path: Path) -> None:
        path = tmp_path / "model.yaml"
        lines = "".join(f"    SETTING_{n}: 'value {n}'\n" for n in range(600))
        path.write_text(f"{THREE_LINES}engine:\n  env:\n{lines}", encoding="utf-8")

        model, _, findings = load_model(path)

        assert findings == []
        assert model is not None
        assert len(model.engine.env) == 600

    def test_an_environment_of_300_overrides(self) -> None:
        override = "    replicas: {min: 1, max: 4}\n    pool: l40s\n    engine: {maxModelLen: 16384, args: {seed: 1}}\n"
        text = "overrides:\n" + "".join(f"  model-{n}:\n{override}" for n in range(300))
        pool = "{accelerator: l40s, limit: 100, instanceTypes: [g6e.xlarge, g6e.2xlarge], zones: [a, b]}"
        text += "pools:\n" + "".join(f"  pool-{n}: {pool}\n" for n in range(20))

        assert isinstance(parse_yaml(text, "environment.yaml"), YamlSource)


@pytest.mark.parametrize(
    "name", ["a_pipe", "a_device", "alias_bomb", "levels_100000_flow", "config_is_a_pipe"]
)
def test_the_command_itself_ends_without_a_traceback(
    files: dict[str, Path], tmp_path: Path, name: str
) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("modelyard"), "validate", files[name], "--environments", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,  # for a reader that hangs; it takes a second
    )

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error:") <= 3


def test_a_file_whose_name_is_no_text_is_named_all_the_same(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.yaml"
    Path(os.fsdecode(path)).write_text("a: [", encoding="utf-8")
    command = [
        str(Path(sys.executable).with_name("modelyard")),
        "validate",
        os.fsdecode(path),
        "--output",
        "json",
    ]

    done = subprocess.run(
        [*command, "--environments", str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )

    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["findings"][0]["file"].endswith("\udcff.yaml")


@pytest.mark.parametrize("name", ["tokens_2900", "passwords_2900", "comments_with_tokens", "line_of_tokens"])
def test_a_file_of_secrets_is_read_no_further(files: dict[str, Path], name: str) -> None:
    model, source, findings = load_model(files[name])

    assert (model, source) == (None, None)
    assert {finding.code for finding in findings} == {"SEC001"}
    assert len(findings) == MOST_PROBLEMS + 1
    assert "further problems of this kind are not listed" in findings[-1].message
    assert not any("aB3dE" in str(finding) or "hunter" in str(finding) for finding in findings)
