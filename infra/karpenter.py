"""Stack `Karpenter`: roles and interruption queue; the controller is part of the rendered tree."""

from __future__ import annotations

from constructs import Construct

from infra.environment_stack import EnvironmentStack
from modelyard.aws.karpenter import KarpenterController
from modelyard.spec import Environment


class KarpenterStack(EnvironmentStack):
    concern = "karpenter"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope,
            construct_id,
            settings=settings,
            description="Modelyard: identities and events of Karpenter",
        )
        KarpenterController(
            self, "Karpenter", cluster_name=settings.cluster_name, image_cache=settings.image_cache
        )
