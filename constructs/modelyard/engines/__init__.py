"""Inference engines: one folder per engine, with its facts as data per release."""

from modelyard.engines.commands import server_args, server_command, server_env
from modelyard.engines.engine import Engine
from modelyard.engines.flags import FlagProblem, check_flags
from modelyard.engines.memory import memory_facts, memory_facts_for
from modelyard.engines.memory_facts import CacheRules, MemoryFacts
from modelyard.engines.metrics import EXPORTERS, Metric, Metrics, metrics_of, metrics_of_exporter
from modelyard.engines.parsers import Parsers
from modelyard.engines.registry import USUAL, engine, engines
from modelyard.engines.release import Release
from modelyard.engines.releases import newest_release, parsers_for, release, releases
from modelyard.engines.settings import Ranks, ServeSettings
from modelyard.engines.signals import Signals

__all__ = [
    "EXPORTERS",
    "USUAL",
    "CacheRules",
    "Engine",
    "FlagProblem",
    "MemoryFacts",
    "Metric",
    "Metrics",
    "Parsers",
    "Ranks",
    "Release",
    "ServeSettings",
    "Signals",
    "check_flags",
    "engine",
    "engines",
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
]
