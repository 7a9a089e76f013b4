"""Which values are secrets: by format, by name, by randomness; and how messages quote user input."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelyard.engines import releases
from modelyard.secret_values import (
    HIDDEN,
    is_harmless,
    mask,
    names_a_secret,
    random_values,
    shown,
    sightings,
    suspects,
    without,
)
from modelyard.secret_values import settings as settings_in
from modelyard.secret_values.shapes import Shape, shapes
from tests.unit.given_secrets import PUBLIC, SECRET, drawn


@pytest.mark.parametrize("what", PUBLIC)
def test_what_is_public_passes(what: str) -> None:
    assert suspects({"SETTING": PUBLIC[what]}) == []
    assert mask(PUBLIC[what]) == PUBLIC[what]


@pytest.mark.parametrize("what", SECRET)
def test_a_secret_is_found_and_taken_out(what: str) -> None:
    found = suspects({"SETTING": SECRET[what]})

    assert found
    assert all(suspect.path == ("SETTING",) for suspect in found)
    bare = str(without({"SETTING": SECRET[what]}, found))
    assert not any(suspect.piece in bare or suspect.piece in suspect.why for suspect in found)
    assert suspects(without({"SETTING": SECRET[what]}, found)) == []


def test_both_tables_have_forty_rows_and_more() -> None:
    assert min(len(PUBLIC), len(SECRET)) >= 40


@pytest.mark.parametrize("where", ["{}", "token={}.", "see {} there", '"{}"', "[{}]", "x\n  {}\ny", "a_{}"])
@pytest.mark.parametrize(
    "what", ["Hugging Face", "GitHub", "Anthropic", "NVIDIA", "service account", "RSA key"]
)
def test_a_known_shape_is_masked_wherever_it_stands(what: str, where: str) -> None:
    bare = mask(where.format(SECRET[what]))

    assert SECRET[what][8:] not in bare
    assert HIDDEN in bare
    assert mask(bare) == bare


def test_a_mask_leaves_what_is_public_of_a_credential() -> None:
    assert mask(f"got {SECRET['Hugging Face']}!") == "got hf_…!"
    assert mask("https://admin:hunter2@host/x") == "https://admin:…@host/x"
    assert mask(f"x {SECRET['RSA key']} y") == "x … y"


def test_a_key_that_was_cut_off_is_hidden_with_its_body() -> None:
    begun = SECRET["OpenSSH key"].rsplit("\n", 2)[0]

    assert mask(f"key: |\n  {begun}") == "key: |\n  …"


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.anchors[0])
def test_every_text_of_a_shape_has_an_anchor(shape: Shape, data: st.DataObject) -> None:
    """Only texts with one are held against the expression: without an anchor a secret would pass."""
    text = data.draw(st.from_regex(re.compile(shape.pattern, re.ASCII)))

    assert any(anchor in text for anchor in shape.anchors)


def test_every_shape_has_a_source_and_hides_more_than_it_shows() -> None:
    for shape in shapes():
        assert shape.what.split()[0] in ("a", "an")
        assert shape.public < 12


@pytest.mark.parametrize(
    "name",
    [
        *(
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PWD",
            "OPENAI_API_KEY",
            "WANDB_API_KEY",
        ),
        *(
            "HF_TOKEN",
            "GITHUB_PAT",
            "JWT_SECRET",
            "SECRET_KEY_BASE",
            "REDIS_PASS",
            "apiKey",
            "api-key",
            "hf-token",
        ),
        *("clientSecret", "x-api-key", "Authorization", "authorization", "DB_PASSWORD_2", "DB_PASSWORD_PROD"),
        *(
            "client-key-data",
            "AZURE_STORAGE_KEY",
            "sshPrivateKey",
            "example.com/token",
            "ssl-keyfile-password",
        ),
        *("passphrase", "MASTER_KEY", "SIGNING_KEY", "ENCRYPTION_KEY", "API_TOKENS", "registryCredentials"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert names_a_secret(name) == "certain"
    assert not is_harmless(name, "hunter2")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "TOKENIZERS_PARALLELISM",
            "MAX_TOKENS",
            "max-num-batched-tokens",
            "tokenizer-mode",
            "TOKENIZER_PATH",
        ),
        *(
            "eos_token",
            "pad_token_id",
            "SSL_KEYFILE",
            "ssl-keyfile",
            "PASSWORD_FILE",
            "secretName",
            "secretKeyRef",
        ),
        *(
            "AWS_ACCESS_KEY_ID",
            "TOKEN_ENDPOINT",
            "CACHE_KEY_PREFIX",
            "OMP_NUM_THREADS",
            "KEYCLOAK_URL",
            "BYPASS_CACHE",
        ),
        *(
            "COMPASS",
            "keyboard",
            "PATH",
            "PATTERN",
            "monkey",
            "SECRETS_MANAGER_REGION",
            "long-prefill-token-threshold",
        ),
        *("VLLM_USE_V1", "NCCL_DEBUG", "author", "authors", "tokens", "passthrough", "PASSENGER_COUNT"),
    ],
)
def test_names_of_something_else(name: str) -> None:
    assert names_a_secret(name) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("API_KEY", each)
            for each in ("", "none", "${API_KEY}", "$(API_KEY)", "{{ key }}", "<key>", "os.environ/KEY")
        ),
        *(
            ("TLS_PRIVATE_KEY", each)
            for each in ("/etc/tls/tls.key", "./tls.key", "-----BEGIN PUBLIC KEY-----")
        ),
        *(
            ("API_TOKEN", each)
            for each in (True, None, 4096, "true", "required", "arn:aws:secretsmanager:x:1:secret:y")
        ),
        *(("DB_PASSWORD", each) for each in (False, None, "vault:kv/db#password", "changeme-here")),
        *(("KEY", each) for each in ("id", "topology.kubernetes.io/zone", "nvidia.com/gpu", "model-name")),
        ("AUTH", "sso"),
        ("sort_key", "created_at"),
    ],
)
def test_values_that_are_no_secret_under_such_a_name(name: str, value: object) -> None:
    assert suspects({name: value}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DB_PASSWORD", 12345678),
        ("DB_PASSWORD", "0000"),
        ("API_KEY", "/" + drawn(39)),
        ("LICENSE_KEY", "A1-B2"),
    ],
)
def test_values_that_are_one(name: str, value: object) -> None:
    assert suspects({name: value})


@pytest.mark.parametrize(
    "data",
    [
        {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]},
        {"kind": "Secret", "merge": {"stringData": {"anything": "hunter2"}}},
        {"merge": {"stringData": {"anything": "hunter2"}}, "kind": "Secret"},
        {"kind": "Secret", "data": {"anything": "aHVudGVyMg=="}},
        {"headers": {"x-api-key": "hunter2"}},
        {"api-key": ["hunter2", "hunter3"]},
        {"args": ["--api-key=hunter2"]},
        {SECRET["Hugging Face"]: 1},
        {drawn(40): 1},
    ],
)
def test_secrets_in_lists_patches_and_keys(data: object) -> None:
    found = suspects(data)

    assert found
    assert "hunter" not in str(without(data, found))


@pytest.mark.parametrize(
    "data",
    [
        {"env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]},
        {"volumes": [{"name": "tls", "secret": {"secretName": "front-door"}}]},
        {"integrity": base64.b64encode(random.Random(1).randbytes(32)).decode()},
        {"secretKeyRef": {"name": "hf-token", "key": "value"}},
    ],
)
def test_references_to_secrets_pass(data: object) -> None:
    assert suspects(data) == []


def test_an_alias_that_holds_itself_is_looked_at_once() -> None:
    loop: dict[str, object] = {"DB_PASSWORD": "hunter2"}
    loop["again"] = loop

    assert len(suspects(loop)) == 1


@pytest.mark.parametrize(("length", "share"), [(24, 0.85), (32, 0.95), (40, 0.96), (64, 0.99)])
def test_most_of_what_chance_writes_is_found(length: int, share: float) -> None:
    chance = random.Random(length)
    words = ["".join(chance.choices(string.ascii_letters + string.digits, k=length)) for _ in range(1000)]

    assert sum(bool(random_values(word)) for word in words) / 1000 > share


def test_no_name_of_an_engine_looks_drawn_by_chance() -> None:
    names = {
        name for release in releases() for name in (*release.flags, *release.architectures, release.image)
    }

    assert [name for name in names if random_values(name) or sightings(name)] == []


def test_every_flag_that_takes_a_secret_is_known_by_its_name() -> None:
    flags = {name for release in releases() for name in release.flags}

    assert sorted(flag for flag in flags if names_a_secret(flag) == "certain") == [
        *("admin-api-key", "api-key", "hf-token", "ssl-keyfile-password"),
    ]


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "a.",
            "a-",
            "eyJ-",
            "sk-",
            "://",
            "a://:b",
            "-----BEGIN PRIVATE KEY-----\n",
            "SG.a",
            "hf_",
            "A1b",
            "a:",
            "a=",
            " ",
        ),
        *(
            "bearer ",
            "basic a",
            "password",
            "--api-key ",
            "arn:a-",
            "sha256:",
            "x@",
            '"auth":"',
            "xox",
            "LS0tLS1CRUdJTi",
            "#",
        ),
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    """Half a megabyte that begins like a secret over and over, with every anchor in it.

    Eight times the text takes eight times as long; what looks again from every place would take sixty-four
    times, each time it is tried. A machine that is busy with something else can only fail some of the tries.
    """

    def look(size: int) -> float:
        text = unit * (size // len(unit)) + " @ eyJ sk- PRIVATE KEY SG. :AA"
        began = time.process_time()
        found = [*sightings(text), *random_values(text), *settings_in(text)]
        took = time.process_time() - began
        assert all(sighting.end > sighting.start for sighting in found)
        return took

    look(1_000)  # what is made at the first look alone
    assert any(look(500_000) < 24 * look(62_500) for _ in range(10))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "'x'"),
        (3, "3"),
        (True, "True"),
        ("it's", '"it\'s"'),
        ("a\nb\x1b[31m", r"'a\nb\x1b[31m'"),
        ("\u202eevil", r"'\u202eevil'"),
        ("a" * 100, f"'{'a' * 71}…'"),
        ("x" * 70 + " " + SECRET["Hugging Face"], f"'{'x' * 70} …'"),
        ([SECRET["GitHub"]], "['ghp_…']"),
    ],
)
def test_a_message_repeats_a_value_in_quotes_short_visible_and_masked(value: object, text: str) -> None:
    assert shown(value) == text


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.sampled_from(sorted(SECRET)))
def test_masking_never_fails_and_says_the_same_twice(text: str, what: str) -> None:
    bare = mask(f"{text} {SECRET[what]} {text}")

    assert mask(bare) == bare
    found = sightings(f"{text} {SECRET[what]}")
    assert all(left.end <= right.start for left, right in pairwise(found))
    json.dumps(bare.encode("utf-8", "replace").decode())
