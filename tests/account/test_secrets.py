"""`modelyard secrets` sets values, lists missing ones and generates new keys, and never shows a value."""

from __future__ import annotations

import getpass
import io
import json
import logging
import warnings
from collections.abc import Callable
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from modelyard.live.account.secrets import MOST_BYTES, WrongValue, checked_value, kind_of
from modelyard.spec import Catalogue
from tests.account.conftest import REGION, Project
from tests.account.fake_account import Error, FakeAccount, denied
from tests.unit.given import Answer, an_environment

PLANTED = "planted-value-2-do-not-show"
PEM = {
    "tls.crt": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "tls.key": f"-----BEGIN PRIVATE KEY-----\n{PLANTED}\n-----END PRIVATE KEY-----\n",
}
GATEWAY = {"internal": {"domain": "models.example.org", "certificate": "tls"}}
Run = Callable[..., Answer]
SECRETS = {"hf-token": "lab/hf-token", "clients": "lab/clients"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def piped(project: Project, value: str | bytes) -> None:
    raw = value.encode() if isinstance(value, str) else value
    project.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))


@pytest.fixture
def manager(fake: FakeAccount) -> Any:
    """Secrets Manager, to look into."""
    return fake.session(region_name=REGION).client("secretsmanager")


def value_of(manager: Any, secret: str, stage: str = "AWSCURRENT") -> str:
    return str(manager.get_secret_value(SecretId=secret, VersionStage=stage)["SecretString"])


@pytest.fixture
def watched(project: Project, caplog: pytest.LogCaptureFixture) -> Run:
    """The command with every log on. No value that was planted may leave it: by a stream, a log or boto3's
    own logger."""

    def run(*args: str) -> Answer:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        botocore = logging.getLogger("botocore")
        botocore.addHandler(handler)
        caplog.clear()
        with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "botocore"):
            answer = project.run(*args)
        botocore.removeHandler(handler)
        assert "GetCallerIdentity" in caplog.text, "the logs were not on"
        assert "GetCallerIdentity" in stream.getvalue(), "boto3's logs were not on"
        assert "planted-value" not in answer.out + answer.err + caplog.text + stream.getvalue()
        return answer

    return run


