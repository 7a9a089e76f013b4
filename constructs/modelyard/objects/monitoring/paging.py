"""Alertmanager's configuration: who is told of which alerts. It names files of secrets and holds none."""

from __future__ import annotations

from typing import Any, Final

from modelyard.names import ALERTS_ACCOUNT
from modelyard.objects.monitoring.metrics_volume import alertmanager_storage
from modelyard.spec import Environment
from modelyard.spec.receivers import Receiver

NOBODY: Final = "nobody"
"""The receiver of alerts that tell nobody anything: the heartbeat, and the chart's marker of info alerts."""

_SECRETS: Final = "/etc/alertmanager/secrets"  # where the operator mounts `alertmanagerSpec.secrets`
_HEARTBEATS: Final = "InfoInhibitor|Watchdog"
_TITLE: Final = "[{{ .Status | toUpper }}] {{ .CommonLabels.alertname }} {{ .CommonLabels.model }}"
_TEXT: Final = "{{ range .Alerts }}{{ .Annotations.summary }}\n{{ .Annotations.runbook_url }}\n{{ end }}"
# PagerDuty's own words for it (Events API v2): critical, error, warning and info.
_SEVERITY: Final = "{{ if .CommonLabels.severity }}{{ .CommonLabels.severity }}{{ else }}error{{ end }}"


def alertmanager_values(environment: Environment) -> dict[str, Any]:
    """Values of kube-prometheus-stack for its Alertmanager; none where nobody is told."""
    monitoring = environment.monitoring
    if not monitoring.receivers:
        return {}
    secrets = {"secrets": list(monitoring.receiver_secrets)} if monitoring.receiver_secrets else {}
    return {
        "alertmanager": {
            "serviceAccount": {"name": ALERTS_ACCOUNT},
            "config": alertmanager_config(environment),
            "alertmanagerSpec": {**secrets, **alertmanager_storage(environment)},
        }
    }


def alertmanager_config(environment: Environment) -> dict[str, Any]:
    """Alertmanager's configuration file: every receiver has a route of its own, and an alert takes all that
    match."""
    receivers = environment.monitoring.receivers
    return {
        "global": {"resolve_timeout": "5m"},
        # As the chart's, but an alert silences that of its own model alone.
        "inhibit_rules": [
            {
                "source_matchers": [f"severity = {worse}"],
                "target_matchers": [f"severity =~ {better}"],
                "equal": ["namespace", "alertname", "model"],
            }
            for worse, better in (("critical", '"warning|info"'), ("warning", '"info"'))
        ],
        "route": {
            "receiver": NOBODY,
            "group_by": ["alertname", "namespace", "model"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "4h",
            "routes": [
                {"receiver": NOBODY, "matchers": [f'alertname =~ "{_HEARTBEATS}"']},
                *(_route(name, each) for name, each in receivers.items()),
            ],
        },
        "receivers": [
            {"name": NOBODY},
            *({"name": name, **_channel(each, environment)} for name, each in receivers.items()),
        ],
    }


def _route(name: str, receiver: Receiver) -> dict[str, Any]:
    matchers = [f'severity =~ "{"|".join(receiver.severities)}"']
    if receiver.teams:
        teams = "|".join(receiver.teams).replace(".", "[.]")  # an expression, and names may have dots
        matchers.append(f'team =~ "{teams}"')
    return {"receiver": name, "matchers": matchers, "continue": True}


def _channel(receiver: Receiver, environment: Environment) -> dict[str, Any]:
    if receiver.sns:
        topic = receiver.sns.topic or environment.alert_topic
        region = topic.split(":")[3]
        sns = {"topic_arn": topic, "sigv4": {"region": region}, "subject": _TITLE, "message": _TEXT}
        return {"sns_configs": [{**sns, "send_resolved": True}]}
    if receiver.slack:
        slack = {"api_url_file": _file(receiver.slack.webhook), "channel": receiver.slack.channel}
        return {"slack_configs": [{**slack, "title": _TITLE, "text": _TEXT, "send_resolved": True}]}
    assert receiver.pager_duty is not None
    key = {"routing_key_file": _file(receiver.pager_duty), "severity": _SEVERITY, "description": _TITLE}
    return {"pagerduty_configs": [{**key, "send_resolved": True}]}


def _file(secret: str) -> str:
    return f"{_SECRETS}/{secret}/value"
