"""A secret in a file is refused at its place, and no output repeats it: neither the finding nor other
messages about the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from ruamel.yaml import YAML

from modelyard.findings import Finding
from modelyard.spec import Environment, Model, load_environment, load_model
from modelyard.spec.document import Document
from modelyard.spec.loading import load_pipeline
from modelyard.spec.pipeline import Pipeline
from modelyard.spec.question import read_question
from tests.unit.given import Modelyard
from tests.unit.given_secrets import SECRET, drawn

TOKEN = SECRET["Hugging Face"]
CHANCE = drawn(43)
ADDRESS = "https://admin:hunter2@example.com/x"
THREE_LINES = "model: hf://Qwen/Qwen3-8B\naccelerator: l40s\nreplicas: 1\n"
ENVIRONMENT = (
    "account: '123456789012'\nregion: us-east-2\navailabilityZones: [us-east-2a, us-east-2b]\n"
    "pools: {gpu: {accelerator: l40s, limit: 8}}\n"
)
PIPELINE = (
    "repository: a/b\nconnectionArn: arn:aws:codeconnections:us-east-2:123456789012:connection/x\n"
    "account: '123456789012'\nregion: us-east-2\nstages: [dev]\n"
)


def judged(folder: Path, text: str) -> list[Finding]:
    file = folder / "chat.yaml"
    file.write_text(text, encoding="utf-8")
    model, source, findings = load_model(file)
    assert "hunter2" not in repr((model, source and source.data, findings))
    return findings


def refusals(findings: list[Finding]) -> list[tuple[int, int]]:
    return [(f.location.line, f.location.column) for f in findings if f.code == "SEC001" and f.location]


@pytest.mark.parametrize(
    ("lines", "places"),
    [
        ("engine: {env: {DB_PASSWORD: hunter2}}", [(4, 29)]),
        ("engine:\n  env:\n    PGPASSWORD: 'hunter2'\n    LOG: debug", [(6, 17)]),
        ("engine: {env: {AWS_SECRET_ACCESS_KEY: hunter2}}", [(4, 39)]),
        ("engine: {args: {api-key: hunter2}}", [(4, 26)]),
        ("engine: {args: {hf-token: [hunter2]}}", [(4, 28)]),
        ("description: https://admin:hunter2@example.com", [(4, 28)]),
        ("description: |\n  Ask for it.\n  Server=db;Password=hunter2;", [(6, 22)]),
        (
            "patches: [{kind: Deployment, merge: {spec: {env: [{name: DB_PASSWORD, value: hunter2}]}}}]",
            [(4, 78)],
        ),
        ("patches: [{kind: Secret, merge: {stringData: {anything: hunter2}}}]", [(4, 57)]),
        ("patches: [{kind: Deployment, merge: {metadata: {annotations: {x-api-key: hunter2}}}}]", [(4, 74)]),
        ("password: hunter2", [(4, 11)]),
        ("access: {apiKey: 'hunter2!'}", [(4, 18)]),
        ("# engine: {env: {DB_PASSWORD: hunter2}}", [(4, 31)]),
        ("drain: 60s # password=hunter2", [(4, 23)]),
        ("owner: {team: x, contact: 'ask, password: hunter2'}", [(4, 43)]),
    ],
)
def test_a_secret_in_a_model_file_is_refused_at_its_place(
    tmp_path: Path, lines: str, places: list[tuple[int, int]]
) -> None:
    findings = judged(tmp_path, THREE_LINES + lines)

    assert refusals(findings) == places
    assert not any("hunter" in str(finding) for finding in findings)


def test_a_random_value_is_refused_where_it_begins(tmp_path: Path) -> None:
    text = f"{THREE_LINES}engine:\n  env:\n    SETTING: |\n      plain\n      {CHANCE} more\n"

    findings = judged(tmp_path, text)

    assert refusals(findings) == [(8, 7)]
    assert "engine.env.SETTING: a random value of 43 characters" in findings[0].message


def test_a_private_key_over_many_lines_is_one_finding(tmp_path: Path) -> None:
    body = SECRET["RSA key"].replace("\n", "\n      ")

    findings = judged(tmp_path, f"{THREE_LINES}engine:\n  env:\n    TLS: |\n      {body}\n")

    assert refusals(findings) == [(7, 7)]


@pytest.mark.parametrize(
    "value",
    [
        f'"{TOKEN[:8]}\\x{ord(TOKEN[8]):02x}{TOKEN[9:]}"',
        f'"{TOKEN[:9]}\\\n    {TOKEN[9:]}"',
        f'"a\u2028b\u2028c" # {TOKEN}',
    ],
)
def test_yaml_can_write_a_token_in_many_ways(tmp_path: Path, value: str) -> None:
    findings = judged(tmp_path, f"{THREE_LINES}description: {value}\n")

    assert [line for line, _ in refusals(findings)] == [4]
    assert TOKEN[12:] not in repr(findings)


def test_the_fix_says_what_a_server_can_be_given(tmp_path: Path) -> None:
    [finding] = judged(tmp_path, f"{THREE_LINES}engine: {{env: {{DB_PASSWORD: hunter2}}}}")

    assert finding.message == "engine.env.DB_PASSWORD: the value of DB_PASSWORD, written out"
    assert "modelyard secrets set NAME" in finding.fix
    assert "model.auth and access.apiKey" in finding.fix


def test_what_else_is_wrong_with_the_field_is_said_without_the_secret(tmp_path: Path) -> None:
    findings = judged(tmp_path, f"model: {ADDRESS}\naccelerator: {TOKEN}\nreplicas: {TOKEN}\n{TOKEN}: 1\n")

    assert [f.code for f in findings] == [*("SPEC003",) * 3, "SPEC001", *("SEC001",) * 4]
    assert "'https://admin:…@example.com/x'" in findings[0].message
    assert "'hf_…'" in findings[1].message
    assert "'hf_…'" in findings[2].message
    assert findings[3].message == "unknown key 'hf_…'"
    assert not any(TOKEN[6:] in str(finding) for finding in findings)


def test_what_is_wrong_only_without_the_secret_is_not_said(tmp_path: Path) -> None:
    """`…` is no name of a secret; the token was one."""
    file = tmp_path / "lab.yaml"
    file.write_text(f"{ENVIRONMENT}secrets: {{hf-token: {TOKEN}}}\n", encoding="utf-8")

    _, _, findings = load_environment(file)

    assert [f.code for f in findings] == ["SEC001"]


@pytest.mark.parametrize(
    "text",
    [
        f"{THREE_LINES}engine: {{env: {{DB_PASSWORD: hunter2, DB_PASSWORD: hunter2}}}}",
        f"{THREE_LINES}engine: {{env: {{DB_PASSWORD: 'hunter2'}}\n  x: [",
        "DB_PASSWORD: hunter2: x\n",
        f"a: {ADDRESS}\na: {ADDRESS}\n",
    ],
)
def test_a_file_that_is_no_yaml_is_refused_without_what_it_says(tmp_path: Path, text: str) -> None:
    [finding] = judged(tmp_path, text)

    assert finding.code == "YAML001"


def test_a_config_json_with_a_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"eos_token": "</s>", "token": TOKEN, "model_type": TOKEN}), encoding="utf-8"
    )

    findings = judged(
        tmp_path, "model: {uri: hf://a/b, config: config.json}\naccelerator: l40s\nreplicas: 1\n"
    )

    assert refusals(findings) == [(1, 32)]
    assert TOKEN[6:] not in str(findings)


def test_the_tokens_of_a_tokenizer_are_no_secrets(tmp_path: Path) -> None:
    config = "{eos_token: '<|eot_id|>', pad_token: pad-me-2, secret: hunter}"

    assert (
        judged(tmp_path, f"model: {{uri: hf://a/b, config: {config}}}\naccelerator: l40s\nreplicas: 1\n")
        == []
    )


@pytest.mark.parametrize(
    "lines",
    [
        "model: {uri: hf://Qwen/Qwen3-8B, auth: hf-token-2}",
        "access: {apiKey: clients-2026}",
        "engine: {args: {max-num-seqs: 8}, env: {TOKENIZERS_PARALLELISM: 'false', MAX_TOKENS: '4096'}}",
        "engine: {env: {SSL_CERT_FILE: /etc/ssl/ca.crt, API_KEY_FILE: /run/key, VLLM_TOKEN_BUDGET: '100'}}",
        (
            "patches: [{kind: Deployment, merge: {spec: {env: [{name: DB_PASSWORD, "
            "valueFrom: {secretKeyRef: {name: a, key: b}}}]}}}]"
        ),
    ],
)
def test_names_of_secrets_stand_where_they_belong(tmp_path: Path, lines: str) -> None:
    assert refusals(judged(tmp_path, THREE_LINES.replace("model: hf://Qwen/Qwen3-8B\n", "") + lines)) == []


@pytest.mark.parametrize(
    "lines",
    [
        "monitoring: {prometheus: 'http://admin:hunter2@prometheus:9090'}",
        "monitoring: {otlpEndpoint: 'http://u:hunter2@otel:4317'}",
        "delivery: argocd\ngit: {url: 'https://bot:hunter2@github.com/a/b'}",
        "tags: {db-password: hunter2}",
        "litellm: {masterKey: 'hunter2 '}",
        "cost: {monthlyUsd: 1, emails: ['password=hunter2']}",
    ],
)
def test_environments_are_judged_as_models_are(tmp_path: Path, lines: str) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(ENVIRONMENT + lines, encoding="utf-8")

    _, source, findings = load_environment(file)

    assert len(refusals(findings)) == 1
    assert "hunter2" not in repr((source and source.data, findings))


def test_so_are_pipelines(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINE.replace("a/b", TOKEN) + f"branch: {ADDRESS}\n", encoding="utf-8")

    _, source, findings = load_pipeline(file)

    assert refusals(findings) == [(1, 13), (6, 23)]
    assert not any(part in repr((source and source.data, findings)) for part in (TOKEN, "hunter2"))


def _parts(annotation: Any) -> Iterator[tuple[tuple[str | int, ...], type[Document] | None]]:
    """What `annotation` holds, with the way there."""
    if isinstance(annotation, type) and issubclass(annotation, Document):
        yield (), annotation
    elif get_origin(annotation) is tuple:
        yield from (((0, *way), inner) for way, inner in _parts(get_args(annotation)[0]))
    elif get_origin(annotation) is dict:
        yield from ((("KEY", *way), inner) for way, inner in _parts(get_args(annotation)[1]))
    elif get_origin(annotation) in (Annotated, Union, UnionType):
        for argument in get_args(annotation):
            yield from _parts(argument)
    else:
        yield (), None


def fields(document: type[Document], way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place of the format where something can be written."""
    for name, info in document.model_fields.items():
        here = (*way, info.alias or name)
        yield here
        for further, inner in _parts(info.annotation):
            if further:
                yield (*here, *further)
            if inner:
                yield from fields(inner, (*here, *further))


