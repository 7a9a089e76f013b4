"""The queue that Karpenter reads notices of EC2 from, in words as EventBridge brings them."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from moto import mock_aws

from modelyard.spec import Environment
from tests.account.fake_account import FakeAccount
from tests.account.served_account import served

_ROUND = 1.0  # seconds that an empty queue is listened to


class Notices:
    """Sent and not read yet; `read` counts those that Karpenter has dealt with."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._waiting: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._numbers = itertools.count(1)
        self.read = 0

    def spot_interruption(self, instance: str) -> None:
        """Two minutes before EC2 takes a spot instance back."""
        detail = {"instance-id": instance, "instance-action": "terminate"}
        self._send("EC2 Spot Instance Interruption Warning", instance, detail)

    def end(self, instance: str) -> None:
        """Of an instance, whoever ended it."""
        detail = {"instance-id": instance, "state": "terminated"}
        self._send("EC2 Instance State-change Notification", instance, detail)

    def _send(self, kind: str, instance: str, detail: dict[str, str]) -> None:
        account, region = self._environment.account, self._environment.region
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        number = next(self._numbers)
        body = {
            "version": "0",
            "id": f"12345678-1234-1234-1234-{number:012d}",
            "detail-type": kind,
            "source": "aws.ec2",
            "account": account,
            "time": now,
            "region": region,
            "resources": [f"arn:aws:ec2:{region}:{account}:instance/{instance}"],
            "detail": detail,
        }
        with self._news:
            self._waiting.append(
                {"MessageId": str(number), "ReceiptHandle": str(number), "Body": json.dumps(body)}
            )
            self._news.notify()

    def _receive(self, _: dict[str, Any]) -> dict[str, Any]:
        with self._news:
            self._news.wait_for(lambda: self._waiting, _ROUND)
            messages, self._waiting = self._waiting, []
        return {"Messages": messages} if messages else {}

    def _delete(self, _: dict[str, Any]) -> dict[str, Any]:
        self.read += 1
        return {}

    def answers(self) -> dict[str, Any]:
        """By permission."""
        environment = self._environment
        host = f"https://sqs.{environment.region}.amazonaws.com"
        address = {"QueueUrl": f"{host}/{environment.account}/{environment.cluster_name}"}
        return {
            "sqs:GetQueueUrl": address,
            "sqs:ReceiveMessage": self._receive,
            "sqs:DeleteMessage": self._delete,
        }


@contextmanager
def interruptions(environment: Environment) -> Iterator[tuple[Notices, dict[str, str]]]:
    """A queue behind an address of its own, since listening to it blocks, and Karpenter's settings for it."""
    notices, fake = Notices(environment), FakeAccount()
    fake.answers |= notices.answers()
    with mock_aws(), served(fake) as variables:
        yield (
            notices,
            {
                "INTERRUPTION_QUEUE": environment.cluster_name,
                "AWS_ENDPOINT_URL_SQS": variables["AWS_ENDPOINT_URL"],
            },
        )
