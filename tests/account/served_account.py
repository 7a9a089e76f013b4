"""The fake account behind an HTTP address, for commands in separate processes: AWS_ENDPOINT_URL points to it.

moto's own server needs packages that nothing else here needs. moto's routers, parsers and serialisers parse
the request and write the answer; in between, boto3 calls the fake account in this process.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from botocore import xform_name  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from moto import mock_aws
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

from tests.account.fake_account import FakeAccount, healthy

_SCOPE = re.compile(r"Credential=[^/]+/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")
_SERVICES = {"servicequotas": "service-quotas", "elasticfilesystem": "efs"}


_CONSTANT: dict[tuple[str, str, str], tuple[int, dict[str, str], bytes]] = {}
"""Answers by region, operation and parameters, for the whole process."""

Clients = dict[tuple[str, str], Any]
"""By service and region; making one takes longer than most answers."""


class _AwsError(Exception):
    """An error in the shape that moto's serialisers write."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def _answer(
    fake: FakeAccount, request: Any, clients: Clients, constant: Collection[str]
) -> tuple[int, dict[str, str], bytes]:
    scope = _SCOPE.search(request.headers["Authorization"])
    assert scope, "the request is not signed"
    service = _SERVICES.get(scope["service"], scope["service"])
    model = get_service_model(service)
    operation, uri_params = get_service_router(service).match(request)
    protocol = determine_request_protocol(model, request.content_type)
    asked = PROTOCOL_PARSERS[protocol](operation).parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.data,
            "url_path": request.path,
            "url_params": uri_params,
        }
    )
    question = (scope["region"], operation.name, json.dumps(asked, default=str, sort_keys=True))
    if question in _CONSTANT:
        return _CONSTANT[question]
    key = (service, scope["region"])
    if key not in clients:
        clients[key] = fake.session(region_name=scope["region"]).client(service)
    client = clients[key]
    result: Any
    try:
        result = getattr(client, xform_name(operation.name))(**asked)
        result.pop("ResponseMetadata")
    except ClientError as error:
        result = _AwsError(error.response["Error"]["Code"], error.response["Error"]["Message"])
    written = get_serializer_class(service, protocol)(operation).serialize(result)
    body = written["body"]
    answer = (
        written["status_code"],
        dict(written["headers"]),
        body.encode() if isinstance(body, str) else body,
    )
    if operation.name in constant:
        _CONSTANT[question] = answer
    return answer


class _Server(HTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that was ended in the middle of its question is no news."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def served(fake: FakeAccount, constant: Collection[str] = ()) -> Iterator[dict[str, str]]:
    """The environment variables with which a process meets `fake`.

    `constant`: operations that answer the same question always alike, whatever the account.
    """

    clients: Clients = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            url = f"http://{self.headers['Host']}{self.path}"
            request = Request.from_primitives(self.command, url, dict(self.headers), body)
            status, headers, answer = _answer(fake, request, clients, constant)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # a client that ended while it was waiting
                self.wfile.write(answer)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def account_of_prod() -> Iterator[dict[str, str]]:
    """What `environments/prod.yaml` describes, as the stacks leave it: only the token is not put in yet."""
    region, account = "us-east-2", "333333333333"
    with mock_aws():
        fake = FakeAccount()
        healthy(fake, region)
        now = datetime.now(UTC)

        def reservation(asked: dict[str, Any]) -> dict[str, Any]:
            (name,) = asked["CapacityReservationIds"]
            row = {
                "CapacityReservationId": name,
                "InstanceType": "trn2.48xlarge",
                "AvailabilityZone": f"{region}a" if name.endswith("2") else f"{region}c",
                "State": "active",
                "TotalInstanceCount": 1,
                "AvailableInstanceCount": 1,
            }
            return {"CapacityReservations": [row]}

        def product(asked: dict[str, Any]) -> dict[str, Any]:
            offer = '{"priceDimensions": {"R": {"unit": "Hrs", "pricePerUnit": {"USD": "2.5"}}}}'
            return {"PriceList": [f'{{"product": {{}}, "terms": {{"OnDemand": {{"O": {offer}}}}}}}']}

        spot = {
            "InstanceType": "g6e.xlarge",
            "AvailabilityZone": f"{region}a",
            "SpotPrice": "0.9",
            "Timestamp": now,
        }

        def role(asked: Any) -> Any:
            """People's roles are there; those of the environment come with its deploy."""
            name = asked["RoleName"]
            if name.startswith("modelyard-"):
                raise ClientError({"Error": {"Code": "NoSuchEntity", "Message": name}}, "GetRole")
            arn = f"arn:aws:iam::{account}:role/{name}"
            found = {"Path": "/", "RoleName": name, "RoleId": "AROA0123456789ABCDEF", "Arn": arn}
            return {"Role": {**found, "CreateDate": now}}

        fake.answers |= {
            "sts:GetCallerIdentity": {
                "Account": account,
                "Arn": f"arn:aws:iam::{account}:user/ann",
                "UserId": "A",
            },
            "ec2:DescribeCapacityReservations": reservation,
            "ec2:DescribeSpotPriceHistory": {"SpotPriceHistory": [spot]},
            "pricing:GetProducts": product,
            "iam:GetRole": role,
            "ce:GetAnomalyMonitors": {"AnomalyMonitors": []},
        }
        secrets = fake.session(region_name=region).client("secretsmanager")
        secrets.create_secret(Name="prod/inference/hf-token")
        secrets.create_secret(Name="prod/inference/pagerduty")
        with served(fake) as variables:
            yield variables
