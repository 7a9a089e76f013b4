"""Stack `Registry`: Amazon ECR caches the registries from which the environment pulls."""

from __future__ import annotations

from constructs import Construct

from infra.environment_stack import EnvironmentStack
from modelyard.aws.image_cache import ImageCache
from modelyard.spec import Environment


class RegistryStack(EnvironmentStack):
    concern = "registry"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope,
            construct_id,
            settings=settings,
            description="Modelyard: images of other registries, cached by ECR",
        )
        assert settings.registry
        assert settings.registry.pull_through
        assert settings.image_cache
        ImageCache(
            self,
            "Images",
            prefix=settings.image_cache,
            registries=settings.registry.pull_through.cached,
            credentials=settings.registry.pull_through.credentials,
        )

    @staticmethod
    def needed(settings: Environment) -> bool:
        """Whether images are cached in the environment's own account."""
        return settings.image_cache is not None
