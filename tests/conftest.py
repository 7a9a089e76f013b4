"""Distribution of the suite over processes: by file, the longest files first, and long tests one by one."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A slow machine draws slowly; nothing is wrong with it.
settings.register_profile("modelyard", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("modelyard")

# pytest imports readline, which sets COLUMNS for every child process, behind the back of os.environ.
os.unsetenv("COLUMNS")
os.environ.pop("COLUMNS", None)

APART = (
    "tests/contract/test_rendering.py",
    "tests/contract/test_validate_patches.py",
    "tests/e2e/test_changes.py::test_every_kind_of_platform_comes_up_and_goes",
    "tests/e2e/test_docs.py::test_commands_of_the_page_run",
    "tests/e2e/test_make_up.py",
    "tests/property/test_placement.py",
    "tests/synth/test_cdk_cli.py",
)
"""Tests that share nothing: each may run beside the others of its file."""

TOGETHER = (
    "tests/controls/test_planted_mistakes.py",
    "tests/controls/test_shipped_apps.py",
    "tests/controls/test_template_rules.py",
)
"""Files that look at one survey, which takes minutes."""

LONG = (
    "tests/e2e/test_promotion_commands.py",
    "tests/promotion/test_steps.py",
    *TOGETHER,
    "tests/e2e/test_changes.py",
    "tests/controls",
    "tests/e2e/test_docs.py",
    "tests/e2e",
    "tests/promotion",
    "tests/synth",
    "tests/property",
    "tests/packaging",
    "tests/contract",
    "tests/account",
    "tests/operations",
)
"""Where a test takes longest, longest first: what takes minutes must not be begun last."""


def _rank(item: pytest.Item) -> int:
    return next((at for at, place in enumerate(LONG) if item.nodeid.startswith(place)), len(LONG))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=_rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler.loadscope import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return nodeid if nodeid.startswith(APART) else TOGETHER[0] if file in TOGETHER else file

    config.option.loadscopereorder = False
    return ByFile(config, log)