class TestSet:
    def test_the_value_comes_from_standard_input_and_is_shown_nowhere(
        self, project: Project, manager: Any, watched: Run
    ) -> None:
        piped(project, f"{PLANTED}\n")

        answer = watched("secrets", "set", "hf-token", "--env", "lab")

        assert answer.code == 0, answer.err
        assert value_of(manager, "lab/hf-token") == PLANTED
        assert value_of(manager, "lab/hf-token", "AWSPREVIOUS") == "planted-value-1"
        assert "lab/hf-token is current" in answer.out

    def test_at_a_terminal_it_is_asked_for_without_an_echo(self, project: Project, manager: Any) -> None:
        asked = []

        def hidden(text: str) -> str:
            asked.append(text)
            return PLANTED

        project.monkeypatch.setattr("sys.stdin", Terminal())
        project.monkeypatch.setattr("getpass.getpass", hidden)

        answer = project.run("secrets", "set", "hf-token", "--env", "lab")

        assert (answer.code, asked) == (0, ["Value of hf-token: "])
        assert value_of(manager, "lab/hf-token") == PLANTED
        assert PLANTED not in answer.out + answer.err

    def test_a_terminal_that_would_show_it_is_not_asked(self, project: Project) -> None:
        def shown(_: str) -> str:
            warnings.warn("Can not control echo on the terminal.", getpass.GetPassWarning, stacklevel=2)
            return PLANTED

        project.monkeypatch.setattr("sys.stdin", Terminal())
        project.monkeypatch.setattr("getpass.getpass", shown)

        answer = project.run("secrets", "set", "hf-token", "--env", "lab")

        assert answer.code == 1
        assert "shows what is typed" in answer.err

    def test_it_comes_from_a_file(self, project: Project, manager: Any) -> None:
        (project.folder / "token.txt").write_text(f"{PLANTED}\r\n", encoding="utf-8")

        assert project.run("secrets", "set", "hf-token", "--env", "lab", "--from-file", "token.txt").code == 0
        assert value_of(manager, "lab/hf-token") == PLANTED

    def test_a_file_that_is_not_there_is_one_line(self, project: Project) -> None:
        answer = project.run("secrets", "set", "hf-token", "--env", "lab", "--from-file", "nowhere.txt")

        assert answer.code == 1
        assert answer.err == "modelyard: cannot read nowhere.txt: No such file or directory\n"

    @pytest.mark.parametrize(
        "misplaced",
        [
            ["hf-token", PLANTED],
            [PLANTED],
            ["hf-token", f"--value={PLANTED}"],
            ["hf-token", "--value", PLANTED],
        ],
        ids=["second argument", "instead of the name", "option with =", "option"],
    )
    def test_a_value_on_the_command_line_is_refused_and_not_repeated(
        self, project: Project, fake: FakeAccount, misplaced: list[str]
    ) -> None:
        answer = project.run("secrets", "set", *misplaced, "--env", "lab")

        assert answer.code == 64
        assert PLANTED not in answer.out + answer.err
        assert fake.asked == []

    def test_an_unknown_name_lists_the_known_ones(self, project: Project) -> None:
        answer = project.run("secrets", "set", "hf-tokn", "--env", "lab")

        assert answer.code == 64
        assert "environment lab has hf-token, clients" in answer.err

    @pytest.mark.parametrize("value", ["", "\n", "  \n", "\r\n"], ids=repr)
    def test_an_empty_value_is_refused(self, project: Project, manager: Any, value: str) -> None:
        piped(project, value)

        answer = project.run("secrets", "set", "hf-token", "--env", "lab")

        assert answer.code == 1
        assert "the value is empty; nothing was changed" in answer.err
        assert value_of(manager, "lab/hf-token") == "planted-value-1"

    def test_white_space_around_it_is_kept_with_a_warning(self, project: Project, manager: Any) -> None:
        piped(project, f" {PLANTED}\n\n")

        answer = project.run("secrets", "set", "hf-token", "--env", "lab")

        assert answer.code == 0
        assert "white space" in answer.err
        assert value_of(manager, "lab/hf-token") == f" {PLANTED}\n"

    def test_bytes_that_are_no_text_are_refused_and_not_quoted(self, project: Project, watched: Run) -> None:
        piped(project, PLANTED.encode() + b"\xff")

        answer = watched("secrets", "set", "hf-token", "--env", "lab")

        assert answer.code == 1
        assert "no UTF-8 text" in answer.err

    def test_a_secret_that_does_not_exist_leads_to_the_stack_that_makes_it(
        self, project: Project, fake: FakeAccount
    ) -> None:
        project.environment(secrets={**SECRETS, "late": "lab/late"})
        piped(project, PLANTED)

        answer = project.run("secrets", "set", "late", "--env", "lab")

        assert answer.code == 1
        assert "cdk deploy Secrets -c env=lab" in answer.err
        assert "secretsmanager:PutSecretValue" not in fake.permissions

    def test_create_makes_it_and_says_what_that_means_for_the_stack(
        self, project: Project, manager: Any
    ) -> None:
        project.environment(secrets={**SECRETS, "late": "lab/late"})
        piped(project, PLANTED)

        answer = project.run("secrets", "set", "late", "--env", "lab", "--create")

        assert answer.code == 0, answer.err
        assert value_of(manager, "lab/late") == PLANTED
        assert "Stack Secrets cannot make" in answer.out

    def test_create_leaves_a_secret_that_is_there_in_place(self, project: Project, fake: FakeAccount) -> None:
        piped(project, PLANTED)

        assert project.run("secrets", "set", "hf-token", "--env", "lab", "--create").code == 0
        assert "secretsmanager:CreateSecret" not in fake.permissions

    def test_it_never_goes_into_another_account(self, project: Project, fake: FakeAccount) -> None:
        project.environment(account="999999999999")
        piped(project, PLANTED)

        answer = project.run("secrets", "set", "hf-token", "--env", "lab")

        assert answer.code == 1
        assert "environment lab is 999999999999" in answer.err
        assert fake.permissions == {"sts:GetCallerIdentity"}

    @pytest.mark.parametrize(
        "failure",
        [
            denied("secretsmanager:PutSecretValue"),
            denied("kms:GenerateDataKey"),
            Error("ExpiredTokenException", "expired"),
            Error("InternalServiceError", "an error"),
        ],
        ids=lambda failure: str(failure.code),
    )
    def test_a_failure_names_its_reason_and_not_the_value(
        self, project: Project, fake: FakeAccount, watched: Run, failure: Error
    ) -> None:
        fake.answers["secretsmanager:PutSecretValue"] = failure
        piped(project, PLANTED)

        answer = watched("secrets", "set", "hf-token", "--env", "lab")

        assert answer.code == 1
        assert "lab/hf-token was not changed: " in answer.err
        assert "Traceback" not in answer.err

    def test_one_that_is_being_deleted_takes_no_value(self, project: Project, manager: Any) -> None:
        manager.delete_secret(SecretId="lab/hf-token")
        piped(project, PLANTED)

        answer = project.run("secrets", "set", "hf-token", "--env", "lab")

        assert answer.code == 1
        assert "restore-secret --secret-id lab/hf-token" in answer.err


