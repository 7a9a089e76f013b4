"""Jobs that ask a model after it was delivered."""
