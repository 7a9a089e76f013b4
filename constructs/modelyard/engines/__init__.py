"""Inference engines: one module an engine, and their facts as data per release."""

from modelyard.engines.commands import ServeSettings, server_args, server_env
from modelyard.engines.flags import FlagProblem, check_flags
from modelyard.engines.memory import CacheRules, MemoryFacts, memory_facts, memory_facts_for
from modelyard.engines.parsers import Parsers, parsers_for
from modelyard.engines.release import Release, newest_release, release, releases

__all__ = [
    "CacheRules",
    "FlagProblem",
    "MemoryFacts",
    "Parsers",
    "Release",
    "ServeSettings",
    "check_flags",
    "memory_facts",
    "memory_facts_for",
    "newest_release",
    "parsers_for",
    "release",
    "releases",
    "server_args",
    "server_env",
]