class TestCertificates:
    @pytest.fixture(autouse=True)
    def _gateway(self, project: Project, manager: Any) -> None:
        project.environment(secrets={**SECRETS, "tls": "lab/tls"}, gateways=GATEWAY)
        manager.create_secret(Name="lab/tls")

    def test_one_with_both_keys_is_stored_as_it_is(
        self, project: Project, manager: Any, watched: Run
    ) -> None:
        piped(project, json.dumps(PEM))

        answer = watched("secrets", "set", "tls", "--env", "lab")

        assert answer.code == 0, answer.err
        assert json.loads(value_of(manager, "lab/tls")) == PEM

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (PEM["tls.key"], "this is no JSON"),
            (json.dumps([PLANTED]), "this is no object"),
            (json.dumps({"tls.key": PEM["tls.key"]}), "tls.crt is missing or empty"),
            (json.dumps({**PEM, "tls.key": " "}), "tls.key is missing or empty"),
            (json.dumps({**PEM, "tls.key": {"pem": PLANTED}}), "tls.key is missing or empty"),
            (
                json.dumps({"tls.crt": PEM["tls.key"], "tls.key": PEM["tls.crt"]}),
                "tls.crt holds no PEM block",
            ),
        ],
        ids=["PEM", "list", "no crt", "blank", "nested", "swapped"],
    )
    def test_what_no_gateway_could_use_is_refused_and_not_quoted(
        self, project: Project, watched: Run, fake: FakeAccount, value: str, said: str
    ) -> None:
        piped(project, value)

        answer = watched("secrets", "set", "tls", "--env", "lab")

        assert answer.code == 1
        assert said in answer.err
        assert "secretsmanager:PutSecretValue" not in fake.permissions

    def test_a_prompt_has_one_line_so_none_is_shown(self, project: Project) -> None:
        project.monkeypatch.setattr("sys.stdin", Terminal())

        answer = project.run("secrets", "set", "tls", "--env", "lab")

        assert answer.code == 1
        assert "--from-file" in answer.err


