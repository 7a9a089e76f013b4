"""Jobs that check or load a model after its delivery."""
