"""From where an environment pulls images and charts: a mirror, or a cache in Amazon ECR."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from modelyard.reading import suggestion
from modelyard.releases import ImageRoutes, upstreams
from modelyard.spec.document import Document

_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+(:[0-9]{2,5})?"
_PATH = r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"

HOST_PATTERN: Final = rf"^{_HOST}$"
PLACE_PATTERN: Final = rf"^{_HOST}{_PATH}$"
OCI_PATTERN: Final = rf"^oci://{_HOST}{_PATH}$"
CREDENTIAL_PATTERN: Final = (
    r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:"
    r"ecr-pullthroughcache/[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$"
)

RegistryHost = Annotated[str, Field(pattern=HOST_PATTERN)]
RegistryPlace = Annotated[str, Field(pattern=PLACE_PATTERN)]
CredentialArn = Annotated[str, Field(pattern=CREDENTIAL_PATTERN)]


class PullThrough(Document):
    """Pull-through cache rules of Amazon ECR, one for each upstream registry."""

    credentials: dict[RegistryHost, CredentialArn] = Field(default_factory=dict)
    """Upstream registry to the ARN of a secret with `username` and `accessToken`, whose name begins with
    `ecr-pullthroughcache/`; docker.io, ghcr.io and registry.gitlab.com are cached only with one."""

    @field_validator("credentials")
    @classmethod
    def _of_upstreams_that_ask(cls, value: dict[str, str]) -> dict[str, str]:
        asking = [host for host, upstream in upstreams().items() if upstream.credentials]
        for host in value:
            if host not in asking:
                raise ValueError(
                    f"credentials for {host}: {suggestion(host, asking)}ECR takes credentials for {', '.join(asking)}"
                )
        return value

    @property
    def cached(self) -> tuple[str, ...]:
        """The registries that are cached: those that need no account, and those with one."""
        return tuple(
            host for host, each in upstreams().items() if not each.credentials or host in self.credentials
        )


def parse_registry(value: object) -> object:
    """`registry: HOST/PREFIX` is short for `registry: {mirror: HOST/PREFIX}`."""
    return {"mirror": value} if isinstance(value, str) else value


def _parse_pull_through(value: object) -> object:
    return {} if value is True else None if value is False else value


class Registry(Document):
    """What stands for the registries of images and charts."""

    mirror: RegistryPlace | None = None
    """Host and prefix of a mirror of everything: images are at `MIRROR/REGISTRY/NAME`, charts at
    `oci://MIRROR/charts/NAME`. Nodes must be able to pull from it without a secret."""
    mirrors: dict[RegistryHost, RegistryPlace] = Field(default_factory=dict)
    """Host and prefix for single registries, such as `nvcr.io: mirror.example.com/nvidia`; they go first."""
    pull_through: Annotated[
        PullThrough | None,
        BeforeValidator(_parse_pull_through, json_schema_input_type=PullThrough | bool | None),
    ] = None
    """A cache in the environment's own Amazon ECR; `true`, or with credentials."""
    charts: Annotated[str, Field(pattern=OCI_PATTERN)] | None = None
    """OCI repository into which every chart was pushed under its own name and version; default: below
    `mirror`, or where ECR caches it."""
    direct: tuple[RegistryHost, ...] = ()
    """Registries and chart repositories that may be asked themselves; every other one is a finding."""

    @model_validator(mode="after")
    def _stands_for_something(self) -> Self:
        if not (self.mirror or self.mirrors or self.pull_through or self.charts):
            raise ValueError("needs mirror, mirrors, pullThrough or charts; leave registry out for none")
        if self.mirror and self.pull_through:
            raise ValueError("mirror and pullThrough both stand for every registry: use one of them")
        return self

    def routes(self, *, environment: str, account: str, region: str) -> ImageRoutes:
        """What replaces each registry in `environment`."""
        ecr = f"{account}.dkr.ecr.{region}.amazonaws.com"
        cached = self.pull_through.cached if self.pull_through else ()
        return ImageRoutes(
            registries={
                **{host: f"{ecr}/{environment}/{upstreams()[host].folder}" for host in cached},
                **self.mirrors,
            },
            everything=self.mirror,
            charts=self.charts,
            direct=frozenset(self.direct),
            environment=environment,
        )
