"""Tests on synthesised templates: jsii starts once, every environment is built once."""
