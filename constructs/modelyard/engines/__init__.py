"""Inference engines: one module an engine, and their facts as data per release."""

from modelyard.engines.commands import batch_args, server_args, server_command, server_env, worker_args
from modelyard.engines.flags import FlagProblem, check_flags
from modelyard.engines.memory import CacheRules, MemoryFacts, memory_facts, memory_facts_for
from modelyard.engines.metrics import EXPORTERS, Metric, Metrics, Signals, metrics_of, metrics_of_exporter
from modelyard.engines.parsers import Parsers, parsers_for
from modelyard.engines.release import EngineName, Release, newest_release, release, releases
from modelyard.engines.settings import Ranks, ServeSettings

__all__ = [
    "EXPORTERS",
    "CacheRules",
    "EngineName",
    "FlagProblem",
    "MemoryFacts",
    "Metric",
    "Metrics",
    "Parsers",
    "Ranks",
    "Release",
    "ServeSettings",
    "Signals",
    "batch_args",
    "check_flags",
    "memory_facts",
    "memory_facts_for",
    "metrics_of",
    "metrics_of_exporter",
    "newest_release",
    "parsers_for",
    "release",
    "releases",
    "server_args",
    "server_command",
    "server_env",
    "worker_args",
]
