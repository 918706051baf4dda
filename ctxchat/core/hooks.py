"""Hooks: what to do when something happens. Which of them act at a moment, and when they may again. Pure.

Knows no command, no session and no settings file; `agent.hooks` carries out what is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

HookEvent = Literal[
    "session_started",
    "session_finished",
    "turn_started",
    "turn_finished",
    "tool_started",
    "tool_finished",
    "tool_failed",
    "round_finished",
    "compaction_started",
    "compaction_finished",
    "approval_needed",
    "approval_requested",
    "command_called",
    "subagent_started",
    "subagent_finished",
    "error",
]

UNSTREAMED: frozenset[HookEvent] = frozenset(
    {"tool_failed", "round_finished", "approval_needed", "command_called", "subagent_started", "subagent_finished"}
)
"""Of these no event of a session tells: hooks are asked about each where it is due."""

ASKED = UNSTREAMED | {"tool_started", "compaction_started"}
"""Where the answer of a command in any form counts."""

# ── conditions ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Moment(msgspec.Struct, frozen=True):
    """What conditions are about. `context_pressure` is used / limit, `tool_calls` those of the turn so far, `message_count`
    the messages of the conversation in view; `session_calls` and `session_messages` are those of the whole session, in view or
    not. `tool_name` is empty where the event is not about a tool."""

    context_pressure: float = 0.0
    turn_count: int = 0
    tool_calls: int = 0
    message_count: int = 0
    session_calls: int = 0
    session_messages: int = 0
    tool_name: str = ""


class When(msgspec.Struct, frozen=True, omit_defaults=True, rename={"not_": "not"}):
    """All that is given must hold; nothing given always holds. Numbers mean `at least`, but `every`: turns whose number it
    divides. `tool_name` may have wildcards."""

    context_pressure: float | None = None
    turn_count: int | None = None
    tool_calls: int | None = None
    message_count: int | None = None
    session_calls: int | None = None
    session_messages: int | None = None
    every: int | None = None
    tool_name: str | None = None
    all_of: tuple[When, ...] | None = None
    any_of: tuple[When, ...] | None = None
    not_: When | None = None


def holds(when: When, moment: Moment) -> bool:
    """True when every part of the condition that is given holds. `any_of` of nothing never does, `all_of` of nothing does."""
    least = (
        (when.context_pressure, moment.context_pressure),
        (when.turn_count, moment.turn_count),
        (when.tool_calls, moment.tool_calls),
        (when.message_count, moment.message_count),
        (when.session_calls, moment.session_calls),
        (when.session_messages, moment.session_messages),
    )
    if any(wanted is not None and there < wanted for wanted, there in least):
        return False
    if when.every and (moment.turn_count == 0 or moment.turn_count % when.every):
        return False
    name = moment.tool_name
    if when.tool_name is not None and not (name and fnmatchcase(name, when.tool_name)):
        return False
    if when.all_of is not None and not all(holds(each, moment) for each in when.all_of):
        return False
    if when.any_of is not None and not any(holds(each, moment) for each in when.any_of):
        return False
    return when.not_ is None or not holds(when.not_, moment)


# ── actions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class CompactContext(msgspec.Struct, frozen=True):
    """Make room, with another strategy than usual where one is named; `instructions` are for the summary."""

    strategy: str = ""
    instructions: str = ""


class RunCommand(msgspec.Struct, frozen=True):
    """Run a command line, ended after `timeout` seconds. `show_output`: what it prints becomes a note for the model. `sandbox`:
    as the model's commands run; else as the person. `form` is whose input it is given and whose answer it gives; in Claude Code's
    `matcher` says for which tools, starts or compactions. `background`: nobody waits for it, and it decides nothing."""

    command: str
    timeout: float = 30.0
    show_output: bool = False
    sandbox: bool = True
    form: Literal["ctxchat", "claude"] = "ctxchat"
    matcher: str = ""
    background: bool = False


class HookVerdict(msgspec.Struct, frozen=True):
    """What a hook says about what is going to happen. `blocks`: it must not, for this `reason`; `asks`: the person is asked
    first; `stops`: the turn ends here. `arguments` take the place of a call's. `context` is for the model, `tells_person` for the
    person; `by` is the hook's name."""

    blocks: bool = False
    asks: bool = False
    stops: bool = False
    reason: str = ""
    arguments: dict[str, object] | None = None
    context: str = ""
    tells_person: str = ""
    by: str = ""


class Notify(msgspec.Struct, frozen=True):
    """Tell the person."""

    text: str


class Inject(msgspec.Struct, frozen=True):
    """Tell the model, with its next request."""

    text: str


Action = CompactContext | RunCommand | Notify | Inject

# ── which, and how often ────────────────────────────────────────────────────────────────────────────────────────────


class Hook(msgspec.Struct, frozen=True):
    """Something to do at an event. `name` is unique among the hooks of a session; `cooldown` in turns, `max_fires` 0 for no
    end, higher `priority` goes first."""

    name: str
    event: HookEvent
    action: Action
    when: When = When()
    cooldown: int = 0
    max_fires: int = 0
    priority: int = 0

    @property
    def counts(self) -> bool:
        """How often it acted matters, so it is worth remembering."""
        return bool(self.cooldown or self.max_fires)


class Tally(msgspec.Struct, frozen=True):
    """How often a hook did something in a session, and the turn in which it last did."""

    fires: int = 0
    turn: int = 0

    def count_turn(self, turn: int) -> Tally:
        """Once more, in this turn."""
        return Tally(self.fires + 1, turn)


def rested(hook: Hook, tally: Tally, turn: int) -> bool:
    """True when the hook may act again: not too often yet, and `cooldown` turns after it last did something."""
    if not tally.fires:
        return True
    if hook.max_fires and tally.fires >= hook.max_fires:
        return False
    return turn - tally.turn >= hook.cooldown


def firing(
    hooks: Sequence[Hook], event: HookEvent, moment: Moment, tallies: Mapping[str, Tally] | None = None
) -> tuple[Hook, ...]:
    """The hooks that act now: highest priority first, those of one priority in the order given."""
    known = tallies or {}
    able = [
        hook
        for hook in hooks
        if hook.event == event
        and rested(hook, known.get(hook.name, Tally()), moment.turn_count)
        and holds(hook.when, moment)
    ]
    return tuple(sorted(able, key=lambda hook: -hook.priority))


def replaces_automatic(hooks: Sequence[Hook]) -> bool:
    """True when one of them makes room in the course of turns, so that no compaction need start by itself before a request."""
    events = {"turn_started", "turn_finished", "tool_started", "tool_finished"}
    return any(isinstance(hook.action, CompactContext) and hook.event in events for hook in hooks)
