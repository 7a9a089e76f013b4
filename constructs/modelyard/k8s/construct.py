"""Plain data as children of a cdk8s construct."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from cdk8s import ApiObject, ApiObjectMetadata, JsonPatch
from constructs import Construct

from modelyard.objects.manifest import Manifest

# Top-level fields that ApiObject takes as arguments; all others are added to it.
_OWN = ("apiVersion", "kind", "metadata")
_METADATA = ("name", "namespace", "labels", "annotations")


class ManifestConstruct(Construct):
    """Objects from plain data; each is an ApiObject, so that a chart can still change it.

    Args:
        manifests: The objects; each can be looked up by kind and name.
    """

    def __init__(self, scope: Construct, construct_id: str, manifests: Iterable[Manifest]) -> None:
        super().__init__(scope, construct_id)
        self.objects: Mapping[tuple[str, str], ApiObject] = MappingProxyType(
            {_key(item): _api_object(self, item) for item in manifests}
        )
        """Kind and name to the ApiObject."""

    def object(self, kind: str, name: str | None = None) -> ApiObject:
        """The object of `kind`, and of `name` if there are several; change it with `add_json_patch`.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = [item for (k, n), item in self.objects.items() if k == kind and name in (None, n)]
        if len(found) != 1:
            known = ", ".join(f"{k} {n}" for k, n in self.objects)
            raise LookupError(f"{len(found)} objects are {kind} {name or ''}; there are {known}")
        return found[0]


def _key(item: Manifest) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


def _api_object(scope: Construct, item: Manifest) -> ApiObject:
    metadata = item["metadata"]
    result = ApiObject(
        scope,
        "-".join(_key(item)),
        api_version=item["apiVersion"],
        kind=item["kind"],
        metadata=ApiObjectMetadata(**{name: metadata[name] for name in _METADATA if name in metadata}),
    )
    for field, value in sorted(item.items()):
        if field not in _OWN:
            result.add_json_patch(JsonPatch.add(f"/{field}", value))
    return result
