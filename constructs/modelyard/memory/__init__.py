"""Memory of a model on an accelerator (weights, KV cache, activations), whether it fits, and its throughput.

Entry points: `plan_serving` for a model file on given accelerators, `estimate` for a single question. Both,
and model sizing, build requests in `requests` and compute ledgers in `ledger`.
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
