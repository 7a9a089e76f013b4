"""Calls to a cluster: list objects by kind, delete or patch them by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar

from modelyard.live.api.answers import Denied, Silent, Unreachable
from modelyard.live.api.kubeconfig import context_of, server_name
from modelyard.spec import Environment

T = TypeVar("T")

_BUSY_PAUSES_S: Final = (0.25, 0.5, 1, 2, 4, 8)


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
        """Its resource name in RBAC and kubectl."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True)
class Item:
    """An existing object. `deleting`: it is being deleted and waits for `finalizers`."""

    kind: Kind
    namespace: str
    name: str
    finalizers: tuple[str, ...] = ()
    deleting: bool = False
    owned: bool = False  # has an owner, whose deletion deletes it
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

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def items(self, kind: Kind, namespace: str = "*") -> list[Item]:
        """Objects of `kind`, sorted by namespace and name; empty if the cluster does not know the kind.

        Raises:
            Unreachable: no answer, or a refusal.
        """
        where = {"namespace": namespace} if kind.namespaced else {}
        with _in_words(f"list {kind.resource}", absent_is_fine=True):
            found = _patiently(lambda: [*self._client.list(_resource(kind), **where)])
            items = [_item(kind, each.to_dict()) for each in found]
            return sorted(items, key=lambda item: (item.namespace, item.name))
        return []

    def delete(self, item: Item) -> None:
        """Request the deletion; no error if the object is gone.

        Raises:
            Unreachable: no answer, or a refusal.
        """
        from lightkube.types import CascadeType

        with _in_words(f"delete {item}", absent_is_fine=True):
            # Explicit for each kind: otherwise the API server orphans the pods of a Job.
            _patiently(
                lambda: self._client.delete(
                    _resource(item.kind), item.name, cascade=CascadeType.BACKGROUND, **_where(item)
                )
            )

    def patch(self, item: Item, change: Mapping[str, Any]) -> None:
        """Merge `change` into the object.

        Raises:
            Unreachable: no answer, or a refusal.
        """
        from lightkube.types import PatchType

        with _in_words(f"patch {item}", absent_is_fine=True):
            _patiently(
                lambda: self._client.patch(
                    _resource(item.kind), item.name, dict(change), patch_type=PatchType.MERGE, **_where(item)
                )
            )

    def refusal(self, kind: Kind, content: Mapping[str, Any]) -> str | None:
        """Why the API server would not accept `content`; None: it would. A dry run: nothing is kept.

        Raises:
            Denied: the user may not ask for it; Unreachable: no answer.
        """
        from lightkube.core.exceptions import ApiError
        from lightkube.types import PatchType

        metadata = content["metadata"]
        where = {"namespace": metadata["namespace"]} if kind.namespaced else {}
        with _in_words(f"a dry run of {kind} {metadata['name']}"):
            try:
                _patiently(
                    lambda: self._client.patch(
                        _resource(kind),
                        metadata["name"],
                        dict(content),
                        patch_type=PatchType.APPLY,
                        field_manager="modelyard",
                        force=True,
                        dry_run=True,
                        **where,
                    )
                )
            except ApiError as error:
                code, said = error.status.code or 0, error.status.message or ""
                if code == 401 or (code == 403 and f'cannot patch resource "{kind.plural}"' in said):
                    raise Denied(f"the user of the context may not patch {kind.resource}") from None
                if code >= 500 or code == 429:
                    raise
                return " ".join(said.split())
        return None


def built_in_kind(version: str, name: str) -> Kind | None:
    """A kind of Kubernetes itself, by `apiVersion` and `kind`."""
    from lightkube.core.exceptions import LoadResourceError
    from lightkube.core.resource import NamespacedResource
    from lightkube.core.resource_registry import resource_registry

    try:
        found = resource_registry.load(version, name)
    except LoadResourceError:
        return None
    info = found._api_info
    return Kind(
        info.resource.group,
        info.resource.version,
        name,
        info.plural,
        namespaced=issubclass(found, NamespacedResource),
    )


def open_cluster(
    environment: Environment, context: str | None = None, *, foreign: bool = False
) -> LiveCluster:
    """The environment's cluster, by its entry in the kubeconfig; with `foreign`, the cluster of `context`,
    whosever it is.

    Default of `context`: the one whose cluster has the environment's ARN, as `aws eks update-kubeconfig`
    writes it. The current context is ignored: it may be any cluster, and this deletes objects.

    Raises:
        ModuleNotFoundError: lightkube is not installed.
        Unreachable: the context does not exist; WrongContext: it belongs to another cluster.
    """
    from lightkube import Client

    config = context_of(environment, context, foreign=foreign)
    if config.user is None:
        raise Unreachable(f"kubeconfig: context {config.context_name} names no user")
    with _in_words("connect"):
        client = Client(config=config, transport=_named_transport(config, server_name(config)))
        return LiveCluster(client, config.context_name)
    raise AssertionError


def _named_transport(config: Any, name: str | None) -> Any:
    """Connections that expect a certificate of `name`: lightkube ignores `tls-server-name`."""
    if name is None:
        return None
    import httpx2
    from lightkube.config.client_adapter import verify_cluster

    class Named(httpx2.HTTPTransport):
        def handle_request(self, request: Any) -> Any:
            request.extensions = {**request.extensions, "sni_hostname": name}
            return super().handle_request(request)

    return Named(verify=verify_cluster(config.cluster, config.user, config.abs_file))


def named(items: list[Item], most: int = 3) -> str:
    """Some items as text: the first few by name, and how many more."""
    shown = ", ".join(str(item) for item in items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def _patiently(call: Callable[[], T]) -> T:
    """What `call` answers, once the API server is no longer busy: it says 429 while it has too many requests,
    and for a moment after a CRD has come."""
    import httpx2

    for pause in _BUSY_PAUSES_S:
        try:
            return call()
        except httpx2.HTTPStatusError as error:
            if error.response.status_code != 429:
                raise
        time.sleep(pause)
    return call()


@contextmanager
def _in_words(doing: str, *, absent_is_fine: bool = False) -> Iterator[None]:
    """Turn a refusal or a missing answer into a readable reason.

    404: the object is gone, or the cluster does not have the kind; then the body is not even JSON.
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
        raise Silent(f"the cluster does not answer: {str(error) or type(error).__name__}") from None
    except msgspec.MsgspecError as error:
        raise Unreachable(f"what answers is no Kubernetes API: {error}") from None
    except (ConfigError, OSError, ValueError) as error:  # a credential plugin fails, or does not exist
        raise Unreachable(f"kubeconfig: {' '.join(str(error).split())}") from None


@cache
def _resource(kind: Kind) -> Any:
    from lightkube import generic_resource as generic

    # generic_resource.create_* cannot redefine classes of the core group.
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
