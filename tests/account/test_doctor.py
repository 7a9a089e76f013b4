"""`modelyard doctor` reports what an account lacks, with the command that fixes it, and what it could not
check."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import (  # type: ignore[import-untyped]
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from modelyard.live.account.preflight import CHECKS, policy
from modelyard.live.api.aws import Account, Operation
from tests.account import test_existing_cluster as existing
from tests.account.conftest import REGION, Project
from tests.account.fake_account import ACCOUNT, Answer, Error, FakeAccount, addon, denied, offered, stacks

P_ON_DEMAND = "L-417A185B"
P5 = {"accelerator": "h100", "instanceTypes": ["p5.48xlarge"], "limit": 16}


def problems(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["results"] if each["result"] == "problem"]


def test_an_account_that_is_all_right_has_no_problem(project: Project) -> None:
    answer = project.run("doctor", "--env", "lab")

    assert answer.code == 0, answer.out + answer.err
    assert "0 problems" in answer.out
    assert "0 not checked" in answer.out


def test_no_quota_a_missing_secret_and_a_zone_without_p5_are_exactly_the_three_problems(
    project: Project, fake: FakeAccount
) -> None:
    fake.quotas({P_ON_DEMAND: 0})
    fake.session(region_name=REGION).client("secretsmanager").delete_secret(
        SecretId="lab/hf-token", ForceDeleteWithoutRecovery=True
    )
    project.environment(availabilityZones=[f"{REGION}a", f"{REGION}c", f"{REGION}d"])

    answer = project.run("doctor", "--env", "lab")
    document = project.doctor()

    assert answer.code == 1
    assert [(each["check"], each["subject"]) for each in problems(document)] == [
        ("quotas", P_ON_DEMAND),
        ("offerings", f"p5 in {REGION}d"),
        ("secrets", "hf-token"),
    ]
    assert {each["result"] for each in document["results"]} == {"ok", "problem"}
    quota, zone, secret = (each["fix"] for each in problems(document))
    assert quota == (
        f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {P_ON_DEMAND} "
        f"--desired-value 384 --region {REGION}"
    )
    assert f"{REGION}a, {REGION}c offer it" in zone
    assert f"environments/lab.yaml: pools: {{p5: {{zones: [{REGION}a, {REGION}c]}}}}" in zone
    assert secret.startswith("modelyard secrets set hf-token --env lab")
    for line in (quota, *zone.splitlines(), secret):
        assert line in answer.out


def test_the_zones_that_a_fix_names_mend_the_problem(project: Project) -> None:
    zones = [f"{REGION}a", f"{REGION}c", f"{REGION}d"]
    project.environment(availabilityZones=zones, pools={"p5": {**P5, "zones": [f"{REGION}a", f"{REGION}c"]}})

    assert problems(project.doctor()) == []


def test_a_model_that_only_the_larger_type_admits_needs_it_in_every_zone(project: Project) -> None:
    """The pool has p5.4xlarge in zone c and p5.48xlarge in a and c; a model on eight GPUs has no use for the
    former."""
    project.environment(
        availabilityZones=[f"{REGION}c", f"{REGION}d"],
        pools={"p5": {**P5, "instanceTypes": ["p5.4xlarge", "p5.48xlarge"]}},
    )
    project.model(accelerator="h100:8")

    found = project.results("offerings")

    assert found[f"p5 in {REGION}c"]["result"] == "ok"
    assert found[f"p5 in {REGION}d"]["reason"] == "offers none of p5.48xlarge, which qwen needs"


def test_a_local_zone_is_no_zone_for_a_pool(project: Project, fake: FakeAccount) -> None:
    places = [f"{REGION}a", f"{REGION}-tpe-1a"]
    fake.answers["ec2:DescribeInstanceTypeOfferings"] = {
        "InstanceTypeOfferings": [
            {"InstanceType": "p5.48xlarge", "LocationType": "availability-zone", "Location": place}
            for place in places
        ]
    }

    fix = project.results("offerings")[f"p5 in {REGION}c"]["fix"]

    assert fix.startswith(f"{REGION}a offers it")
    assert "tpe" not in fix


class TestCredentials:
    def test_none_leave_everything_else_unchecked(self, project: Project, fake: FakeAccount) -> None:
        fake.answers["sts:GetCallerIdentity"] = NoCredentialsError()

        document = project.doctor()

        assert [each["check"] for each in problems(document)] == ["credentials"]
        assert fake.permissions == {"sts:GetCallerIdentity"}
        assert len(document["results"]) == len(CHECKS)

    @pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId"])
    def test_expired_ones_are_the_problem(self, project: Project, fake: FakeAccount, code: str) -> None:
        fake.answers["sts:GetCallerIdentity"] = Error(
            code, "The security token included in the request is expired"
        )

        answer = project.run("doctor", "--env", "lab")

        assert answer.code == 1
        assert f"{code}: The security token" in answer.out
        assert "aws sso login" in answer.out
        assert "Traceback" not in answer.err

    def test_those_of_another_account_judge_nothing(self, project: Project, fake: FakeAccount) -> None:
        project.environment(account="999999999999")

        document = project.doctor()

        (found,) = problems(document)
        assert f"of account {ACCOUNT}" in found["reason"]
        assert "use a profile of 999999999999" in found["fix"]
        assert fake.permissions == {"sts:GetCallerIdentity"}

    def test_that_expire_on_the_way_are_told_and_the_command_ends_in_order(
        self, project: Project, fake: FakeAccount
    ) -> None:
        fake.answers["secretsmanager:DescribeSecret"] = Error("ExpiredTokenException", "expired")

        document = project.doctor()

        (found,) = [each for each in document["results"] if each["check"] == "secrets"]
        assert (found["result"], found["reason"]) == ("not checked", "ExpiredTokenException: expired")

    def test_a_profile_that_does_not_exist_is_named(self, project: Project) -> None:
        answer = project.run("doctor", "--env", "lab", "--profile", "nowhere")

        assert (answer.code, answer.out) == (1, "")
        assert "nowhere" in answer.err
        assert "Traceback" not in answer.err


class TestPartialPermissions:
    @pytest.mark.parametrize(
        "permission",
        [
            each
            for each in policy()["Statement"][0]["Action"]
            if not each.startswith("sts:") and each not in existing.ONLY_THERE
        ],
    )
    def test_a_denied_call_is_named_and_the_rest_goes_on(
        self, project: Project, fake: FakeAccount, permission: str
    ) -> None:
        everything(project, fake)
        before = [each["check"] for each in project.doctor()["results"]]
        fake.answers[permission] = denied(permission)

        document = project.doctor()

        told = [
            each
            for each in document["results"]
            if f"needs {permission}" in each["reason"] + (each["fix"] or "")
        ]
        assert told
        assert all(each["result"] in ("not checked", "problem") for each in told)
        assert set(before) == {each["check"] for each in document["results"]}
        assert not [e for e in document["results"] if e["result"] == "not checked" and e not in told]

    def test_without_a_problem_the_exit_code_still_tells_that_something_is_open(
        self, project: Project, fake: FakeAccount
    ) -> None:
        fake.answers["ec2:DescribeSubnets"] = denied("ec2:DescribeSubnets")

        answer = project.run("doctor", "--env", "lab")

        assert answer.code == 2
        assert "not checked   needs ec2:DescribeSubnets" in answer.out

    def test_the_permission_is_the_one_that_aws_names(self, project: Project, fake: FakeAccount) -> None:
        """One call may need two: the message knows which is missing."""
        fake.answers["ssm:GetParameter"] = denied(
            "kms:Decrypt", "with an explicit deny in a service control policy"
        )

        (found,) = project.results("bootstrap").values()

        assert found["reason"] == "needs kms:Decrypt, which a policy denies explicitly"

    def test_one_secret_may_be_hidden_and_the_other_is_judged(
        self, project: Project, fake: FakeAccount
    ) -> None:
        def only_clients(asked: dict[str, Any]) -> Any:
            return denied("secretsmanager:DescribeSecret") if asked["SecretId"] == "lab/hf-token" else None

        fake.answers["secretsmanager:DescribeSecret"] = only_clients

        found = project.results("secrets")

        assert {name: each["result"] for name, each in found.items()} == {
            "hf-token": "not checked",
            "clients": "ok",
        }


class TestAnAccountThatDoesNotAnswer:
    def test_throttling_leaves_the_check_open(self, project: Project, fake: FakeAccount) -> None:
        fake.answers["ec2:DescribeSubnets"] = Error("RequestLimitExceeded", "Request limit exceeded.")

        answer = project.run("doctor", "--env", "lab")

        assert answer.code == 2
        assert "throttles" in answer.out

    @pytest.mark.parametrize(
        "failure",
        [
            EndpointConnectionError(endpoint_url="https://secretsmanager"),
            ReadTimeoutError(endpoint_url="https://secretsmanager"),
        ],
        ids=lambda failure: type(failure).__name__,
    )
    def test_an_endpoint_without_an_answer_is_asked_once(
        self, project: Project, fake: FakeAccount, failure: Exception
    ) -> None:
        fake.answers["secretsmanager:DescribeSecret"] = failure

        found = project.results("secrets")

        assert {each["result"] for each in found.values()} == {"not checked"}
        assert f"no answer from secretsmanager.{REGION}.amazonaws.com" in found["hf-token"]["reason"]
        assert [name for name, _ in fake.asked].count("secretsmanager:DescribeSecret") == 1

    def test_without_a_network_every_check_is_open_and_none_a_problem(
        self, project: Project, fake: FakeAccount
    ) -> None:
        gone = EndpointConnectionError(endpoint_url="https://aws")
        for action in policy()["Statement"][0]["Action"]:
            fake.answers[action] = gone

        answer = project.run("doctor", "--env", "lab", "--output", "json")

        assert answer.code == 2
        assert {each["result"] for each in json.loads(answer.out)["results"]} == {"not checked"}


class TestQuotas:
    def test_a_difference_from_the_file_comes_with_the_yaml_to_paste(
        self, project: Project, fake: FakeAccount
    ) -> None:
        project.environment(quotas={P_ON_DEMAND: 1152, "L-DB2E81BA": 64})
        fake.quotas({P_ON_DEMAND: 384, "L-DB2E81BA": 512})

        found = project.results("quotas")

        assert found[P_ON_DEMAND]["result"] == "problem"
        assert found[P_ON_DEMAND]["fix"] == f"in environments/lab.yaml: quotas: {{{P_ON_DEMAND}: 384}}"
        assert found["L-DB2E81BA"]["result"] == "ok"
        assert "quotas: {L-DB2E81BA: 512}" in found["L-DB2E81BA"]["reason"]

    def test_a_pool_with_spot_is_held_against_both_quotas(self, project: Project, fake: FakeAccount) -> None:
        project.environment(pools={"p5": {**P5, "capacity": ["spot", "on-demand"]}})
        fake.quotas({"L-7212CCBC": 0})
        fake.answers["ec2:GetSpotPlacementScores"] = {"SpotPlacementScores": []}

        found = project.results("quotas")

        assert {code: each["result"] for code, each in found.items()} == {
            P_ON_DEMAND: "ok",
            "L-7212CCBC": "problem",
        }

    def test_a_quota_that_was_never_changed_is_the_default_one(
        self, project: Project, fake: FakeAccount
    ) -> None:
        fake.answers["servicequotas:GetServiceQuota"] = Error("NoSuchResourceException")
        fake.answers["servicequotas:GetAWSDefaultServiceQuota"] = {
            "Quota": {"QuotaName": "Running", "Value": 0.0}
        }

        assert "the account has 0 vCPU" in project.results("quotas")[P_ON_DEMAND]["reason"]

    def test_an_increase_that_was_asked_for_is_told(self, project: Project, fake: FakeAccount) -> None:
        fake.quotas({P_ON_DEMAND: 0})
        fake.answers["servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota"] = {
            "RequestedQuotas": [
                {
                    "DesiredValue": 384.0,
                    "Status": "CASE_OPENED",
                    "Created": datetime(2026, 11, 20, tzinfo=UTC),
                },
                {"DesiredValue": 96.0, "Status": "DENIED", "Created": datetime(2026, 10, 1, tzinfo=UTC)},
            ]
        }

        fix = project.results("quotas")[P_ON_DEMAND]["fix"]

        assert "384 were requested on 2026-11-20, status CASE_OPENED" in fix
        assert "96" not in fix


def reservation(**changes: Any) -> dict[str, Any]:
    row = {
        "CapacityReservationId": "cr-0f9e8d7c6b5a40312",
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": f"{REGION}a",
        "State": "active",
        "TotalInstanceCount": 2,
        "AvailableInstanceCount": 1,
        "ReservationType": "default",
    }
    return {"CapacityReservations": [row | changes]}


def in_days(days: float) -> datetime:
    return datetime.now(UTC) + timedelta(days=days, hours=2)  # the test may take a while


@dataclass(frozen=True)
class InDays:
    """A date as a parameter: one that names no moment, so that a test has the same name in every run."""

    days: float

    def __str__(self) -> str:
        return f"in {self.days:.0f} days"

    __repr__ = __str__


def dated(row: dict[str, Any]) -> dict[str, Any]:
    return {name: in_days(each.days) if isinstance(each, InDays) else each for name, each in row.items()}


class TestReservations:
    @pytest.fixture(autouse=True)
    def _pool(self, project: Project) -> None:
        project.environment(
            pools={"p5": {**P5, "capacity": ["reserved"], "reservations": ["cr-0f9e8d7c6b5a40312"]}}
        )

    @pytest.mark.parametrize(
        ("row", "result", "said"),
        [
            ({}, "ok", "reservation of 2 × p5.48xlarge in ap-northeast-1a, 1 of 2 free, without an end"),
            ({"EndDate": InDays(8)}, "ok", "in 8 days"),
            ({"EndDate": InDays(6)}, "problem", "in 6 days"),
            ({"EndDate": InDays(1)}, "problem", "in 1 day"),
            ({"State": "expired"}, "problem", "is expired"),
            (
                {"State": "scheduled", "StartDate": datetime(2026, 12, 1, tzinfo=UTC)},
                "problem",
                "begins 2026-12-01",
            ),
            ({"State": "payment-failed"}, "problem", "is payment-failed"),
            ({"InstanceType": "p4d.24xlarge"}, "problem", "the pool has p5.48xlarge"),
            ({"AvailabilityZone": f"{REGION}d"}, "problem", f"the pool is in {REGION}a, {REGION}c"),
        ],
        ids=str,
    )
    def test_what_is_wrong_with_one_is_said(
        self, project: Project, fake: FakeAccount, row: dict[str, Any], result: str, said: str
    ) -> None:
        fake.answers["ec2:DescribeCapacityReservations"] = reservation(**dated(row))

        found = project.results("reservations")["cr-0f9e8d7c6b5a40312"]

        assert found["result"] == result
        assert said in found["reason"]
        assert bool(found["fix"]) == (result == "problem")

    def test_an_end_that_the_file_states_has_to_be_the_real_one(
        self, project: Project, fake: FakeAccount
    ) -> None:
        fake.answers["ec2:DescribeCapacityReservations"] = reservation(EndDate=in_days(30))
        stated = {"id": "cr-0f9e8d7c6b5a40312", "ends": f"{in_days(60):%Y-%m-%dT%H:%M:%SZ}"}
        project.environment(pools={"p5": {**P5, "capacity": ["reserved"], "reservations": [stated]}})

        found = project.results("reservations")["cr-0f9e8d7c6b5a40312"]

        assert found["result"] == "problem"
        assert f"reservations: [{{id: cr-0f9e8d7c6b5a40312, ends: {in_days(30):%Y-%m-%d}" in found["fix"]
        right = stated | {"ends": f"{in_days(30):%Y-%m-%dT%H:%M:%SZ}"}
        project.environment(pools={"p5": {**P5, "capacity": ["reserved"], "reservations": [right]}})
        assert project.results("reservations")["cr-0f9e8d7c6b5a40312"]["result"] == "ok"

    def test_a_block_that_ends_leads_to_the_offers_of_the_next(
        self, project: Project, fake: FakeAccount
    ) -> None:
        end = in_days(3)
        fake.answers["ec2:DescribeCapacityReservations"] = reservation(
            ReservationType="capacity-block", EndDate=end
        )

        found = project.results("reservations")["cr-0f9e8d7c6b5a40312"]

        assert "Capacity Block of 2" in found["reason"]
        assert (
            "describe-capacity-block-offerings --instance-type p5.48xlarge --instance-count 2" in found["fix"]
        )
        assert f"--start-date-range {end:%Y-%m-%d}" in found["fix"]

    @pytest.mark.parametrize("stated", [True, False])
    def test_a_block_that_the_plan_counts_as_on_demand_is_told(
        self, project: Project, fake: FakeAccount, stated: bool
    ) -> None:
        pool = {**P5, "capacity": ["reserved"], "reservations": ["cr-0f9e8d7c6b5a40312"]}
        project.environment(pools={"p5": pool}, quotas={"L-DA6814F2": 384} if stated else {})
        fake.answers["ec2:DescribeCapacityReservations"] = reservation(ReservationType="capacity-block")

        found = project.results("reservations")["cr-0f9e8d7c6b5a40312"]

        assert ("its quota is L-DA6814F2" in found["reason"]) != stated
        assert ("L-DA6814F2" in project.results("quotas")) == stated

    def test_one_that_does_not_exist_is_a_problem_and_not_a_failure(
        self, project: Project, fake: FakeAccount
    ) -> None:
        fake.answers["ec2:DescribeCapacityReservations"] = Error("InvalidCapacityReservationId.NotFound")

        found = project.results("reservations")["cr-0f9e8d7c6b5a40312"]

        assert found["result"] == "problem"
        assert "Name=instance-type,Values=p5.48xlarge" in found["fix"]

    def test_fewer_instances_than_the_models_need_are_a_problem(
        self, project: Project, fake: FakeAccount
    ) -> None:
        project.model(accelerator="h100:8", replicas=2)
        fake.answers["ec2:DescribeCapacityReservations"] = reservation(TotalInstanceCount=1)

        assert (
            "need 2 × p5.48xlarge at the least, its reservations hold 1"
            in project.results("reservations")["p5"]["reason"]
        )


class TestSpot:
    @pytest.fixture(autouse=True)
    def _pool(self, project: Project) -> None:
        project.environment(pools={"p5": {**P5, "capacity": ["spot"]}})

    def zones(self, fake: FakeAccount) -> dict[str, str]:
        rows = (
            fake.session(region_name=REGION).client("ec2").describe_availability_zones()["AvailabilityZones"]
        )
        return {row["ZoneName"]: row["ZoneId"] for row in rows}

    @pytest.mark.parametrize(("score", "result"), [(9, "ok"), (4, "ok"), (3, "problem"), (1, "problem")])
    def test_the_best_zone_decides(
        self, project: Project, fake: FakeAccount, score: int, result: str
    ) -> None:
        zones = self.zones(fake)
        fake.answers["ec2:GetSpotPlacementScores"] = {
            "SpotPlacementScores": [
                {"Region": REGION, "AvailabilityZoneId": zones[f"{REGION}a"], "Score": 1},
                {"Region": REGION, "AvailabilityZoneId": zones[f"{REGION}c"], "Score": score},
            ]
        }

        found = project.results("spot")["p5"]

        assert found["result"] == result
        assert f"{REGION}a 1, {REGION}c {score}" in found["reason"]


class TestSecrets:
    def test_one_without_a_value_is_a_problem(self, project: Project, fake: FakeAccount) -> None:
        client = fake.session(region_name=REGION).client("secretsmanager")
        client.delete_secret(SecretId="lab/hf-token", ForceDeleteWithoutRecovery=True)
        client.create_secret(Name="lab/hf-token")

        found = project.results("secrets")["hf-token"]

        assert (found["result"], found["reason"]) == ("problem", "lab/hf-token holds no value")

    def test_one_that_is_being_deleted_is_a_problem(self, project: Project, fake: FakeAccount) -> None:
        fake.session(region_name=REGION).client("secretsmanager").delete_secret(SecretId="lab/hf-token")

        found = project.results("secrets")["hf-token"]

        assert "marked for deletion" in found["reason"]
        assert "restore-secret --secret-id lab/hf-token" in found["fix"]

    def test_no_value_is_read_or_shown(
        self, project: Project, fake: FakeAccount, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)

        answer = project.run("doctor", "--env", "lab")

        assert "planted-value-1" not in answer.out + answer.err + caplog.text
        assert not {each for each in fake.permissions if "Value" in each}


class TestKubernetes:
    @pytest.mark.parametrize(
        ("row", "result"),
        [
            ({"versionStatus": "STANDARD_SUPPORT"}, "ok"),
            ({"status": "standard-support"}, "ok"),
            ({"versionStatus": "EXTENDED_SUPPORT"}, "problem"),
            ({"versionStatus": "STANDARD_SUPPORT", "endOfStandardSupportDate": InDays(10)}, "problem"),
            ({"versionStatus": "STANDARD_SUPPORT", "endOfStandardSupportDate": InDays(40)}, "ok"),
        ],
        ids=str,
    )
    def test_the_version_has_to_stay_in_standard_support(
        self, project: Project, fake: FakeAccount, row: dict[str, Any], result: str
    ) -> None:
        project.environment(cluster={"version": "1.35"})
        newer = {"clusterVersion": "1.36", "versionStatus": "STANDARD_SUPPORT"}
        fake.answers["eks:DescribeClusterVersions"] = {
            "clusterVersions": [{"clusterVersion": "1.35", **dated(row)}, newer]
        }

        found = project.results("kubernetes")["1.35"]

        assert found["result"] == result
        assert found["fix"] == (
            "in environments/lab.yaml: cluster: {version: '1.36'}" if result == "problem" else None
        )

    def test_only_a_version_that_the_file_may_say_is_proposed(
        self, project: Project, fake: FakeAccount
    ) -> None:
        rows = {"1.35": "EXTENDED_SUPPORT", "1.36": "EXTENDED_SUPPORT", "1.40": "STANDARD_SUPPORT"}
        fake.answers["eks:DescribeClusterVersions"] = {
            "clusterVersions": [{"clusterVersion": v, "versionStatus": status} for v, status in rows.items()]
        }

        assert "this release of Modelyard knows 1.35, 1.36" in project.results("kubernetes")["1.36"]["fix"]

    @pytest.mark.parametrize(
        ("version", "status", "result"),
        [
            ("1.36", "ACTIVE", "ok"),
            ("1.35", "ACTIVE", "ok"),
            ("1.34", "ACTIVE", "problem"),
            ("1.33", "ACTIVE", "problem"),
            ("1.37", "ACTIVE", "problem"),
            ("1.36", "FAILED", "problem"),
        ],
    )
    def test_a_cluster_that_is_there_has_to_be_within_reach_of_the_file(
        self, project: Project, fake: FakeAccount, version: str, status: str, result: str
    ) -> None:
        fake.answers["eks:DescribeCluster"] = {"cluster": {"version": version, "status": status}}

        assert project.results("cluster")["modelyard-lab"]["result"] == result

    def test_another_compute_than_the_clusters_is_refused_before_a_deploy(
        self, project: Project, fake: FakeAccount
    ) -> None:
        """Either way: CloudFormation would have to replace a cluster with a fixed name."""
        cluster = {"version": "1.36", "status": "ACTIVE"}
        fake.answers["eks:DescribeCluster"] = {"cluster": {**cluster, "computeConfig": {"enabled": True}}}
        found = project.results("cluster")["modelyard-lab"]
        project.environment(cluster={"compute": "auto-mode"})
        same = project.results("cluster")["modelyard-lab"]
        fake.answers["eks:DescribeCluster"] = {"cluster": cluster}
        back = project.results("cluster")["modelyard-lab"]

        assert (found["result"], same["result"], back["result"]) == ("problem", "ok", "problem")
        assert "cluster: {compute: auto-mode}" in found["fix"]
        assert "cluster: {compute: karpenter}" in back["fix"]

    @pytest.mark.parametrize(
        ("network", "result", "line"),
        [
            ({}, "ok", ""),
            ({"cidr": "10.80.0.0/16"}, "problem", "network: {cidr: 10.64.0.0/16}"),
            ({"vpc": "vpc-0a1b2c3d4e5f60718"}, "ok", ""),
            ({"vpc": "vpc-0a1b2c3d4e5f60719"}, "problem", "network: {vpc: {id: vpc-0a1b2c3d4e5f60718}}"),
        ],
    )
    def test_another_network_than_the_clusters_is_refused_before_a_deploy(
        self, project: Project, fake: FakeAccount, network: dict[str, str], result: str, line: str
    ) -> None:
        """CloudFormation would make another VPC, and EKS would then refuse its subnets."""
        vpc = {"vpcId": "vpc-0a1b2c3d4e5f60718"}
        cluster = {"version": "1.36", "status": "ACTIVE", "resourcesVpcConfig": vpc}
        fake.answers["eks:DescribeCluster"] = {"cluster": cluster}
        fake.answers["ec2:DescribeVpcs"] = {"Vpcs": [{"VpcId": vpc["vpcId"], "CidrBlock": "10.64.0.0/16"}]}
        if "vpc" in network:
            zones = ("subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719")
            subnets = dict(zip((f"{REGION}a", f"{REGION}c"), zones, strict=True))
            project.environment(
                network={"cidr": "10.64.0.0/16", "vpc": {"id": network["vpc"], "privateSubnets": subnets}}
            )
        else:
            project.environment(network=network)

        found = project.results("cluster")["modelyard-lab"]

        assert (found["result"], line in str(found.get("fix"))) == (result, True)

    @pytest.mark.parametrize(
        ("runs", "result"),
        [("1.36.2-20260714", "ok"), ("1.35.6-20260701", "ok"), ("1.36.3-20260903", "problem")],
    )
    def test_the_system_nodes_ami_is_not_taken_back(
        self, project: Project, fake: FakeAccount, runs: str, result: str
    ) -> None:
        fake.answers |= system_nodes(runs)

        found = project.results("system nodes")["system"]
        project.environment(cluster={"systemNodes": {"releaseVersion": runs}} if result == "problem" else {})

        assert found["result"] == result
        assert project.results("system nodes")["system"]["result"] == "ok"
        if result == "problem":
            assert f"cluster: {{systemNodes: {{releaseVersion: {runs}}}}}" in found["fix"]

    @pytest.mark.parametrize(
        ("installed", "status", "others", "result"),
        [
            ("v1.20.0", "ACTIVE", ("v1.20.0", "v1.19.0"), "ok"),
            ("v1.15.0", "ACTIVE", ("v1.20.0",), "problem"),
            ("v1.20.0", "DEGRADED", ("v1.20.0",), "problem"),
            ("v1.20.0", "ACTIVE", (), "problem"),
        ],
    )
    def test_add_ons_have_to_be_healthy_and_made_for_the_version(
        self,
        project: Project,
        fake: FakeAccount,
        installed: str,
        status: str,
        others: tuple[str, ...],
        result: str,
    ) -> None:
        fake.answers |= addon("vpc-cni", installed, status=status, others=others)

        found = project.results("addons")["vpc-cni"]

        assert found["result"] == result
        if others and result == "problem":
            assert "--addon-version v1.20.0" in found["fix"]


def system_nodes(release: str) -> dict[str, Answer]:
    return {
        "eks:ListNodegroups": {"nodegroups": ["system"]},
        "eks:DescribeNodegroup": {"nodegroup": {"nodegroupName": "system", "releaseVersion": release}},
    }


class TestVersions:
    def test_a_version_that_eks_withdrew_is_a_problem_with_the_newest_one(
        self, project: Project, fake: FakeAccount
    ) -> None:
        newer = "v9.9.9-eksbuild.1"
        fake.answers["eks:DescribeAddonVersions"] = offered(coredns=(newer,))

        [found] = project.results("versions").values()

        assert found["result"] == "problem"
        assert f"cluster: {{addonVersions: {{coredns: {newer}}}}}" in found["fix"]
        project.environment(cluster={"addonVersions": {"coredns": newer}})
        assert [each["result"] for each in project.results("versions").values()] == ["ok"]


class TestSubnets:
    def make(self, fake: FakeAccount, zone: str, cidr: str) -> None:
        client = fake.session(region_name=REGION).client("ec2")
        vpc = client.describe_vpcs()["Vpcs"][0]["VpcId"]
        tags = [{"Key": "karpenter.sh/discovery", "Value": "modelyard-lab"}]
        client.create_subnet(
            VpcId=vpc,
            CidrBlock=cidr,
            AvailabilityZone=zone,
            TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
        )

    def test_few_free_addresses_and_a_zone_without_a_subnet_are_problems(
        self, project: Project, fake: FakeAccount
    ) -> None:
        self.make(fake, f"{REGION}a", "172.31.240.0/27")

        found = project.results("subnets")

        assert [each["result"] for each in found.values()] == ["problem", "problem"]
        assert "172.31.240.0/27 has 27 free addresses, fewer than 64" in next(iter(found.values()))["reason"]
        assert "cdk deploy Network" in found[f"{REGION}c"]["fix"]

    def test_room_in_every_zone_is_all_right(self, project: Project, fake: FakeAccount) -> None:
        self.make(fake, f"{REGION}a", "172.31.240.0/24")
        self.make(fake, f"{REGION}c", "172.31.241.0/24")

        assert {each["result"] for each in project.results("subnets").values()} == {"ok"}


class TestExistingSubnets:
    def test_the_named_subnets_are_looked_at_and_have_to_be_in_the_named_vpc(
        self, project: Project, fake: FakeAccount
    ) -> None:
        client = fake.session(region_name=REGION).client("ec2")
        vpc = client.describe_vpcs()["Vpcs"][0]["VpcId"]
        small = client.create_subnet(VpcId=vpc, CidrBlock="172.31.240.0/27", AvailabilityZone=f"{REGION}a")[
            "Subnet"
        ]["SubnetId"]
        gone = "subnet-0123456789abcdef0"
        subnets = {f"{REGION}a": small, f"{REGION}c": gone}

        project.environment(network={"vpc": {"id": vpc, "privateSubnets": subnets}})
        found = project.results("subnets")

        assert "no such subnet" in found[gone]["reason"]
        assert "27 free addresses, fewer than 64" in found[f"{small} in {REGION}a"]["reason"]
        project.environment(network={"vpc": {"id": "vpc-0123456789abcdef0", "privateSubnets": subnets}})
        assert f"the subnet is in {vpc}" in project.results("subnets")[small]["reason"]


class TestEndpoints:
    def project_in(self, fake: FakeAccount, project: Project, **network: Any) -> Any:
        """The project in the account's VPC, whose first private subnet is there."""
        client = fake.session(region_name=REGION).client("ec2")
        [vpc] = client.describe_vpcs()["Vpcs"]
        zones = {f"{REGION}{zone}": f"subnet-0a1b2c3d{number}" for number, zone in enumerate("ac")}
        named = {"id": vpc["VpcId"], "privateSubnets": zones} | network.pop("vpc", {})
        project.environment(network={"vpc": named, "cidr": vpc["CidrBlock"]} | network)
        return client

    def answering(self, client: Any, vpc: str, service: str, **settings: Any) -> str:
        made = client.create_vpc_endpoint(
            VpcId=vpc, ServiceName=f"com.amazonaws.{REGION}.{service}", **settings
        )
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    @pytest.mark.parametrize(
        ("service", "private", "chosen", "fix"),
        [
            ("ecr.api", True, "all", "none"),
            ("sqs", True, "all", "essential"),
            ("sqs", True, "essential", None),
            ("ecr.api", False, "all", None),
            ("bedrock-runtime", True, "all", None),
        ],
    )
    def test_a_second_endpoint_for_a_name_is_refused_before_a_deploy(
        self, project: Project, fake: FakeAccount, service: str, private: bool, chosen: str, fix: str | None
    ) -> None:
        client = self.project_in(fake, project, endpoints=chosen)
        [vpc] = client.describe_vpcs()["Vpcs"]
        made = self.answering(
            client, vpc["VpcId"], service, VpcEndpointType="Interface", PrivateDnsEnabled=private
        )

        found = project.results("endpoints")

        problems = {name: each for name, each in found.items() if each["result"] == "problem"}
        if fix is None:
            assert problems == {}
        else:
            [(name, each)] = problems.items()
            assert name == f"com.amazonaws.{REGION}.{service}"
            assert made in each["reason"]
            assert f"network: {{endpoints: {fix}}}" in each["fix"]

    def test_those_that_a_deploy_has_made_are_its_own(self, project: Project, fake: FakeAccount) -> None:
        client = self.project_in(fake, project)
        [vpc] = client.describe_vpcs()["Vpcs"]
        made = self.answering(
            client, vpc["VpcId"], "ecr.api", VpcEndpointType="Interface", PrivateDnsEnabled=True
        )
        client.create_tags(Resources=[made], Tags=[{"Key": "modelyard:environment", "Value": "lab"}])

        assert {each["result"] for each in project.results("endpoints").values()} == {"ok"}

    def test_what_iam_denies_is_named(self, project: Project, fake: FakeAccount) -> None:
        self.project_in(fake, project)
        fake.answers["ec2:DescribeVpcEndpoints"] = denied("ec2:DescribeVpcEndpoints")

        [found] = project.results("endpoints").values()

        assert (found["result"], found["reason"]) == ("not checked", "needs ec2:DescribeVpcEndpoints")

    def test_a_route_table_takes_one_route_to_s3(self, project: Project, fake: FakeAccount) -> None:
        client = fake.session(region_name=REGION).client("ec2")
        table = client.describe_route_tables()["RouteTables"][0]
        made = self.answering(
            client, table["VpcId"], "s3", VpcEndpointType="Gateway", RouteTableIds=[table["RouteTableId"]]
        )
        self.project_in(fake, project, vpc={"routeTables": [table["RouteTableId"], "rtb-0a1b2c3d"]})

        found = project.results("endpoints")

        [name] = [name for name, each in found.items() if each["result"] == "problem"]
        assert name == table["RouteTableId"]
        assert made in found[name]["reason"]

    def test_a_range_that_is_not_the_vpcs_would_admit_nobody(
        self, project: Project, fake: FakeAccount
    ) -> None:
        client = self.project_in(fake, project, cidr="10.80.0.0/16")
        [vpc] = client.describe_vpcs()["Vpcs"]

        found = project.results("endpoints")["10.80.0.0/16"]

        assert found["result"] == "problem"
        assert f"network: {{cidr: {vpc['CidrBlock']}}}" in found["fix"]

    def test_a_vpc_of_its_own_is_not_asked(self, project: Project) -> None:
        assert project.results("endpoints") == {}