def test_a_value_that_is_too_long_is_refused_before_it_is_sent() -> None:
    assert checked_value("ü" * (MOST_BYTES // 2), "token")[1] == ""
    with pytest.raises(WrongValue, match="65536"):
        checked_value("ü" * (MOST_BYTES // 2) + "x", "token")


class TestCheck:
    def test_secrets_that_hold_a_value_are_all_right(self, project: Project, watched: Run) -> None:
        answer = watched("secrets", "check", "--env", "lab")

        assert answer.code == 0, answer.err
        assert "lab/hf-token" in answer.out
        assert "aws/secretsmanager" in answer.out

    def test_the_key_of_encryption_and_rotation_are_shown(self, project: Project, manager: Any) -> None:
        manager.update_secret(SecretId="lab/clients", KmsKeyId="alias/own", SecretString="x")

        answer = project.run("secrets", "check", "--env", "lab", "--output", "json")

        (clients,) = [each for each in json.loads(answer.out)["secrets"] if each["name"] == "clients"]
        assert (clients["key"], clients["rotation"], clients["result"]) == ("alias/own", False, "ok")
        assert clients["lastChanged"]

    def test_one_without_a_value_and_a_missing_one_come_with_the_command(
        self, project: Project, manager: Any
    ) -> None:
        project.environment(secrets={**SECRETS, "late": "lab/late", "empty": "lab/empty"})
        manager.create_secret(Name="lab/empty")

        answer = project.run("secrets", "check", "--env", "lab")

        assert answer.code == 1
        assert "late problem: lab/late does not exist\n    modelyard secrets set late --env lab" in answer.out
        assert (
            "empty problem: lab/empty holds no value\n    modelyard secrets set empty --env lab" in answer.out
        )

    def test_a_denied_one_is_neither_right_nor_missing(self, project: Project, fake: FakeAccount) -> None:
        fake.answers["secretsmanager:DescribeSecret"] = denied("secretsmanager:DescribeSecret")

        answer = project.run("secrets", "check", "--env", "lab")

        assert answer.code == 2
        assert "needs secretsmanager:DescribeSecret" in answer.out

    def test_no_value_is_read(self, project: Project, fake: FakeAccount) -> None:
        project.run("secrets", "check", "--env", "lab")

        assert fake.permissions == {"sts:GetCallerIdentity", "secretsmanager:DescribeSecret"}


class TestRotate:
    def test_a_key_of_clients_is_replaced_by_a_random_one_and_the_old_one_kept(
        self, project: Project, manager: Any, watched: Run
    ) -> None:
        project.model(access={"apiKey": "clients"})

        answer = watched("secrets", "rotate", "clients", "--env", "lab")

        new = value_of(manager, "lab/clients")
        assert answer.code == 0, answer.err
        assert value_of(manager, "lab/clients", "AWSPREVIOUS") == "planted-value-1"
        assert len(new) >= 43
        assert new not in answer.out + answer.err
        assert "kubectl -n models rollout restart deployment/qwen" in answer.out

    def test_two_rotations_make_two_keys(self, project: Project, manager: Any) -> None:
        project.model(access={"apiKey": "clients"})
        seen = set()
        for _ in range(2):
            project.run("secrets", "rotate", "clients", "--env", "lab")
            seen.add(value_of(manager, "lab/clients"))

        assert len(seen) == 2

    def test_the_way_back_that_is_printed_leads_back(self, project: Project, manager: Any) -> None:
        project.model(access={"apiKey": "clients"})
        answer = project.run("secrets", "rotate", "clients", "--env", "lab")
        (line,) = [each for each in answer.out.splitlines() if "update-secret-version-stage" in each]
        words = line.split()
        options = {words[i].lstrip("-"): words[i + 1] for i in range(3, len(words), 2)}

        manager.update_secret_version_stage(
            SecretId=options["secret-id"],
            VersionStage=options["version-stage"],
            MoveToVersionId=options["move-to-version-id"],
            RemoveFromVersionId=options["remove-from-version-id"],
        )

        assert value_of(manager, "lab/clients") == "planted-value-1"

    def test_litellms_own_begins_as_litellm_wants_it(self, project: Project, manager: Any) -> None:
        project.environment(litellm={"masterKey": "clients"})

        answer = project.run("secrets", "rotate", "clients", "--env", "lab")

        assert value_of(manager, "lab/clients").startswith("sk-")
        assert "rollout restart deployment/litellm" in answer.out

    @pytest.mark.parametrize("name", ["hf-token", "clients", "tls"])
    def test_what_others_issue_is_refused(self, project: Project, fake: FakeAccount, name: str) -> None:
        """`clients` is the key of no model here."""
        project.environment(secrets={**SECRETS, "tls": "lab/tls"}, gateways=GATEWAY)

        answer = project.run("secrets", "rotate", name, "--env", "lab")

        assert answer.code == 1
        assert f"modelyard secrets set {name} --env lab" in answer.err
        assert fake.asked == []

    def test_a_token_that_is_also_a_key_is_refused(self, project: Project) -> None:
        """A random one would be no token any more."""
        project.model(
            access={"apiKey": "hf-token"}, model={"uri": "hf://Qwen/Qwen3-32B-FP8", "auth": "hf-token"}
        )

        assert project.run("secrets", "rotate", "hf-token", "--env", "lab").code == 1

    def test_a_secret_that_is_a_token_under_another_name_is_refused(
        self, project: Project, fake: FakeAccount
    ) -> None:
        project.environment(secrets={"hf-token": "lab/shared", "clients": "lab/shared"})
        project.model(access={"apiKey": "clients"})

        assert project.run("secrets", "rotate", "clients", "--env", "lab").code == 1
        assert fake.asked == []


def test_commands_name_the_file_of_the_environment_whatever_it_calls_itself(project: Project) -> None:
    project.environment(name="laboratory", secrets={"late": "lab/late"})

    answer = project.run("secrets", "check", "--env", "lab")

    assert "modelyard secrets set late --env lab #" in answer.out
    assert "cdk deploy Secrets" in answer.out


def test_debug_logs_of_boto3_would_show_the_value_without_our_care(
    project: Project, fake: FakeAccount, caplog: pytest.LogCaptureFixture
) -> None:
    """The planted mistake: what the tests above look for is really there when a request is sent the plain
    way."""
    caplog.set_level(logging.DEBUG)
    client = boto3.Session(region_name=REGION).client("secretsmanager")

    client.put_secret_value(SecretId="lab/hf-token", SecretString=PLANTED)

    assert PLANTED in caplog.text


@pytest.mark.parametrize("value", ["hooks.slack.com/services/T/B/x", "http://hooks.slack.com/x", "xoxb-1"])
def test_a_webhook_is_an_address(value: str) -> None:
    with pytest.raises(WrongValue, match="a webhook is an address") as refused:
        checked_value(value, "webhook")

    assert value not in str(refused.value)
    assert checked_value("https://hooks.slack.com/services/T/B/x\n", "webhook") == (
        "https://hooks.slack.com/services/T/B/x",
        "",
    )


def test_what_a_receiver_posts_to_is_a_webhook() -> None:
    chat = {"chat": {"slack": {"webhook": "slack", "channel": "#llm"}}}
    environment = an_environment(secrets={"slack": "lab/slack"}, monitoring={"receivers": chat})

    assert kind_of("slack", environment, Catalogue()) == "webhook"
