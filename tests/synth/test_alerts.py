"""The stack of alerts: a topic that only people and Alertmanager share, and topics that are there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from modelyard.spec import Environment
from tests.synth.conftest import Synthesis, environment_file

THEIRS = "arn:aws:sns:us-east-2:444444444444:on-call"
Synthesise = Callable[[str, dict[str, Any]], Synthesis]


def paged(receivers: dict[str, Any]) -> dict[str, Any]:
    data = environment_file("local")
    data["monitoring"]["receivers"] = receivers
    return data


def statements(synthesis: Synthesis) -> dict[str, Any]:
    (policy,) = synthesis.properties("Alerts", "AWS::IAM::Policy")
    return {str(each["Action"]): each for each in policy["PolicyDocument"]["Statement"]}


def test_people_confirm_an_encrypted_topic_of_the_name_that_alertmanager_is_told(
    synthesise: Synthesise,
) -> None:
    data = paged({"mail": {"sns": {"emails": ["a@example.com", "b@example.com"]}}})
    alerts = synthesise("mail", data)
    topic = alerts.only("Alerts", "AWS::SNS::Topic")

    assert topic["KmsMasterKeyId"]
    assert Environment.model_validate(data).alert_topic.endswith(f":{topic['TopicName']}")
    endpoints = {each["Endpoint"] for each in alerts.properties("Alerts", "AWS::SNS::Subscription")}
    assert endpoints == {"a@example.com", "b@example.com"}


def test_alertmanager_alone_may_publish_and_only_there(synthesise: Synthesise) -> None:
    alerts = synthesise("publisher", paged({"mail": {"sns": {"emails": ["a@example.com"]}}}))
    association = alerts.only("Alerts", "AWS::EKS::PodIdentityAssociation")
    allowed = statements(alerts)

    assert (association["Namespace"], association["ServiceAccount"]) == ("monitoring", "alertmanager")
    assert set(allowed) == {"sns:Publish", "['kms:Decrypt', 'kms:GenerateDataKey']"}
    assert "*" not in json.dumps([each["Resource"] for each in allowed.values()])


def test_a_topic_that_is_there_needs_no_topic_and_no_key(synthesise: Synthesise) -> None:
    alerts = synthesise("theirs", paged({"theirs": {"sns": {"topic": THEIRS}}}))

    assert alerts.properties("Alerts", "AWS::SNS::Topic") == []
    assert alerts.properties("Alerts", "AWS::KMS::Key") == []
    assert statements(alerts)["sns:Publish"]["Resource"] == THEIRS


def test_who_pages_by_slack_alone_has_no_stack(synthesise: Synthesise) -> None:
    slack = {"chat": {"slack": {"webhook": "hf-token", "channel": "#llm"}}}

    assert "Alerts" not in synthesise("slack", paged(slack)).templates