class TestBootstrap:
    @pytest.mark.parametrize(("version", "result"), [("6", "ok"), ("5", "problem"), ("odd", "problem")])
    def test_an_old_one_is_a_problem(
        self, project: Project, fake: FakeAccount, version: str, result: str
    ) -> None:
        fake.answers["ssm:GetParameter"] = {"Parameter": {"Value": version}}

        (found,) = project.results("bootstrap").values()

        assert found["result"] == result
        assert result == "ok" or found["fix"] == f"cdk bootstrap aws://{ACCOUNT}/{REGION}"

    def test_none_is_a_problem(self, project: Project, fake: FakeAccount) -> None:
        fake.session(region_name=REGION).client("ssm").delete_parameter(
            Name="/cdk-bootstrap/hnb659fds/version"
        )

        (found,) = project.results("bootstrap").values()

        assert found["reason"] == "CDK is not bootstrapped there"


class TestCache:
    def make(self, project: Project, fake: FakeAccount, **changes: Any) -> tuple[str, str]:
        session = fake.session(region_name=REGION)
        efs = session.client("efs")
        name = efs.create_file_system(CreationToken="cache")["FileSystemId"]
        user = {"Uid": 2000, "Gid": 2000} | changes
        point = efs.create_access_point(ClientToken="c", FileSystemId=name, PosixUser=user)["AccessPointId"]
        for subnet in session.client("ec2").describe_subnets()["Subnets"]:
            if subnet["AvailabilityZone"] in (f"{REGION}a", f"{REGION}c"):
                efs.create_mount_target(FileSystemId=name, SubnetId=subnet["SubnetId"])
        project.environment(cache={"fileSystemId": name, "accessPointId": point})
        return name, point

    def test_one_of_your_own_is_found_with_its_access_point_and_mount_targets(
        self, project: Project, fake: FakeAccount
    ) -> None:
        name, point = self.make(project, fake)

        found = project.results("cache")

        assert {subject: each["result"] for subject, each in found.items()} == {name: "ok", point: "ok"}

    def test_an_access_point_of_another_user_is_a_problem(self, project: Project, fake: FakeAccount) -> None:
        _, point = self.make(project, fake, Uid=1000)

        assert "uid 1000" in project.results("cache")[point]["reason"]

    def test_ids_that_do_not_exist_are_a_problem(self, project: Project) -> None:
        project.environment(
            cache={"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"}
        )

        assert project.results("cache")["fs-0123456789abcdef0"]["result"] == "problem"

    def test_a_zone_without_a_mount_target_is_a_problem(self, project: Project, fake: FakeAccount) -> None:
        name, point = self.make(project, fake)
        zones = [f"{REGION}a", f"{REGION}c", f"{REGION}d"]
        project.environment(
            availabilityZones=zones,
            pools={"p5": {**P5, "zones": zones[:2]}},
            cache={"fileSystemId": name, "accessPointId": point},
        )

        assert f"--file-system-id {name}" in project.results("cache")[f"{REGION}d"]["fix"]


