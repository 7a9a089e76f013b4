"""Traffic to the models: gateways, the router, the LiteLLM proxy."""
