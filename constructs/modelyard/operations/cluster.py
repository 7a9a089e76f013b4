"""A cluster as the teardown needs it: objects by kind, deleted or patched by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A kind of the Kubernetes API."""

    group: str  # "" for the core group
    version: str
    name: str
    plural: str
    namespaced: bool = True

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Item:
    """An object that exists. `deleting`: its deletion was asked for, and waits for `finalizers`."""

    kind: Kind
    namespace: str
    name: str
    finalizers: tuple[str, ...] = ()
    deleting: bool = False
    owned: bool = False  # by another object, which deletes it
    content: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


class Unreachable(Exception):
    """The cluster cannot be asked; the text says why."""


class Cluster:
    """A cluster by its kubeconfig context."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def items(self, kind: Kind, namespace: str = "*") -> list[Item]:
        """Objects of `kind`; none where the cluster does not know the kind.

        Raises:
            Unreachable: no answer, or a refusal.
        """
        with _as_unreachable():
            try:
                found = self._client.list(
                    _resource(kind), **({"namespace": namespace} if kind.namespaced else {})
                )
                return [_item(kind, each.to_dict()) for each in found]
            except _api_error() as error:
                if error.status.code == 404:
                    return []
                raise

    def delete(self, item: Item) -> None:
        """Ask for the deletion; nothing happens to what is gone."""
        with _as_unreachable():
            try:
                self._client.delete(_resource(item.kind), item.name, **_where(item))
            except _api_error() as error:
                if error.status.code != 404:
                    raise

    def patch(self, item: Item, change: Mapping[str, Any]) -> None:
        """Merge `change` into the object."""
        from lightkube.types import PatchType

        with _as_unreachable():
            self._client.patch(
                _resource(item.kind), item.name, dict(change), patch_type=PatchType.MERGE, **_where(item)
            )


def connect(context: str | None = None) -> Cluster:
    """The cluster of a kubeconfig context; default: the current one.

    Raises:
        ModuleNotFoundError: lightkube is not installed.
        Unreachable: there is no such context.
    """
    from lightkube import Client, KubeConfig
    from lightkube.core.exceptions import ConfigError

    try:
        config = KubeConfig.from_env().get(context)
        if config is None:
            raise Unreachable("no kubeconfig: `aws eks update-kubeconfig --name CLUSTER` writes one")
        return Cluster(Client(config=config, trust_env=False))
    except (ConfigError, OSError) as error:
        raise Unreachable(f"kubeconfig: {error}") from None


def named(items: list[Item], most: int = 5) -> str:
    """Some items in words: the first few by name, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


@contextmanager
def _as_unreachable() -> Iterator[None]:
    """Turn a refusal or a missing answer into words."""
    import httpx2  # type: ignore[import-not-found,unused-ignore]

    try:
        yield
    except _api_error() as error:
        raise Unreachable(f"the cluster answered {error.status.code}: {error.status.message}") from None
    except httpx2.HTTPError as error:
        raise Unreachable(f"the cluster does not answer: {error or type(error).__name__}") from None


def _api_error() -> Any:
    from lightkube.core.exceptions import ApiError

    return ApiError


def _resource(kind: Kind) -> Any:
    from lightkube.generic_resource import create_global_resource, create_namespaced_resource

    create = create_namespaced_resource if kind.namespaced else create_global_resource
    return create(kind.group, kind.version, kind.name, kind.plural)


def _where(item: Item) -> dict[str, str]:
    return {"namespace": item.namespace} if item.kind.namespaced else {}


def _item(kind: Kind, content: Mapping[str, Any]) -> Item:
    metadata = content["metadata"]
    return Item(
        kind=kind,
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        finalizers=tuple(metadata.get("finalizers") or ()),
        deleting=bool(metadata.get("deletionTimestamp")),
        owned=bool(metadata.get("ownerReferences")),
        content=content,
    )