def put(data: dict[str, Any], way: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """`data` with `value` at the end of `way`."""
    content = value
    for step in reversed(way[1:]):
        content = [content] if isinstance(step, int) else {step: content}
    return {**data, str(way[0]): content}


def written(file: Path, data: dict[str, Any]) -> None:
    with file.open("w", encoding="utf-8") as out:
        YAML().dump(data, out)


@pytest.mark.parametrize("secret", [TOKEN, CHANCE, ADDRESS], ids=["token", "random", "address"])
@pytest.mark.parametrize("output", ["table", "json"])
def test_no_field_of_a_model_lets_a_secret_through_or_out(
    modelyard: Modelyard, tmp_path: Path, secret: str, output: str
) -> None:
    base = {"model": "hf://Qwen/Qwen3-8B", "accelerator": "l40s", "replicas": 1}
    ways = dict.fromkeys(fields(Model))
    assert len(ways) > 80
    files = []
    for number, way in enumerate(ways):
        file = tmp_path / f"model-{number}.yaml"
        written(file, put(base, way, secret))
        files.append(file)

    answer = modelyard("validate", *map(str, files), "--env", "local", "--output", output)

    assert answer.code == 1
    for text in (answer.out, answer.err):
        assert not any(part in text for part in (TOKEN[4:], CHANCE, "hunter2"))
    refused = {
        f.location.file for file in files for f in load_model(file)[2] if f.code == "SEC001" and f.location
    }
    assert [str(file) for file in files if str(file) not in refused] == []


@pytest.mark.parametrize("secret", [TOKEN, CHANCE, ADDRESS], ids=["token", "random", "address"])
@pytest.mark.parametrize("document", [Environment, Pipeline])
def test_no_field_of_an_environment_or_a_pipeline_does(
    tmp_path: Path, secret: str, document: type[Document]
) -> None:
    text, load = (ENVIRONMENT, load_environment) if document is Environment else (PIPELINE, load_pipeline)
    base = YAML(typ="safe").load(text)
    file = tmp_path / "lab.yaml"
    for way in dict.fromkeys(fields(document)):
        written(file, put(base, way, secret))

        read, source, findings = load(file)

        assert refusals(findings), way
        said = repr((read, source and source.data, findings))
        assert not any(part in said for part in (TOKEN[4:], CHANCE, "hunter2")), way


def test_an_environment_with_a_secret_is_told_without_it(modelyard: Modelyard, tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(
        f"{ENVIRONMENT}tags: {{Password: hunter2}}\nx: {TOKEN}", encoding="utf-8"
    )

    for output in ("table", "json"):
        answer = modelyard("validate", "--environments", str(tmp_path), "--env", "lab", "--output", output)

        assert answer.code == 1
        assert "SEC001" in answer.out + answer.err
        assert not any(part in answer.out + answer.err for part in ("hunter2", TOKEN[4:]))


@pytest.mark.parametrize(
    "args",
    [
        *(
            ("validate", "--env", "{}"),
            ("validate", "{}"),
            ("{}",),
            ("validate", "--{}"),
            ("plan", "--env", "{}"),
        ),
        *(
            ("explain", "{}"),
            ("render", "--env", "local", "--target", "{}"),
            ("catalog", "{}"),
            ("size", "{}"),
        ),
        *(("estimate", "--model", "{}", "--accelerator", "l40s"), ("estimate", "--batch", "{}")),
        *(("estimate", "--model", "Qwen/Qwen3-8B", "--accelerator", "{}"), ("validate", "--models", "{}")),
        *(("validate", "--output", "{}"), ("secrets", "set", "{}"), ("bench", "x", "--concurrency", "{}")),
        *(
            ("validate", "--env", "{}", "--output", "json"),
            ("explain", "{}", "--output", "json"),
            ("checklist", "{}"),
        ),
        *(("catalog", "engines", "--compare", "{}"), ("upgrade-plan", "--to", "{}")),
    ],
)
def test_what_was_typed_is_not_repeated(modelyard: Modelyard, args: tuple[str, ...]) -> None:
    answer = modelyard(*(each.format(TOKEN) for each in args))

    assert answer.code
    assert TOKEN[4:] not in answer.out + answer.err


@pytest.mark.parametrize(
    "args",
    [("{}",), ("validate", "--{}"), ("validate", "--output", "{}"), ("bench", "x", "--concurrency", "{}")],
)
def test_a_usage_error_repeats_no_random_value_either(modelyard: Modelyard, args: tuple[str, ...]) -> None:
    answer = modelyard(*(each.format(CHANCE) for each in args))

    assert answer.code == 64
    assert CHANCE[4:] not in answer.out + answer.err


def test_a_file_is_named_without_the_token_in_its_name(modelyard: Modelyard, tmp_path: Path) -> None:
    file = tmp_path / f"{TOKEN}.yaml"
    file.write_text("replicas: x\n", encoding="utf-8")

    for output in ("table", "json"):
        answer = modelyard("validate", str(file), "--env", "local", "--output", output)

        assert answer.code == 1
        assert TOKEN[4:] not in answer.out + answer.err


@pytest.mark.parametrize(
    "key", ["model", "accelerator", "engine", "kvCacheDtype", "maxModelLen", "id", "config", TOKEN]
)
def test_questions_are_answered_without_the_token_in_them(
    modelyard: Modelyard, tmp_path: Path, key: str
) -> None:
    record = {"model": "Qwen/Qwen3-8B", "accelerator": "l40s", key: TOKEN}
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(record) + "\n" + json.dumps(record)[:-1] + "\n", encoding="utf-8")

    question = read_question(record)
    answers = [
        modelyard("estimate", "--batch", str(file), "--output", output) for output in ("table", "json")
    ]

    assert TOKEN[4:] not in repr(question.findings)
    assert not any(TOKEN[4:] in answer.out + answer.err for answer in answers)


@pytest.mark.parametrize(
    "lines",
    [
        "engine:\n  env:\n    MY_PASSWORD: *hunter2seven9\n",
        "engine: {env: {MY_PASSWORD: !!hunter2seven9 x}}\n",
        "engine: {env: {DB_PASSWORD: hunter2seven9&3x, DB_PASSWORD: x}}\n",
    ],
)
def test_what_cannot_be_read_or_is_no_name_is_not_repeated(tmp_path: Path, lines: str) -> None:
    found = judged(tmp_path, THREE_LINES + lines)

    assert found
    assert not any("seven9" in str(finding) or "3x" in str(finding) for finding in found)


def test_where_the_name_of_a_secret_belongs_no_message_repeats_what_is_none(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(f"{THREE_LINES}access: {{apiKey: hunter2seven9_Q}}\n", encoding="utf-8")

    [finding] = load_model(file)[2]

    assert finding.code == "SPEC003"
    assert "hunter2" not in str(finding)


@pytest.mark.parametrize("value", ["n/a", "hf_xxx"])
def test_places_that_somebody_has_to_fill_in_are_no_secrets(tmp_path: Path, value: str) -> None:
    found = judged(tmp_path, f"{THREE_LINES}engine: {{env: {{API_TOKEN: {value}}}}}\n")

    assert "SEC001" not in [finding.code for finding in found]


def test_the_same_password_in_two_places_is_two_findings(tmp_path: Path) -> None:
    text = f"{THREE_LINES}description: {ADDRESS}\nengine:\n  env: {{DB_PASSWORD: hunter2, OTHER: x}}\n"

    found = [finding for finding in judged(tmp_path, text) if finding.code == "SEC001"]

    assert [finding.location and finding.location.line for finding in found] == [4, 6]
    assert not any("hunter2" in str(finding) for finding in found)
