"""Tests, as a package: folders share names such as `conftest`."""
