"""One control plane for all modules, and what is in it for one test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane, control_plane
from tests.cluster.programs import BUILT, definitions


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The programs of .ci/install_control_plane.py, started once."""
    if not BUILT.is_file():
        pytest.skip("no control plane is built: make e2e")
    with control_plane(tmp_path_factory.mktemp("control-plane")) as started:
        yield started


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Iterator[Api]:
    with plane.client() as client:
        yield client


@pytest.fixture(scope="session")
def installed(api: Api) -> Cluster:
    """The cluster with every CRD that this machine has."""
    named = os.environ.get("MODELYARD_CRDS")
    started = Cluster(api)
    started.define([*([Path(named)] if named else []), *definitions()])
    return started


@pytest.fixture
def cluster(installed: Cluster) -> Iterator[Cluster]:
    """Empty before and after the test."""
    yield installed
    installed.clear()