ROLE = f"arn:aws:iam::{ACCOUNT}:role/"
SERVICES = {
    "MonitorName": "Default-Services-Monitor",
    "MonitorType": "DIMENSIONAL",
    "MonitorDimension": "SERVICE",
    "MonitorArn": f"arn:aws:ce::{ACCOUNT}:anomalymonitor/0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f",
}


class TestPrincipals:
    def test_each_that_exists_is_named_with_where_it_stands(
        self, project: Project, fake: FakeAccount
    ) -> None:
        iam = fake.session(region_name=REGION).client("iam")
        iam.create_role(RoleName="boss", AssumeRolePolicyDocument="{}", Path="/people/")
        iam.create_user(UserName="ann")
        project.environment(
            cluster={"admins": [f"{ROLE}people/boss"], "viewers": [f"arn:aws:iam::{ACCOUNT}:user/ann"]},
            teams={"search": {"principals": [f"{ROLE}people/boss"]}},
        )

        found = project.results("principals")

        assert {each["result"] for each in found.values()} == {"ok"}
        assert found[f"{ROLE}people/boss"]["reason"].startswith("cluster.admins, teams.search.principals:")

    def test_one_that_does_not_exist_would_roll_the_cluster_back(self, project: Project) -> None:
        project.environment(cluster={"admins": [f"{ROLE}nobody"]})

        (found,) = project.results("principals").values()

        assert found["result"] == "problem"
        assert "IAM has no such role" in found["reason"]
        assert "aws iam list-roles" in found["fix"]

    def test_one_under_another_path_is_another_principal(self, project: Project, fake: FakeAccount) -> None:
        iam = fake.session(region_name=REGION).client("iam")
        iam.create_role(RoleName="boss", AssumeRolePolicyDocument="{}", Path="/people/")
        project.environment(cluster={"admins": [f"{ROLE}boss"]})

        (found,) = project.results("principals").values()

        assert (found["result"], f"{ROLE}people/boss" in found["fix"]) == ("problem", True)

    def test_those_of_other_accounts_are_not_asked(self, project: Project) -> None:
        project.environment(cluster={"admins": ["arn:aws:iam::999999999999:role/boss"]})

        (found,) = project.results("principals").values()

        assert found["result"] == "not checked"


