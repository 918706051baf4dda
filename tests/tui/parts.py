"""What a session's parts are where one object stands for all of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

from ctxchat.core.figures import Figures

if TYPE_CHECKING:
    from ctxchat.agent.gate import Gate


class OfOnePiece:
    """The session is its own setup, compaction and changes. `adapted` counts how often it was told to go by edited settings."""

    agent = ""
    address = ""
    adapted = 0
    figures: Figures

    @cached_property
    def permissions(self) -> Gate:
        from ctxchat.agent.gate import Gate

        return Gate(folder="/harbour")

    @property
    def setup(self) -> Self:
        return self

    @property
    def compaction(self) -> Self:
        return self

    @property
    def changes(self) -> Self:
        return self

    async def unreached(self) -> bool:
        return False

    async def adapt(self) -> Figures:
        self.adapted += 1
        return self.figures

    async def switch_agent(self, name: str) -> Figures:
        self.agent = name
        return self.figures
