"""One running server per plan for all modules of a session: starting one takes minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from modelyard.planning import ModelPlan
from tests.engine.live_server import PLAN, Server, running

_STOPS = "server_to_stop"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What stops the shared server comes last, in whichever module it stands."""
    items.sort(key=lambda item: _STOPS in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[ModelPlan], Server]]:
    """A running server of a plan: the same one for plans that are alike."""
    started: list[Server] = []
    with ExitStack() as stack:

        def find(plan: ModelPlan) -> Server:
            for server in started:
                if server.plan == plan:
                    return server
            started.append(stack.enter_context(running(plan, tmp_path_factory.mktemp("vllm"))))
            return started[-1]

        yield find


@pytest.fixture(scope="session")
def server(serve: Callable[[ModelPlan], Server]) -> Server:
    """The server of `PLAN`."""
    return serve(PLAN)


@pytest.fixture
def server_to_stop(server: Server) -> Server:
    """The server of `PLAN`, for the one test that stops it: no other test runs after it."""
    return server
