"""Alerts about what brings changes and secrets into the cluster: Flux and External Secrets.

Without them everything runs on as it did, and nobody sees that a fix, a rotated key or an add-on never came.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from modelyard.names import EXTERNAL_SECRETS, FLUX_NAMESPACE
from modelyard.observability.rule import Alert, RuleGroup
from modelyard.planning import Plan

FLUX_CONTROLLERS: Final = ("helm-controller", "kustomize-controller", "source-controller")
"""The controllers that Modelyard installs, by their Deployments and their label `app`."""

_OBJECT: Final = "customresource_kind, exported_namespace, name"
# An object that waits for another is not the one that failed.
_INNOCENT: Final = 'reason!="DependencyNotReady", suspended!="true"'


def delivery_alerts(plan: Plan) -> RuleGroup | None:
    """Alerts about Flux where it delivers, and about External Secrets where the environment has secrets; None
    without both."""
    environment = plan.environment
    alerts: list[Alert] = []
    if environment.delivery == "flux":
        alerts += _flux(environment.monitoring.namespace, states=environment.monitoring.install)
    if environment.secrets and environment.delivery != "none":
        alerts += _secrets(environment.monitoring.namespace, seen=environment.scrapes(EXTERNAL_SECRETS))
    return RuleGroup("modelyard.delivery", tuple(alerts)) if alerts else None


def _flux(monitoring: str, *, states: bool) -> Iterator[Alert]:
    for controller in FLUX_CONTROLLERS:
        job = f'job="{monitoring}/{controller}"'
        yield Alert(
            "DeliveryControllerGone",
            f"absent(up{{{job}}} == 1)",
            "15m",
            "warning",
            f"{controller} does not answer: changes no longer reach the cluster",
            {"controller": controller, "namespace": FLUX_NAMESPACE},
        )
    if not states:  # of somebody's own kube-state-metrics, which does not read Flux' objects
        return
    # A failing health check is False for a minute and Unknown for the next hour and a half, so that
    # `ready="False"` alone would begin again and again: what counts is a failure, and nothing Ready since.
    failed = f'max_over_time(gotk_resource_info{{ready="False", {_INNOCENT}}}[2h])'
    well = 'max_over_time(gotk_resource_info{ready="True"}[10m])'
    there = f"max by ({_OBJECT}) (gotk_resource_info)"  # a deleted object fails no more
    yield Alert(
        "DeliveryFailing",
        f"max by ({_OBJECT}) ({failed}) and on ({_OBJECT}) {there} "
        f"unless on ({_OBJECT}) max by ({_OBJECT}) ({well})",
        "20m",
        "warning",
        "{{ $labels.customresource_kind }} {{ $labels.name }} fails: what it delivers is not what runs",
        {"namespace": FLUX_NAMESPACE},
    )
    yield Alert(
        "DeliveryUnseen",
        'absent(gotk_resource_info{customresource_kind="Kustomization"})',
        "30m",
        "warning",
        "kube-state-metrics reports no object of Flux: a failing delivery would go unseen",
        {"namespace": FLUX_NAMESPACE},
    )


def _secrets(monitoring: str, *, seen: bool) -> Iterator[Alert]:
    condition = 'condition="Ready", status="False"'
    gone = f' or absent(up{{job="{monitoring}/{EXTERNAL_SECRETS}"}} == 1)' if seen else ""
    yield Alert(
        "SecretNotSynced",
        f"max by (namespace, name) (externalsecret_status_condition{{{condition}}}) > 0",
        "15m",
        "warning",
        "secret {{ $labels.name }} in {{ $labels.namespace }} is not what Secrets Manager holds",
    )
    yield Alert(
        "SecretStoreFailing",
        f"max by (name) (clustersecretstore_status_condition{{{condition}}}) > 0{gone}",
        "15m",
        "warning",
        "External Secrets reads nothing from Secrets Manager: no secret is renewed",
        {"namespace": EXTERNAL_SECRETS},
    )
