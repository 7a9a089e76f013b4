"""An invalid kubeconfig gives a one-line reason, in every command that calls a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelyard.live.api.answers import Unreachable
from modelyard.live.api.kubeconfig import context_of
from tests.unit.given import an_environment


@pytest.mark.parametrize(
    "text",
    [
        *("a: [", "[]", "a: &a [*a]", "contexts: 1", "[" * 3000, "\0", "a: !!python/object:os.system x"),
        "apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: 5}]\nclusters: []\nusers: []",
    ],
)
def test_a_kubeconfig_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(path))

    with pytest.raises(Unreachable) as refused:
        context_of(an_environment(), None)

    assert str(refused.value).startswith(f"kubeconfig {path}: ")
    assert len(str(refused.value)) < 400
