"""The embedded AWS as a client sees it. No client made here can reach another AWS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

# A path that cannot exist: the user's configuration and credentials are not read.
NO_FILE = os.path.join(os.devnull, "none")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A running server, and the account and region to use."""

    url: str
    pid: int
    account: str = "000000000000"  # twelve digits as the access key: MiniStack takes them as the account
    region: str = "us-east-1"

    def client(self, service: str) -> Any:
        """A boto3 client that ignores the user's AWS_* variables, profiles and proxies."""
        import boto3  # type: ignore[import-untyped]
        import botocore.config  # type: ignore[import-untyped]
        import botocore.session  # type: ignore[import-untyped]

        session = botocore.session.Session(
            session_vars={
                "profile": (None, None, None, None),
                "config_file": (None, None, NO_FILE, None),
                "credentials_file": (None, None, NO_FILE, None),
            }
        )
        session.set_credentials(self.account, "local")
        return boto3.Session(botocore_session=session, region_name=self.region).client(
            service,
            endpoint_url=self.url,
            config=botocore.config.Config(
                retries={"total_max_attempts": 2}, s3={"addressing_style": "path"}, proxies={}
            ),
        )


class Clients:
    """One boto3 client per service: creating one takes longer than a call."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.get: Callable[[str], Any] = cache(endpoint.client)
        self.account = endpoint.account


def values(clients: Clients, service: str, operation: str, path: str, **parameters: Any) -> list[Any]:
    """Every value at a JMESPath, over all pages of a listing."""
    import jmespath  # type: ignore[import-untyped]

    client = clients.get(service)
    if client.can_paginate(operation):
        pages: Iterable[Any] = client.get_paginator(operation).paginate(**parameters)
    else:
        pages = [getattr(client, operation)(**parameters)]
    return [value for page in pages for value in jmespath.search(path, page) or []]
