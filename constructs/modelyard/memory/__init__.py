"""What a model takes on an accelerator: weights, KV cache, activation, what of it fits, and how fast it can
be.

The ways in: `plan_serving` for a model file on given accelerators, `estimate` for one question. Both, and
what sizes a model, build their requests in `requests` and read their ledgers from `ledger`.
"""

from modelyard.memory.estimate import Estimate, estimate
from modelyard.memory.ledger import MemoryLedger, MemoryRequest, memory_ledger
from modelyard.memory.serving import Serving, plan_serving

__all__ = [
    "Estimate",
    "MemoryLedger",
    "MemoryRequest",
    "Serving",
    "estimate",
    "memory_ledger",
    "plan_serving",
]
