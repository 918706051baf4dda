"""A session with hooks, for tests: what its commands were given, what was told, what the model was sent."""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.events import (
    Notice,
)
from ctxchat.core.hooks import (
    Hook,
    HookEvent,
)
from ctxchat.core.messages import Group
from ctxchat.core.ports import ModelPort
from ctxchat.core.view import problems
from tests.agent.desk import Desk
from tests.doubles.scripted import ScriptedModel

LONG = "The gauge at Pier 7 reports every 90 s to the logger Cormorant. " * 30


EVENTS: tuple[HookEvent, ...] = (
    "session_started", "session_finished", "turn_started", "turn_finished", "tool_started", "tool_finished",
    "compaction_started", "compaction_finished", "error",
)  # fmt: skip


class Hooked(Desk):
    """A desk whose session has hooks."""

    def __init__(
        self,
        model: ModelPort,
        *hooks: Hook,
        **given: object,
    ) -> None:
        super().__init__(model, hooks=hooks, **given)  # type: ignore[arg-type]

    @property
    def notes(self) -> list[Group]:
        """What hooks put into the record."""
        return [g for g in self.state.ledger.groups if g.source.startswith("hook:")]


def told(events: Sequence[object]) -> list[str]:
    return [e.text for e in events if isinstance(e, Notice)]


def sent(model: ScriptedModel) -> list[str]:
    """All the text of each request."""
    return ["\n".join(item.message.text for item in view.items) for view in model.views]


async def sound(desk: Desk, model: ScriptedModel) -> bool:
    """Every request was valid, and the journal alone gives the same session back."""
    await desk.conversation.flush()  # what a prepared summary cost may be on its way
    return all(not problems(view) for view in model.views) and desk.folded() == desk.state
