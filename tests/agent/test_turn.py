"""A turn from the first event to the last, over the scripted model: what is said, run, sealed and shown."""

from __future__ import annotations

from contextlib import aclosing

from ctxchat.core.errors import ModelError
from ctxchat.core.events import (
    ApprovalRequested,
    Event,
    Failed,
    Notice,
    Retry,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    Usage,
)
from ctxchat.core.figures import Figures
from ctxchat.core.view import problems
from ctxchat.models.scripted import ScriptedModel, calls, fails, hangs, says

from tests.agent.desk import Desk, Echo


def of[T](events: list[Event], kind: type[T]) -> list[T]:
    return [e for e in events if isinstance(e, kind)]


def adds_up(figures: Figures) -> bool:
    inside = sum(s.tokens for s in figures.sections if s.name not in {"reserved", "free"})
    whole = sum(s.tokens for s in figures.sections)
    return inside == figures.used and (whole == figures.window or figures.used > figures.limit)
