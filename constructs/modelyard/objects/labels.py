"""Labels: the recommended Kubernetes labels, and the subset that selectors use."""

from __future__ import annotations

from collections.abc import Mapping

from modelyard.names import MODEL_LABEL, TEAM_LABEL
from modelyard.object_rules.pods import FIRST_OF_A_GROUP
from modelyard.planning import ModelPlan

PART_OF = "modelyard"
_VENDOR = "modelyard.dev"
ROLE = "llm-d.ai/role"
"""Label by which the endpoint picker distinguishes prefill and decode replicas."""


def selector_labels(model: str) -> dict[str, str]:
    """Labels that selectors use. A Deployment's selector is immutable, so these never change for a model."""
    return {"app.kubernetes.io/name": "model-server", "app.kubernetes.io/instance": model}


def server_labels(plan: ModelPlan) -> dict[str, str]:
    """Labels that select the pods of a server; the runner decides whether they include a group's workers."""
    label = plan.runner.label
    return {label: plan.name} if label else selector_labels(plan.name)


def answering_labels(plan: ModelPlan) -> dict[str, str]:
    """Labels that select the server pods that answer requests: in a group, the leader."""
    first = FIRST_OF_A_GROUP if plan.runner.label and plan.serving.nodes > 1 else {}
    return {**server_labels(plan), **first}


def pool_labels(model: str) -> dict[str, str]:
    """Labels shared by the prefill and decode replicas of a model."""
    return {MODEL_LABEL: model, f"{_VENDOR}/pool-member": "true"}


def model_labels(plan: ModelPlan, environment: str, *, component: str = "server") -> dict[str, str]:
    """All labels of a model's objects."""
    labels = {
        **(
            selector_labels(plan.name) if component == "server" else {"app.kubernetes.io/instance": plan.name}
        ),
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": PART_OF,
        "app.kubernetes.io/managed-by": PART_OF,
        "app.kubernetes.io/version": plan.serving.release.version,
        MODEL_LABEL: plan.model.name,
        f"{_VENDOR}/env": environment,
    }
    if component != "server":
        labels["app.kubernetes.io/name"] = component
    if owner := plan.model.owner:
        labels[TEAM_LABEL] = owner.team
        if owner.cost_center:
            labels[f"{_VENDOR}/cost-center"] = owner.cost_center
    return labels


def cost_labels(plan: ModelPlan, environment: str) -> dict[str, str]:
    """Pod labels by which OpenCost and Kubecost group costs by default (Kubecost's label mapping:
    environment, product, team, department)."""
    owner = plan.model.owner
    labels = {"env": environment, "app": plan.name}
    if owner:
        labels["team"] = owner.team
        if owner.cost_center:
            labels["department"] = owner.cost_center
    return labels


def platform_labels(component: str) -> dict[str, str]:
    """Labels of objects that all models share."""
    return {
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": PART_OF,
        "app.kubernetes.io/managed-by": PART_OF,
    }


def made_by_us(labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is one that Modelyard has rendered."""
    return labels.get("app.kubernetes.io/managed-by") == PART_OF


def weights_annotations(plan: ModelPlan) -> dict[str, str]:
    """What pods serve: the full model id and the revision, which do not fit into labels."""
    return {
        f"{_VENDOR}/model-uri": plan.model.model.uri,
        f"{_VENDOR}/model-revision": plan.model.model.revision,
    }


def model_annotations(plan: ModelPlan) -> dict[str, str]:
    """Values of a model's objects that do not fit into labels. Pods have no description and no contact: every
    change of a pod template starts the replicas again."""
    annotations = weights_annotations(plan)
    if plan.model.description:
        annotations[f"{_VENDOR}/description"] = plan.model.description
    if plan.model.owner and plan.model.owner.contact:
        annotations[f"{_VENDOR}/contact"] = plan.model.owner.contact
    return annotations
