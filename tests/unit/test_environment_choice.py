"""Which environment a command is about where none is named, and judging models without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelyard.cli import workspace
from tests.unit.given import Modelyard

LAB = Path(__file__).parents[1] / "fixtures" / "environments" / "lab.yaml"
THREE_LINES = "model: hf://Qwen/Qwen3-32B-FP8\naccelerator: l40s\nreplicas: 2\n"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, ...]:
    """Options that name a folder of models and an empty one of environments."""
    for name in ("models", "environments"):
        (tmp_path / name).mkdir()
    (tmp_path / "models" / "qwen.yaml").write_text(THREE_LINES, encoding="utf-8")
    return ("--models", str(tmp_path / "models"), "--environments", str(tmp_path / "environments"))


def environments(folders: tuple[str, ...], *names: str) -> None:
    for name in names:
        text = LAB.read_text(encoding="utf-8").replace("name: lab\n", "")
        (Path(folders[3]) / f"{name}.yaml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("there", "said"), [(["prod"], "prod"), (["dev", "local"], "local"), (["local"], "local")]
)
def test_the_only_environment_is_meant_or_the_local_one(
    modelyard: Modelyard, folders: tuple[str, ...], there: list[str], said: str
) -> None:
    environments(folders, *there)

    assert modelyard("plan", *folders).out.startswith(f"{said}: 1 model")


def test_options_may_stand_in_any_order(modelyard: Modelyard, folders: tuple[str, ...]) -> None:
    environments(folders, "dev", "prod")

    assert modelyard("plan", *folders, "--env", "dev").out.startswith("dev: 1 model")
    assert modelyard("plan", "--env", "prod", *folders).out.startswith("prod: 1 model")


def test_of_several_one_must_be_named_where_nobody_can_be_asked(
    modelyard: Modelyard, folders: tuple[str, ...]
) -> None:
    environments(folders, "dev", "prod")

    answer = modelyard("plan", *folders)

    assert answer.code == 64
    assert "name an environment with --env: dev, prod" in answer.err


def test_on_a_terminal_it_is_asked_for_until_one_is_named(
    modelyard: Modelyard, folders: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    environments(folders, "dev", "prod")
    monkeypatch.setattr(workspace, "_somebody_is_there", lambda: True)
    words = iter(("prd", "prod"))
    monkeypatch.setattr("builtins.input", lambda _="": next(words))
    monkeypatch.setattr("typer._click.termui.visible_prompt_func", lambda _="": next(words))

    answer = modelyard("plan", *folders)

    assert "did you mean 'prod'? there are dev, prod" in answer.err
    assert answer.out.startswith("prod: 1 model")


def test_an_unknown_name_is_not_replaced(modelyard: Modelyard, folders: tuple[str, ...]) -> None:
    environments(folders, "prod")

    assert "no environment 'local'" in modelyard("plan", "--env", "local", *folders).err


class TestWithoutAnEnvironment:
    """What an author can know of a model alone."""

    def test_a_model_is_judged_by_itself(self, modelyard: Modelyard, folders: tuple[str, ...]) -> None:
        answer = modelyard("validate", *folders)

        assert answer.out == "1 model in no environment: ok\n"
        assert answer.err == "not checked: placement, quotas, secrets and objects; there is no environment\n"

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("engine: {maxModelLen: 400000}", "LEN001"),
            ("engine: {args: {max-modl-len: 5}}", "VLLM001"),
            ("engine: {maxModelLen: 40960, maxNumSeqs: 64, concurrency: 64}", "KV001"),
            ("nmae: x", "SPEC001"),
        ],
    )
    def test_what_is_wrong_with_it_is_found(
        self, modelyard: Modelyard, folders: tuple[str, ...], line: str, said: str
    ) -> None:
        Path(folders[1], "qwen.yaml").write_text(f"{THREE_LINES}{line}\n", encoding="utf-8")

        answer = modelyard("validate", "qwen", *folders)

        assert answer.code == 1
        assert [each.split()[1] for each in answer.err.splitlines() if "error:" in each] == [said]

    @pytest.mark.parametrize(
        "folder", ["models", *(f"tests/fixtures/{x}/models" for x in ("serving", "everything", "platforms"))]
    )
    def test_models_that_are_right_somewhere_are_right_by_themselves(
        self, modelyard: Modelyard, tmp_path: Path, folder: str
    ) -> None:
        """With their pools, secrets, gateways and buckets, on every accelerator in a region that has it."""
        answer = modelyard("validate", "--models", folder, "--environments", str(tmp_path))

        assert answer.code == 0, answer.err


class TestNames:
    def test_a_model_is_named_as_its_file_is(self, modelyard: Modelyard, folders: tuple[str, ...]) -> None:
        Path(folders[1], "other.yaml").write_text("nothing: true\n", encoding="utf-8")

        assert modelyard("validate", "qwen", *folders).code == 0
        assert modelyard("validate", *folders).code == 1

    def test_a_name_of_no_model_is_answered_with_the_nearest(
        self, modelyard: Modelyard, folders: tuple[str, ...]
    ) -> None:
        answer = modelyard("validate", "qwn", *folders)

        assert answer.code == 64
        assert "no model of this name" in answer.err
        assert "did you mean 'qwen'? models are qwen" in answer.err

    def test_the_authors_of_one_model_are_not_told_of_the_environment(
        self, modelyard: Modelyard, folders: tuple[str, ...]
    ) -> None:
        """Not even where a strict policy makes the warning an error."""
        for policy in ("relaxed", "strict"):
            text = LAB.read_text(encoding="utf-8").replace("limit: 16", "limit: 16, ami: al2023@latest")
            Path(folders[3], "prod.yaml").write_text(f"{text}policy: {policy}\n", encoding="utf-8")

            assert "AMI001" in modelyard("validate", *folders).err
            assert "AMI001" not in modelyard("validate", "qwen", *folders).err
