"""A model's pods, what runs and scales them, and its weights."""
