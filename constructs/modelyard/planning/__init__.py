"""From a model file to a plan, in pure functions: memory, fit, placement, rollout, quota, cost."""

from modelyard.planning.plan import Acknowledged, ModelPlan, Plan, plan

__all__ = ["Acknowledged", "ModelPlan", "Plan", "plan"]
