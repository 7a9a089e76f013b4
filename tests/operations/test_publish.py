"""`modelyard publish`: the bucket mirrors the rendering; at no time does a kustomization name a missing
file."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from modelyard.live.api.aws import Account, open_account
from modelyard.live.delivery.comparison import HOLD, Changes, compare, listed
from modelyard.live.delivery.publish import ForeignKeys, publish
from modelyard.writing import MARKER, Ownership, tree_files
from tests.account.conftest import REGION, Project
from tests.account.fake_account import FakeAccount, denied

PUBLISH = ("publish", "--env", "lab")
BUCKET = "modelyard-lab-tree"
PUT, DELETE, LIST = "s3:PutObject", "s3:DeleteObject", "s3:ListObjectsV2"


@pytest.fixture
def bucket(project: Project, fake: FakeAccount) -> Callable[[], dict[str, bytes]]:
    """What stack Delivery made, empty; call it for what it holds."""
    session = fake.session(region_name=REGION)
    s3 = session.client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    name = "/modelyard/lab/delivery/bucket"
    session.client("ssm").put_parameter(Name=name, Value=BUCKET, Type="String")
    fake.asked.clear()

    def held() -> dict[str, bytes]:
        found = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {item["Key"]: s3.get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read() for item in found}

    return held


Held = Callable[[], dict[str, bytes]]


def tree(project: Project, folder: str = "dist/lab") -> dict[str, bytes]:
    return tree_files(project.folder / folder)


def published(account: Account, tree: dict[str, bytes]) -> Changes:
    """As the command does it: the bucket is looked at, and then changed."""
    return publish(account, compare(account.ask, listed(account.ask, BUCKET), tree), tree)


def changes(fake: FakeAccount) -> list[tuple[str, str]]:
    """Writes of objects to the bucket in their order, without those that frame them; the record is
    emptied."""
    return [each for each in writes(fake) if each[1] not in (HOLD, MARKER)]


def writes(fake: FakeAccount) -> list[tuple[str, str]]:
    """All writes to the bucket in their order; the record is emptied."""
    found = [(permission, asked["Key"]) for permission, asked in fake.asked if permission in (PUT, DELETE)]
    fake.asked.clear()
    return found


def test_the_bucket_becomes_the_tree_and_a_second_run_changes_nothing(
    project: Project, bucket: Held, fake: FakeAccount
) -> None:
    first = project.run(*PUBLISH)

    assert first.code == 0, first.err
    assert bucket() == tree(project)
    fake.asked.clear()

    second = project.run(*PUBLISH)

    assert changes(fake) == []
    assert "0 files uploaded, 0 deleted" in second.out


def test_an_object_that_came_in_parts_and_says_the_same_is_not_uploaded_again(
    project: Project, bucket: Held, fake: FakeAccount
) -> None:
    """Its tag is no hash of its content, so the content is read."""
    project.run(*PUBLISH)
    key = "models/qwen/deployment-qwen.yaml"
    s3 = fake.session(region_name=REGION).client("s3")
    place = {"Bucket": BUCKET, "Key": key}
    upload = place | {"UploadId": s3.create_multipart_upload(**place)["UploadId"]}
    tag = s3.upload_part(**upload, PartNumber=1, Body=tree(project)[key])["ETag"]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
    fake.asked.clear()

    answer = project.run(*PUBLISH)

    assert "0 files uploaded, 0 deleted" in answer.out
    assert writes(fake) == []


def test_what_names_files_comes_after_them_and_deletions_come_last(
    project: Project, bucket: Held, fake: FakeAccount
) -> None:
    project.run(*PUBLISH)
    qwen = project.folder / "models" / "qwen.yaml"
    (project.folder / "models" / "other.yaml").write_text(qwen.read_text(), encoding="utf-8")
    qwen.unlink()
    fake.asked.clear()

    project.run(*PUBLISH)

    made = changes(fake)
    keys = [key for _, key in made]
    kinds = [permission for permission, _ in made]
    assert kinds == sorted(kinds, reverse=True)  # all of Put, then all of Delete
    folders = [Path(key) for permission, key in made if permission == PUT]
    for index in (path for path in folders if path.name == "kustomization.yaml"):
        below = [path for path in folders if path != index and path.is_relative_to(index.parent)]
        assert all(folders.index(path) < folders.index(index) for path in below)
    assert {key for permission, key in made if permission == DELETE} >= {"models/qwen/deployment-qwen.yaml"}
    assert keys.index("models/kustomization.yaml") < keys.index("models/qwen/deployment-qwen.yaml")
    assert bucket() == tree(project)


def test_a_change_of_replicas_uploads_what_it_changes(
    project: Project, bucket: Held, fake: FakeAccount
) -> None:
    project.run(*PUBLISH)
    before = tree(project)
    project.model(replicas=2)
    fake.asked.clear()

    answer = project.run(*PUBLISH, "--output", "json")

    document = json.loads(answer.out)
    after = tree(project)
    differing = {key for key, content in after.items() if before.get(key) != content}
    assert {"models/qwen/deployment-qwen.yaml", "models/qwen/prometheusrule-qwen.yaml"} <= differing
    assert MARKER in differing
    assert set(document["uploads"]) == differing
    assert set(document["deletions"]) == before.keys() - after.keys()  # the job that asked one replica
    assert document["unchanged"] == len(after) - len(differing)
    assert {key for _, key in changes(fake)} == (differing | set(document["deletions"])) - {MARKER}


def test_a_dry_run_only_says(project: Project, bucket: Held, fake: FakeAccount) -> None:
    answer = project.run(*PUBLISH, "--dry-run")
    assert not (project.folder / "dist").exists()

    assert answer.code == 0
    assert "+ models/qwen/deployment-qwen.yaml" in answer.out
    assert "would be uploaded" in answer.out
    assert bucket() == {}


class TestTree:
    def test_a_reviewed_tree_is_published_as_it_is(self, project: Project, bucket: Held) -> None:
        project.run("render", "--env", "lab", "--out", "reviewed")

        assert project.run(*PUBLISH, "--tree", "reviewed").code == 0
        assert bucket() == tree(project, "reviewed/lab")
        assert not (project.folder / "dist").exists()

    @pytest.mark.parametrize("how", ["changed", "removed", "added"])
    def test_one_that_is_not_as_fresh_is_refused(
        self, project: Project, bucket: Held, fake: FakeAccount, how: str
    ) -> None:
        project.run("render", "--env", "lab", "--out", "reviewed")
        folder = project.folder / "reviewed" / "lab" / "models" / "qwen"
        name = "deployment-qwen.yaml"
        if how == "changed":
            project.model(replicas=2)
        elif how == "removed":
            (folder / name).unlink()
        else:
            name = "secret-mine.yaml"
            (folder / name).write_text("kind: Secret\n", encoding="utf-8")

        answer = project.run(*PUBLISH, "--tree", "reviewed")

        assert answer.code == 1
        assert f"models/qwen/{name}" in answer.err
        assert "modelyard render --env lab --out reviewed" in answer.err
        assert changes(fake) == []

    def test_one_that_is_not_there_is_named(self, project: Project, bucket: Held) -> None:
        assert "there is no nowhere/lab" in project.run(*PUBLISH, "--tree", "nowhere").err


class TestRefusals:
    def test_another_account_gets_nothing(self, project: Project, bucket: Held, fake: FakeAccount) -> None:
        project.environment(account="999999999999")

        answer = project.run(*PUBLISH)

        assert answer.code == 1
        assert "the credentials are of account 123456789012, environment lab is 999999999999" in answer.err
        assert fake.permissions == {"sts:GetCallerIdentity"}

    def test_before_the_first_deploy_there_is_no_bucket(self, project: Project) -> None:
        answer = project.run(*PUBLISH)

        assert answer.code == 1
        assert "cdk deploy --all -c env=lab" in answer.err

    def test_without_flux_nobody_would_read_it(self, project: Project, fake: FakeAccount) -> None:
        ids = {"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"}
        project.environment(delivery="none", cache=ids)

        answer = project.run(*PUBLISH)

        assert answer.code == 1
        assert "`delivery: none`" in answer.err
        assert fake.asked == []

    def test_a_plan_with_errors_is_not_published(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        project.model(maxModelLen=10_000_000)

        answer = project.run(*PUBLISH)

        assert answer.code == 1
        assert "error" in answer.err
        assert fake.asked == []


def test_an_upload_that_stops_half_way_goes_on_where_it_stopped(
    project: Project, bucket: Held, fake: FakeAccount
) -> None:
    sent: list[str] = []

    def most(asked: dict[str, Any]) -> Any:
        sent.append(asked["Key"])
        return denied(PUT) if len(sent) > 5 else None

    fake.answers[PUT] = most

    stopped = project.run(*PUBLISH)

    assert stopped.code == 1
    assert "published in part" in stopped.err
    assert len(bucket()) == 5
    assert bucket()[HOLD].endswith(b"\n*\n")
    del fake.answers[PUT]
    fake.asked.clear()

    assert project.run(*PUBLISH).code == 0
    assert not set(sent[2:5]) & {key for _, key in changes(fake)}
    assert bucket() == tree(project)


class TestTheHold:
    """While a publication lasts, Flux finds nothing to apply."""

    def test_it_comes_first_and_goes_last(self, project: Project, bucket: Held, fake: FakeAccount) -> None:
        project.run(*PUBLISH)

        made = writes(fake)
        assert made[:2] == [(PUT, HOLD), (PUT, MARKER)]
        assert made[-2:] == [(PUT, MARKER), (DELETE, HOLD)]
        assert HOLD not in bucket()

    def test_the_bucket_is_listed_before_it_and_under_it_and_no_more(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        project.run(*PUBLISH)

        lists = [place for place, (permission, _) in enumerate(fake.asked) if permission == LIST]
        hold = next(place for place, (_, asked) in enumerate(fake.asked) if asked.get("Key") == HOLD)
        assert len(lists) == 2
        assert lists[0] < hold < lists[1]

    def test_it_is_not_there_where_nothing_changes(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        project.run(*PUBLISH)
        fake.asked.clear()

        project.run(*PUBLISH)

        assert writes(fake) == []

    def test_whatever_ends_a_publication_flux_sees_the_former_tree_the_new_one_or_waits(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        """Killed at every write in turn: nothing is asked of the account afterwards."""
        project.run(*PUBLISH)
        former = bucket()
        other = project.folder / "models" / "other.yaml"
        qwen = project.folder / "models" / "qwen.yaml"
        other.write_text(qwen.read_text(), encoding="utf-8")
        qwen.unlink()
        project.run("render", "--env", "lab")
        new = tree(project)
        account = open_account(REGION)
        assert former.keys() - new.keys(), "something is deleted as well"
        seen = set()
        for moment in range(1, 200):
            _kill_at(fake, moment)
            whole = True
            try:
                published(account, new)
            except KeyboardInterrupt:
                whole = False
            fake.answers.pop(PUT), fake.answers.pop(DELETE)
            state = bucket()
            seen.add("waits" if HOLD in state else "former" if state == former else "new")
            assert HOLD in state or state in (former, new)
            if whole:
                break
            # Somebody takes it back and starts again from the former tree.
            _restore(fake, former)
        assert seen == {"former", "waits", "new"}
        assert bucket() == new

    def test_another_tree_is_not_published_into_one_that_has_not_ended(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        _kill_at(fake, 4)
        interrupted = project.run(*PUBLISH)
        assert interrupted.code == 130
        assert "Flux applies nothing until the publication is run again" in interrupted.err
        fake.answers.pop(PUT), fake.answers.pop(DELETE)
        project.model(replicas=2)
        before = bucket()

        refused = project.run(*PUBLISH)

        assert refused.code == 1
        assert (
            "another publication has not ended, .sourceignore is in modelyard-lab-tree since" in refused.err
        )
        assert "--take-over" in refused.err
        assert bucket() == before
        assert project.run(*PUBLISH, "--take-over").code == 0
        assert bucket() == tree(project)

    def test_a_dry_run_says_that_one_has_not_ended(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        _kill_at(fake, 4)
        project.run(*PUBLISH)
        fake.answers.pop(PUT), fake.answers.pop(DELETE)

        assert "Flux applies nothing until one has" in project.run(*PUBLISH, "--dry-run").out


class TestFilesOfOthers:
    def test_they_are_left_alone_and_named(self, project: Project, bucket: Held, fake: FakeAccount) -> None:
        project.run(*PUBLISH)
        s3 = fake.session(region_name=REGION).client("s3")
        s3.put_object(Bucket=BUCKET, Key="notes/mine.txt", Body=b"mine")

        answer = project.run(*PUBLISH)

        assert "left alone, not written by modelyard: notes/mine.txt" in answer.err
        assert bucket()["notes/mine.txt"] == b"mine"

    def test_one_in_the_place_of_ours_is_not_replaced(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        project.run(*PUBLISH)
        before = bucket()
        s3 = fake.session(region_name=REGION).client("s3")
        s3.put_object(Bucket=BUCKET, Key="models/other/deployment-other.yaml", Body=b"mine")
        (project.folder / "models" / "other.yaml").write_text(
            (project.folder / "models" / "qwen.yaml").read_text(), encoding="utf-8"
        )

        answer = project.run(*PUBLISH)

        assert answer.code == 1
        assert "modelyard did not write models/other/deployment-other.yaml" in answer.err
        assert bucket() == before | {"models/other/deployment-other.yaml": b"mine"}
        assert "in the way" in project.run(*PUBLISH, "--dry-run").out

    def test_one_that_comes_before_the_hold_is_refused_and_flux_goes_on(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        project.run(*PUBLISH)
        before, path = bucket(), "models/other/deployment-other.yaml"
        mine = {**tree(project), path: b"kind: Deployment\n"}
        account, s3 = open_account(REGION), fake.session(region_name=REGION).client("s3")

        def late(asked: dict[str, Any]) -> Any:
            if asked["Key"] == HOLD:
                s3.put_object(Bucket=BUCKET, Key=path, Body=b"theirs")

        fake.answers[PUT] = late

        with pytest.raises(ForeignKeys, match=path):
            published(account, mine)
        assert bucket() == before | {path: b"theirs"}

    def test_a_publication_that_ended_meanwhile_is_not_mixed_with(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        """Somebody else publishes between the first look at the bucket and the hold."""
        project.run(*PUBLISH)
        project.run("render", "--env", "lab")
        mine = tree(project)
        project.model(replicas=2)
        project.run("render", "--env", "lab")
        theirs = tree(project)
        account = open_account(REGION)
        mine["models/kustomization.yaml"] += b"# mine\n"
        mine[MARKER] = Ownership.of(
            {Path(key): text for key, text in mine.items() if key != MARKER}
        ).to_json()
        first = [True]

        def late(asked: dict[str, Any]) -> Any:
            if asked["Key"] == HOLD and first.pop(0) if first else False:
                published(open_account(REGION), theirs)
            return None

        fake.answers[PUT] = late

        published(account, mine)

        assert bucket() == mine

    def test_where_no_list_says_what_is_ours_nothing_is_deleted(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        s3 = fake.session(region_name=REGION).client("s3")
        s3.put_object(Bucket=BUCKET, Key="models/gone/kustomization.yaml", Body=b"old")

        assert project.run(*PUBLISH).code == 0
        assert "models/gone/kustomization.yaml" in bucket()

    def test_what_an_interrupted_publication_uploaded_is_known_as_ours(
        self, project: Project, bucket: Held, fake: FakeAccount
    ) -> None:
        project.run(*PUBLISH)
        (project.folder / "models" / "other.yaml").write_text(
            (project.folder / "models" / "qwen.yaml").read_text(), encoding="utf-8"
        )
        _kill_at(fake, 12)
        assert project.run(*PUBLISH).code == 130
        fake.answers.pop(PUT), fake.answers.pop(DELETE)
        assert any("other" in key for key in bucket())
        (project.folder / "models" / "other.yaml").unlink()

        assert project.run(*PUBLISH, "--take-over").code == 0
        assert bucket() == tree(project)


def _kill_at(fake: FakeAccount, moment: int) -> None:
    """Nothing reaches the account from its `moment`th write on."""
    left = [moment]

    def ended(asked: dict[str, Any]) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise AssertionError("asked after the end")
        if left[0] == 0:
            raise KeyboardInterrupt

    fake.answers[PUT] = fake.answers[DELETE] = ended


def _restore(fake: FakeAccount, state: dict[str, bytes]) -> None:
    s3 = fake.session(region_name=REGION).client("s3")
    there = {item["Key"]: item["ETag"] for item in s3.list_objects_v2(Bucket=BUCKET)["Contents"]}
    for key in there.keys() - state.keys():
        s3.delete_object(Bucket=BUCKET, Key=key)
    for key, content in state.items():
        if there.get(key) != f'"{md5(content, usedforsecurity=False).hexdigest()}"':
            s3.put_object(Bucket=BUCKET, Key=key, Body=content)
