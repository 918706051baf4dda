"""The names under which tools of MCP servers are offered."""

from __future__ import annotations

import pytest

from ctxchat.tools.mcp.server import name_of


@pytest.mark.parametrize("name", ["add", "x" * 200, "ä[b]", "", "a b\x1b[2J"])
def test_names_are_such_that_every_provider_takes_them(name: str) -> None:
    made = name_of("my server", name)
    assert len(made) <= 64 and made.isascii() and made.replace("_", "a").replace("-", "a").isalnum()
