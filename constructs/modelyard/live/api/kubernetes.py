"""Questions to a cluster: objects by kind, deleted or patched by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from modelyard.live.api.answers import Unreachable
from modelyard.live.api.kubeconfig import context_of
from modelyard.spec import Environment


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

    @property
    def resource(self) -> str:
        """What permissions and kubectl call it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True)
class Item:
    """An object that exists. `deleting`: its deletion was asked for, and waits for `finalizers`."""

    kind: Kind
    namespace: str
    name: str
    finalizers: tuple[str, ...] = ()
    deleting: bool = False
    owned: bool = False  # by another object, which takes it along
    content: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False, repr=False)

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.content.get("spec") or {}

    @property
    def status(self) -> Mapping[str, Any]:
        return self.content.get("status") or {}

    @property
    def labels(self) -> Mapping[str, str]:
        return self.content["metadata"].get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.content["metadata"].get("annotations") or {}


class LiveCluster:
    """A cluster, through lightkube."""

    def __init__(self, client: Any, context: str = "") -> None:
        self._client = client
        self.context = context

    def items(self, kind: Kind, namespace: str = "*") -> list[Item]:
        """Objects of `kind`, by namespace and name; none where the cluster does not know the kind.

        Raises:
            Unreachable: no answer, or a refusal.
        """
        where = {"namespace": namespace} if kind.namespaced else {}
        with _in_words(f"list {kind.resource}", absent_is_fine=True):
            found = [_item(kind, each.to_dict()) for each in self._client.list(_resource(kind), **where)]
            return sorted(found, key=lambda item: (item.namespace, item.name))
        return []

    def delete(self, item: Item) -> None:
        """Ask for the deletion; nothing happens to what is gone.

        Raises:
            Unreachable: no answer, or a refusal.
        """
        from lightkube.types import CascadeType

        with _in_words(f"delete {item}", absent_is_fine=True):
            # Said for each kind: without it the API server orphans the pods of a Job.
            self._client.delete(
                _resource(item.kind), item.name, cascade=CascadeType.BACKGROUND, **_where(item)
            )

    def patch(self, item: Item, change: Mapping[str, Any]) -> None:
        """Merge `change` into the object.

        Raises:
            Unreachable: no answer, or a refusal.
        """
        from lightkube.types import PatchType

        with _in_words(f"patch {item}", absent_is_fine=True):
            self._client.patch(
                _resource(item.kind), item.name, dict(change), patch_type=PatchType.MERGE, **_where(item)
            )


def open_cluster(environment: Environment, context: str | None = None) -> LiveCluster:
    """The environment's cluster, by its entry in the kubeconfig.

    Default of `context`: the one whose cluster bears the ARN, as `aws eks update-kubeconfig` writes it. The
    current context counts for nothing: it may be of any cluster, and this is about deleting.

    Raises:
        ModuleNotFoundError: lightkube is not installed.
        Unreachable: there is no such context; WrongContext: it is of another cluster.
    """
    from lightkube import Client

    config = context_of(environment, context)
    if config.user is None:
        raise Unreachable(f"kubeconfig: context {config.context_name} names no user")
    with _in_words("connect"):
        return LiveCluster(Client(config=config), config.context_name)
    raise AssertionError


def named(items: list[Item], most: int = 3) -> str:
    """Some items in words: the first few by name, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


@contextmanager
def _in_words(doing: str, *, absent_is_fine: bool = False) -> Iterator[None]:
    """Turn a refusal or a missing answer into words.

    404 is of an object that went, or of a kind that the cluster does not have: then the answer is not even
    JSON.
    """
    import httpx2
    import msgspec
    from lightkube.core.exceptions import ApiError, ConfigError

    try:
        yield
    except httpx2.HTTPStatusError as error:
        code = error.response.status_code
        if code == 404 and absent_is_fine:
            return
        said = error.status.message if isinstance(error, ApiError) else error.response.reason_phrase
        raise Unreachable(f"the cluster answered {code} to {doing}: {said}") from None
    except httpx2.HTTPError as error:
        raise Unreachable(f"the cluster does not answer: {str(error) or type(error).__name__}") from None
    except msgspec.MsgspecError as error:
        raise Unreachable(f"what answers is no Kubernetes API: {error}") from None
    except (ConfigError, OSError, ValueError) as error:  # a credential plugin that fails, or does not exist
        raise Unreachable(f"kubeconfig: {' '.join(str(error).split())}") from None


@cache
def _resource(kind: Kind) -> Any:
    from lightkube import generic_resource as generic

    # Not by generic_resource.create_*: they know their own classes of the core group no second time.
    base = generic.GenericNamespacedResource if kind.namespaced else generic.GenericGlobalResource
    info = generic.create_api_info(kind.group, kind.version, kind.name, kind.plural)
    return type(kind.name, (base,), {"_api_info": info})


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
