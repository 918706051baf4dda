"""make_room: what is to be kept goes to whoever makes room, and the model is told what comes of it."""

from __future__ import annotations

from collections.abc import Callable

from ctxchat.core.ports import ToolContext
from ctxchat.tools.conversation import MakeRoom


async def test_the_model_is_told_what_comes_of_it(call: Callable, context: ToolContext) -> None:
    kept: list[str] = []

    def ask(keep: str) -> str:
        kept.append(keep)
        return "soon"

    tool = MakeRoom(ask)
    assert (await call(tool, keep=" the API decisions ")).text == "soon"
    assert kept == ["the API decisions"]
    assert tool.access_request({"keep": "this"}, context).access == "none"
