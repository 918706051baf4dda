"""What a session's parts are where one object stands for all of them."""

from __future__ import annotations

from typing import Self

from ctxchat.core.figures import Figures


class OfOnePiece:
    """The session is its own setup, compaction and changes. `adapted` counts how often it was told to go by edited settings."""

    agent = ""
    adapted = 0
    figures: Figures

    @property
    def setup(self) -> Self:
        return self

    @property
    def compaction(self) -> Self:
        return self

    @property
    def changes(self) -> Self:
        return self

    async def adapt(self) -> Figures:
        self.adapted += 1
        return self.figures

    async def switch_agent(self, name: str) -> Figures:
        self.agent = name
        return self.figures
