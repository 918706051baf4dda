"""What was learned about models in earlier sessions, by a port: whoever composes the program keeps it, or nobody does."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ctxchat.core.budget import Window
from ctxchat.core.calibration import Calibration
from ctxchat.core.journal import WindowLearned


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of one model: the window that was learned (None for none), how its counts compare with ours."""

    window: WindowLearned | None = None
    calibration: Calibration = Calibration()


def corrected(claimed: Window, learned: WindowLearned | None) -> Window:
    """The window a model says it has, unless what happened has corrected just that: downwards whatever it is, upwards what was
    only assumed."""
    if not learned or not learned.tokens or learned.believed not in {0, claimed.tokens}:
        return claimed
    if (learned.tokens > claimed.tokens and claimed.source != "assumed") or learned.tokens == claimed.tokens:
        return claimed
    return Window(learned.tokens, "assumed" if learned.took else "learned", claimed.tokens, learned.refused)


class Assumptions(Protocol):
    """Keeps what is known by model name. Neither verb raises: losing it costs an estimate its precision and nothing else."""

    def load(self, model: str) -> Known:
        """What is known; quick, since it is asked while a session opens."""
        ...

    async def save(self, model: str, known: Known) -> None:
        """Keep it in place of what was known."""
        ...


class NothingKnown:
    """For programs that keep nothing."""

    def load(self, model: str) -> Known:
        """Nothing."""
        return Known()

    async def save(self, model: str, known: Known) -> None:
        """It is forgotten."""
