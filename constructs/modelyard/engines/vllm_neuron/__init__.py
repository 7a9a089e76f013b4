"""vLLM with the Neuron plugin on Trainium2."""

from modelyard.engines.vllm_neuron.engine import VllmNeuron

__all__ = ["VllmNeuron"]
