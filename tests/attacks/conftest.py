"""The same fresh person in their folder as the command line's tests have."""

from tests.cli.conftest import cli, home

__all__ = ["cli", "home"]
