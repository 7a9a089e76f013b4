"""Pure tests: no jsii, no network."""
