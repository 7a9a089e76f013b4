"""From a model file to a plan, in pure functions: memory, fit, placement, rollout, quota, cost."""

from modelyard.planning.plan import plan
from modelyard.planning.records import Acknowledged, ModelPlan, Plan
from modelyard.planning.runner import OURS, Runner

__all__ = ["OURS", "Acknowledged", "ModelPlan", "Plan", "Runner", "plan"]
