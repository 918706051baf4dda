"""make_room: the model asks for room in its window, and says what has to stay. Who makes it is handed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from ctxchat.core.permissions import Demand
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.tools.text import clip_line
from ctxchat.tools.tool import Arguments, Pieces, Tool

AskForRoom = Callable[[str], str]
"""What has to stay, to what the model is told. Room is made later, where no call is open."""


class RoomArguments(Arguments, frozen=True):
    keep: Annotated[str, msgspec.Meta(description="What a summary must keep")] = ""


class MakeRoom(Tool[RoomArguments]):
    name = "make_room"
    about = (
        "Have older parts of this conversation shortened or summarised, before a long step. They stay in the archive."
    )
    arguments = RoomArguments
    reads_only = False

    def __init__(self, ask: AskForRoom) -> None:
        super().__init__()
        self._ask = ask

    def wants(self, arguments: RoomArguments, context: ToolContext) -> Demand:
        keep = " ".join(arguments.keep.split())
        return Demand("none", summary=f"make room{f', keep {clip_line(keep, 200)}' if keep else ''}")

    async def work(self, arguments: RoomArguments, context: ToolContext) -> Pieces:
        yield ToolOutput(self._ask(arguments.keep.strip()))
