"""Properties of every plan, with input from hypothesis."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelyard.checkpoints import architectures
from modelyard.findings import Severity
from modelyard.hardware import accelerators, platform_facts, types_with
from modelyard.planning import ModelPlan, Plan
from modelyard.planning.rollout import plan_rollout
from modelyard.spec import Environment, Model
from tests.unit.given import REGION, a_model, a_plan, an_environment

SOLD = sorted(n for n in accelerators() if any(REGION in t.offered_regions for t in types_with(n)))

replicas = st.integers(0, 6).flatmap(
    lambda low: st.integers(max(1, low), 8).map(lambda high: {"min": low, "max": high})
)
engines = st.fixed_dictionaries(
    {},
    optional={
        "maxModelLen": st.integers(256, 40_000),
        "concurrency": st.integers(1, 4),
        "maxNumSeqs": st.integers(1, 1024),
        "maxNumBatchedTokens": st.integers(256, 16384),
        "kvCacheDtype": st.sampled_from(["auto", "fp8"]),
        "gpuMemoryUtilization": st.floats(0.7, 0.95),
        "enforceEager": st.booleans(),
    },
)
models = st.builds(
    lambda name, architecture, kind, count, **rest: a_model(
        name=name,
        model={"uri": "hf://house/weights", "architecture": architecture},
        accelerator={"type": kind, "count": count},
        **rest,
    ),
    name=st.sampled_from(["one", "two", "three"]),
    architecture=st.sampled_from(sorted(architectures().repositories())),
    kind=st.sampled_from(["auto", "auto", *SOLD]),
    count=st.sampled_from([None, None, 1, 2, 3, 4, 8, 16]),
    replicas=replicas,
    engine=engines,
    rollout=st.sampled_from(["auto", "surge", "in-place"]).map(lambda strategy: {"strategy": strategy}),
    availability=st.sampled_from([None, "single", "zonal"]),
)
environments = st.builds(
    lambda kinds, limit, policy: an_environment(
        pools={kind: {"accelerator": kind, "limit": limit} for kind in kinds},
        policy=policy,
        secrets={"hf-token": "lab/hf-token"},
    ),
    kinds=st.just(SOLD) | st.lists(st.sampled_from(SOLD), min_size=1, max_size=5, unique=True),
    limit=st.sampled_from([2, 8, 64, 512]),
    policy=st.sampled_from(["relaxed", "strict"]),
)


def _holds(model: ModelPlan) -> None:
    serving, pod = model.serving, model.pod
    ledger = serving.ledger
    assert ledger.concurrency(serving.max_model_len) >= model.model.engine.concurrency
    assert 256 <= serving.max_model_len <= serving.arch.max_position
    assert serving.max_num_seqs <= serving.max_num_batched_tokens
    assert serving.tensor_parallel == serving.count * serving.accelerator.cores

    assert model.placement.instance_types
    facts = platform_facts()
    for instance in model.placement.instance_types:
        assert instance.accelerator == serving.accelerator
        assert REGION in instance.offered_regions
        assert not instance.unsupported
        assert pod.accelerators == serving.count <= instance.accelerator_count
        assert instance.allocatable_memory is not None
        assert instance.allocatable_cpu_milli is not None
        assert pod.memory <= instance.allocatable_memory - facts.daemon_memory
        assert pod.cpu_milli <= instance.allocatable_cpu_milli - facts.daemon_cpu_milli
    assert pod.shm < pod.memory

    assert model.rollout.max_surge + model.rollout.max_unavailable == 1
    assert model.startup.deadline > model.startup.budget >= 1
    assert model.cost.nodes_floor <= model.cost.nodes_ceiling
    assert model.cost.floor is None or model.cost.ceiling is None or model.cost.floor <= model.cost.ceiling
    assert model.cost.idle_accelerators >= 0


def _room_for_rollouts(plan: Plan, environment: Environment) -> None:
    """No surge waits for an accelerator that the pool's limit forbids."""
    for name, pool in environment.pools.items():
        here = [model for model in plan.models if model.placement.pool_name == name]
        asked = sum(model.model.replicas.max * model.serving.count for model in here)
        for model in here:
            if model.rollout.max_surge:
                assert asked + model.serving.count <= pool.limit


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(asked=st.lists(models, min_size=1, max_size=3, unique_by=lambda m: m.name), environment=environments)
def test_a_model_is_planned_so_that_it_runs_or_a_finding_says_why_not(
    asked: list[Model], environment: Environment
) -> None:
    plan = a_plan(*asked, environment=environment)

    planned = {model.name for model in plan.models}
    refused = {f.subject for f in plan.findings if f.level is Severity.ERROR}
    assert {model.name for model in asked} <= planned | refused
    for model in plan.models:
        _holds(model)
    _room_for_rollouts(plan, environment)
    assert plan.deployable == (not any(f.level is Severity.ERROR for f in plan.findings))
    assert a_plan(*asked, environment=environment) == plan, "the same question gets the same answer"


@given(
    wanted=st.sampled_from(["auto", "surge", "in-place"]),
    replicas=st.integers(0, 8),
    limit=st.integers(1, 64),
    surge_limit=st.integers(1, 64),
)
def test_a_rollout_can_always_move(wanted: str, replicas: int, limit: int, surge_limit: int) -> None:
    rollout = plan_rollout(wanted=wanted, replicas=replicas, limit=limit, surge_limit=surge_limit)

    if rollout is None:
        assert wanted == "surge"
        assert limit < surge_limit
    else:
        assert rollout.max_surge + rollout.max_unavailable == 1
        assert not rollout.max_surge or limit >= surge_limit
