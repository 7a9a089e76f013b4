"""Throughput from NVIDIA's AIConfigurator, which sums measured kernel times, if it is installed and has data.

It is an optional extra: pandas and its dependencies take seconds to import, so they are imported on first
use. Only models whose config.json the package bundles are estimated; for any other it would use the network.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from modelyard.engines import engine
from modelyard.hardware.tables import yaml_table
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.serving import Serving
from modelyard.memory.throughput import RequestLengths, Throughput, roofline, steady_batch

_TABLE = "aiconfigurator.yaml"
# It documents no exceptions; these were observed for models, sizes or formats without data.
_REFUSALS = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)


def estimate_throughput(serving: Serving, workload: RequestLengths | None = None) -> Throughput:
    """AIConfigurator's estimate if there is one, else the roofline bound."""
    found = measured(serving, workload)
    return found if isinstance(found, Throughput) else roofline(serving, workload)


def measured(serving: Serving, workload: RequestLengths | None = None) -> Throughput | str:
    """AIConfigurator's estimate for one replica of `serving`, or why there is none."""
    if find_spec("aiconfigurator") is None:
        return "AIConfigurator is not installed (the extra `throughput`)"
    table = yaml_table(_TABLE)
    system = table["systems"].get(serving.accelerator.name)
    backend = engine(serving.release.engine).aiconfigurator
    if system is None or backend is None:
        return f"AIConfigurator has no measurements of {serving.release.engine} on {serving.accelerator.name}"
    if serving.topology.split != Parallelism(serving.tensor_parallel) or serving.model.task != "generate":
        return "AIConfigurator is asked for tensor parallelism and generation alone"
    if serving.model.speculative_decoding:
        return "AIConfigurator needs the share of accepted draft tokens, which nobody has measured yet"
    wanted = serving.arch.model_id
    model = table["sameShape"].get(wanted, wanted)
    if model not in _bundled_models():
        return f"AIConfigurator carries no config.json of {wanted}"
    work = (workload or RequestLengths()).within(serving.max_model_len)
    batch = steady_batch(serving, work)
    while batch:
        found = _ask(serving, model, backend, system, work, batch)
        if not isinstance(found, str):
            return Throughput(
                source="aiconfigurator",
                statement=f"estimate of AIConfigurator {table['version']}, kernels measured on {system} with vLLM "
                f"{found.backend_version}, not this deployment",
                workload=work,
                batch=batch,
                output_per_second=float(found.raw["tokens/s"]),
            )
        if "OOM" not in found:
            return f"AIConfigurator gives no estimate: {found}"
        batch //= 2  # its memory model is more conservative than the engine's
    return f"AIConfigurator holds that {wanted} does not fit"


@cache
def _bundled_models() -> frozenset[str]:
    with _quiet():
        return frozenset(import_module("aiconfigurator.sdk.common").DefaultHFModels)


def _ask(serving: Serving, model: str, backend: str, system: str, work: RequestLengths, batch: int) -> Any:
    """AIConfigurator's EstimateResult, or the first line of its exception."""
    ranks = serving.tensor_parallel
    experts = {"moe_tp_size": ranks, "moe_ep_size": 1} if serving.arch.experts else {}
    with _quiet():
        try:
            return import_module("aiconfigurator.cli.api").cli_estimate(
                model,
                system,
                backend_name=backend,
                isl=work.input_tokens,
                osl=work.output_tokens,
                batch_size=batch,
                ctx_tokens=serving.max_num_batched_tokens,
                tp_size=ranks,
                kvcache_quant_mode="fp8"
                if serving.ledger.request.kv_cache_dtype.startswith("fp8")
                else "bfloat16",
                **experts,
            )
        except _REFUSALS as problem:
            return (str(problem) or type(problem).__name__).splitlines()[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress its log messages and warnings about the tables it reads."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
