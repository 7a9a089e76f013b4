"""Rules, dashboards and the metric contract: pure data from a plan. `dashboards` needs Grafana's SDK,
`contract` a parser."""

from modelyard.observability.catalogue import model_groups, platform_groups
from modelyard.observability.rule import Alert, Recording, RuleGroup

__all__ = ["Alert", "Recording", "RuleGroup", "model_groups", "platform_groups"]
