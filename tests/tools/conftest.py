"""A workspace with files in it, and a way to call a tool as the agent does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from ctxchat.core.ports import ToolContext, ToolOutput, ToolPort

_ids = itertools.count(1)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder, its path resolved."""
    root = tmp_path.resolve() / "work"
    root.mkdir()
    return root


@pytest.fixture
def context(workspace: Path, tmp_path: Path) -> ToolContext:
    session = tmp_path.resolve() / "session"
    (session / "tool-results").mkdir(parents=True)
    return ToolContext("call", str(workspace), str(session))


@pytest.fixture
def call(context: ToolContext) -> Callable:
    """Ask for the demand, then run: the way of a call. Returns the output."""

    async def run(tool: ToolPort, **arguments: object) -> ToolOutput:
        here = ToolContext(f"call{next(_ids)}", context.workspace, context.session_folder, context.max_chars)
        tool.access_request(arguments, here)
        async with aclosing(tool.run(arguments, here)) as pieces:
            found = [piece async for piece in pieces]
        assert all(not isinstance(piece, ToolOutput) for piece in found[:-1])
        assert isinstance(found[-1], ToolOutput)
        return found[-1]

    return run
