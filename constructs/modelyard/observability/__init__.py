"""Rules, dashboards and the metric contract, as pure data from a plan. `dashboards` needs Grafana's SDK,
`contract` a PromQL parser."""

from modelyard.observability.catalogue import model_groups, platform_groups
from modelyard.observability.rule import Alert, Recording, RuleGroup

__all__ = ["Alert", "Recording", "RuleGroup", "model_groups", "platform_groups"]