class TestRegistry:
    NAME = "ecr-pullthroughcache/hub"

    def ask(self, project: Project, arn: str) -> dict[str, Any]:
        project.environment(registry={"pullThrough": {"credentials": {"docker.io": arn}}})
        (found,) = project.results("registry").values()
        return found

    def test_ecr_can_log_in_with_a_secret_that_is_there(self, project: Project, fake: FakeAccount) -> None:
        client = fake.session(region_name=REGION).client("secretsmanager")
        arn = client.create_secret(Name=self.NAME, SecretString="{}")["ARN"]

        assert self.ask(project, arn)["result"] == "ok"

        client.delete_secret(SecretId=arn)
        assert "is to be deleted" in self.ask(project, arn)["reason"]

    def test_without_the_secret_the_stack_would_fail(self, project: Project) -> None:
        found = self.ask(project, f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{self.NAME}-AbCdEf")

        assert found["result"] == "problem"
        assert f"--name {self.NAME} " in found["fix"]


class TestAnomalies:
    def ask(self, project: Project, monitor: str) -> dict[str, Any]:
        project.environment(cost={"anomalyUsd": 100, "anomalyMonitor": monitor, "emails": ["a@example.com"]})
        (found,) = project.results("anomalies").values()
        return found

    def test_a_second_monitor_of_services_is_refused(self, project: Project, fake: FakeAccount) -> None:
        fake.answers["ce:GetAnomalyMonitors"] = {"AnomalyMonitors": [SERVICES]}

        found = self.ask(project, "services")

        assert found["result"] == "problem"
        assert f"cost: {{anomalyMonitor: {SERVICES['MonitorArn']}}}" in found["fix"]

    def test_the_one_of_this_environment_is_none_too_many(self, project: Project, fake: FakeAccount) -> None:
        ours = {**SERVICES, "MonitorName": "modelyard-lab"}
        fake.answers["ce:GetAnomalyMonitors"] = {"AnomalyMonitors": [ours]}

        assert self.ask(project, "services")["result"] == "ok"

    @pytest.mark.parametrize(
        ("payer", "result"), [("999999999999", "problem"), (ACCOUNT, "ok"), (None, "ok")]
    )
    def test_a_monitor_of_a_tag_is_the_payers(
        self, project: Project, fake: FakeAccount, payer: str | None, result: str
    ) -> None:
        fake.answers["ce:GetAnomalyMonitors"] = {"AnomalyMonitors": []}
        fake.answers["organizations:DescribeOrganization"] = (
            {"Organization": {"MasterAccountId": payer}}
            if payer
            else Error("AWSOrganizationsNotInUseException")
        )

        found = self.ask(project, "tag")

        assert found["result"] == result
        assert (found["fix"] or "").endswith("{anomalyMonitor: services}") is (result == "problem")

    def test_a_monitor_by_arn_must_exist(self, project: Project, fake: FakeAccount) -> None:
        fake.answers["ce:GetAnomalyMonitors"] = {"AnomalyMonitors": [SERVICES]}

        assert self.ask(project, SERVICES["MonitorArn"])["result"] == "ok"
        assert self.ask(project, SERVICES["MonitorArn"].replace("0a1b", "ffff"))["result"] == "problem"


class TestStacks:
    def make(self, fake: FakeAccount, name: str, status: str, *, protected: bool) -> None:
        concern = name.removeprefix("modelyard-lab-")
        fake.answers["cloudformation:DescribeStacks"] = stacks(
            ("lab", concern), status=status, protected=protected
        )

    def test_a_protected_stack_whose_first_create_failed_blocks_the_next(
        self, project: Project, fake: FakeAccount
    ) -> None:
        self.make(fake, "modelyard-lab-secrets", "ROLLBACK_COMPLETE", protected=True)

        (found,) = project.results("stacks").values()

        assert found["result"] == "problem"
        assert [line.split()[2] for line in found["fix"].splitlines()] == [
            "update-termination-protection",
            "delete-stack",
        ]

    def test_the_cluster_has_a_protection_of_its_own(self, project: Project, fake: FakeAccount) -> None:
        self.make(fake, "modelyard-lab-cluster", "ROLLBACK_FAILED", protected=True)

        (found,) = project.results("stacks").values()

        assert "aws eks update-cluster-config --name modelyard-lab --no-deletion-protection" in found["fix"]

    @pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_FAILED", "DELETE_FAILED"])
    def test_a_stuck_stack_is_told(self, project: Project, fake: FakeAccount, status: str) -> None:
        self.make(fake, "modelyard-lab-network", status, protected=False)

        (found,) = project.results("stacks").values()

        assert (found["result"], status in found["reason"]) == ("problem", True)

    @pytest.mark.parametrize("status", ["CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "ROLLBACK_COMPLETE"])
    def test_what_the_next_deploy_leaves_by_itself_is_fine(
        self, project: Project, fake: FakeAccount, status: str
    ) -> None:
        self.make(fake, "modelyard-lab-network", status, protected=False)

        (found,) = project.results("stacks").values()

        assert found["result"] == "ok"


class TestPrerequisites:
    def test_spot_pools_need_the_role_of_spot(self, project: Project, fake: FakeAccount) -> None:
        fake.answers["ec2:GetSpotPlacementScores"] = {"SpotPlacementScores": []}
        project.environment(pools={"p5": {**P5, "capacity": ["spot", "on-demand"]}})

        (lacking,) = project.results("service roles").values()
        fake.answers["iam:GetRole"] = {
            "Role": {
                "Path": "/aws-service-role/spot.amazonaws.com/",
                "RoleName": "AWSServiceRoleForEC2Spot",
                "RoleId": "AROA0123456789ABCDEF",
                "Arn": f"{ROLE}aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot",
                "CreateDate": datetime.now(UTC),
            }
        }
        (having,) = project.results("service roles").values()

        assert lacking["fix"] == "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
        assert having["result"] == "ok"

    def test_pools_without_spot_need_none(self, project: Project) -> None:
        assert project.results("service roles") == {}

    def test_nat_gateways_need_addresses(self, project: Project, fake: FakeAccount) -> None:
        fake.quotas({"L-0263D0A3": 2})
        fake.session(region_name=REGION).client("ec2").allocate_address(Domain="vpc")
        project.environment(network={"natGateways": 2})

        (found,) = project.results("addresses").values()

        assert found["result"] == "problem"
        assert "1 of 2 are used, the NAT gateways need 2" in found["reason"]
        assert "--desired-value 3" in found["fix"]

    def test_a_network_that_exists_has_its_addresses(self, project: Project, fake: FakeAccount) -> None:
        fake.answers["cloudformation:DescribeStacks"] = stacks(("lab", "network"), ("lab", "secrets"))

        assert project.results("addresses") == {}

    def test_names_that_a_destroyed_environment_has_left_are_told(
        self, project: Project, fake: FakeAccount
    ) -> None:
        session = fake.session(region_name=REGION)
        session.client("sqs").create_queue(QueueName="modelyard-lab")
        session.client("s3").create_bucket(
            Bucket=f"modelyard-lab-weights-{ACCOUNT}-{REGION}",
            CreateBucketConfiguration={"LocationConstraint": REGION},
        )
        session.client("iam").create_role(RoleName="modelyard-lab-node", AssumeRolePolicyDocument="{}")
        fake.answers["logs:DescribeLogGroups"] = {
            "logGroups": [
                {"logGroupName": f"/aws/eks/modelyard-lab/cluster{suffix}"} for suffix in ("", "-2")
            ]
        }
        fake.answers["cloudformation:DescribeStacks"] = stacks()
        project.environment(cache={"weightsBucket": True})

        found = project.results("names")

        assert {name: each["result"] for name, each in found.items()} == dict.fromkeys(
            (
                "/aws/eks/modelyard-lab/cluster",
                "modelyard-lab",
                "modelyard-lab-node",
                "lab/clients",
                "lab/hf-token",
                f"modelyard-lab-weights-{ACCOUNT}-{REGION}",
            ),
            "problem",
        )
        assert "--import-existing-resources" in found["/aws/eks/modelyard-lab/cluster"]["fix"]
        assert "save its value" in found["lab/hf-token"]["fix"]
        assert "--import-existing-resources" not in found["modelyard-lab"]["fix"]

    def test_names_of_stacks_that_exist_are_their_own(self, project: Project) -> None:
        assert [each["result"] for each in project.results("names").values()] == ["ok"]


def everything(project: Project, fake: FakeAccount) -> None:
    """An environment and an account in which every check has something to ask."""
    TestCache().make(project, fake)
    TestSubnets().make(fake, f"{REGION}a", "172.31.240.0/24")
    lines = json.loads((project.folder / "environments" / "lab.yaml").read_text(encoding="utf-8"))
    pool = {**P5, "capacity": ["spot", "reserved", "on-demand"], "reservations": ["cr-0f9e8d7c6b5a40312"]}
    project.environment(
        cache=lines["cache"] | {"weightsBucket": True},
        pools={"p5": pool},
        cluster={"admins": [f"{ROLE}boss"], "viewers": [f"arn:aws:iam::{ACCOUNT}:user/ann"]},
        cost={"anomalyUsd": 100, "anomalyMonitor": "tag", "emails": ["a@example.com"]},
    )

    def sometimes_default(asked: dict[str, Any]) -> Any:
        row = {"QuotaCode": asked["QuotaCode"], "QuotaName": "Running", "Value": 0.0}
        return {"Quota": row} if asked["QuotaCode"] == P_ON_DEMAND else Error("NoSuchResourceException")

    answers: dict[str, Answer] = {
        "servicequotas:GetServiceQuota": sometimes_default,
        "servicequotas:GetAWSDefaultServiceQuota": {"Quota": {"QuotaName": "Spot", "Value": 0.0}},
        "ec2:GetSpotPlacementScores": {"SpotPlacementScores": []},
        "ec2:DescribeCapacityReservations": reservation(),
        "ce:GetAnomalyMonitors": {"AnomalyMonitors": []},
        "organizations:DescribeOrganization": {"Organization": {"MasterAccountId": ACCOUNT}},
        "eks:DescribeCluster": {
            "cluster": {
                "version": "1.36",
                "status": "ACTIVE",
                "resourcesVpcConfig": {"vpcId": "vpc-0a1b2c3d"},
            }
        },
        "ec2:DescribeVpcs": {"Vpcs": [{"VpcId": "vpc-0a1b2c3d", "CidrBlock": "10.64.0.0/16"}]},
        **addon("vpc-cni", "v1.20.0", others=("v1.20.0",)),
        **system_nodes("1.36.2-20260714"),
    }
    fake.answers |= answers


def test_the_policy_holds_every_call_that_is_made_and_no_other(project: Project, fake: FakeAccount) -> None:
    everything(project, fake)
    fake.asked.clear()

    project.run("doctor", "--env", "lab")
    existing.there(fake)
    existing.shared(project)
    project.run("doctor", "--env", "lab")
    zones = {f"{REGION}{zone}": f"subnet-0a1b2c3d{number}" for number, zone in enumerate("ac")}
    project.environment(network={"vpc": {"id": "vpc-0a1b2c3d", "privateSubnets": zones}})
    project.run("doctor", "--env", "lab")

    assert fake.permissions == set(policy()["Statement"][0]["Action"])


def test_the_policy_of_cloudformations_role_is_printed_without_asking(
    project: Project, fake: FakeAccount
) -> None:
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/deployers"
    project.environment(permissionsBoundary=boundary)

    answer = project.run("doctor", "--env", "lab", "--deploy-policy")

    assert answer.code == 0, answer.err
    statements = {each["Sid"]: each for each in json.loads(answer.out)["Statement"]}
    assert statements["OwnRoles"]["Condition"] == {"StringEquals": {"iam:PermissionsBoundary": boundary}}
    assert statements["OwnRoles"]["Resource"] == [f"arn:aws:iam::{ACCOUNT}:role/modelyard-lab-*"]
    assert fake.asked == []


def test_every_call_of_the_policy_only_reads() -> None:
    verbs = ("Describe", "Get", "List")

    assert all(each.partition(":")[2].startswith(verbs) for each in policy()["Statement"][0]["Action"])


def test_the_policy_is_printed_without_an_account_or_an_environment(
    project: Project, fake: FakeAccount
) -> None:
    answer = project.run("doctor", "--policy", "--env", "nowhere")

    assert (answer.code, json.loads(answer.out), fake.asked) == (0, policy(), [])


def test_a_check_cannot_ask_for_what_it_does_not_declare(fake: FakeAccount) -> None:
    from modelyard.live.account.preflight import _limited

    ask = _limited(Account(fake.session(region_name=REGION), REGION), CHECKS[0])

    with pytest.raises(LookupError, match="ec2:DescribeVpcs"):
        ask(Operation("ec2", "DescribeVpcs"))


def test_an_environment_that_cannot_be_read_is_told_as_plan_tells_it(project: Project) -> None:
    answer = project.run("doctor", "--env", "nowhere")

    assert answer.code == 1
    assert "ENV002" in answer.err


def test_misuse_has_its_own_exit_code(project: Project) -> None:
    assert project.run("doctor", "--nonsense").code == 64


def test_without_boto3_one_line_says_what_to_install(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "boto3", None)

    answer = project.run("doctor", "--env", "lab")

    assert answer.code == 1
    assert (
        answer.err
        == "modelyard: boto3 is not installed; `modelyard doctor` needs the extra modelyard[account]\n"
    )
