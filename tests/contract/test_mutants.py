"""No safety setting can be removed from the rendered objects unnoticed."""

from __future__ import annotations

import pytest

from tests.contract.mutants import catch, caught_in, rendered
from tests.contract.mutations import MUTATIONS, Mutation


@pytest.mark.parametrize("environment", ["prod", "serving", "existing", "shared"])
def test_what_is_rendered_is_caught_by_nothing(environment: str) -> None:
    """Or every mutation would seem to be noticed."""
    planned, objects = rendered(environment)

    assert caught_in(planned, list(objects)) is None


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.kind}: {m.name}")
def test_a_check_notices_that_the_line_is_gone(mutation: Mutation) -> None:
    caught = catch(mutation)

    assert caught is not None
    assert caught.message


def test_every_line_is_taken_out_once() -> None:
    changes = [(m.environment, m.kind, m.object, m.path, str(m.value)) for m in MUTATIONS]

    assert len(set(changes)) == len(changes) >= 40
    assert len({mutation.name for mutation in MUTATIONS}) == len(changes)
