"""Hooks as values (an event, a condition, an action), and the decision which of them act now. Pure.

A person sets hooks up in the settings (docs/hooks.md): at an event of a session, and where the condition holds, the action is
carried out. Knows no command, no session and no settings file; `agent.hooks` carries out the actions.
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
"""Hook events that are not in a session's stream of events: the code where they happen calls the hooks itself."""

DECIDABLE = UNSTREAMED | {"tool_started", "compaction_started"}
"""Hook events at which a command's answer is waited for and obeyed: it may stop or change what is about to happen."""

# ── conditions ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Moment(msgspec.Struct, frozen=True):
    """The figures that conditions are compared with, as they are at an event.

    `context_pressure` is the share of the usable window that is filled (used / limit). `turn_count` counts turns of the session,
    `tool_calls` calls of the present turn, `message_count` messages that the model still sees; `session_calls` and
    `session_messages` count over the whole session, compacted ones included. `tool_name` is empty where the event is not about a
    tool.
    """

    context_pressure: float = 0.0
    turn_count: int = 0
    tool_calls: int = 0
    message_count: int = 0
    session_calls: int = 0
    session_messages: int = 0
    tool_name: str = ""


class When(msgspec.Struct, frozen=True, omit_defaults=True, rename={"not_": "not"}):
    """A condition: all of its parts that are given must hold, so one without parts always holds.

    Numbers mean `at least`, except `every`, which means turns whose number it divides. `tool_name` may have wildcards.
    """

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
    """True when every part of the condition that is given holds. An empty `any_of` never holds, an empty `all_of` always does."""
    minimums = (
        (when.context_pressure, moment.context_pressure),
        (when.turn_count, moment.turn_count),
        (when.tool_calls, moment.tool_calls),
        (when.message_count, moment.message_count),
        (when.session_calls, moment.session_calls),
        (when.session_messages, moment.session_messages),
    )
    if any(minimum is not None and actual < minimum for minimum, actual in minimums):
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
    """Action: compact the conversation. `strategy` is a strategy's name, empty for the one that is set; `instructions` say what
    the summary should contain."""

    strategy: str = ""
    instructions: str = ""


class RunCommand(msgspec.Struct, frozen=True):
    """Action: run a command line, stopped after `timeout` seconds.

    `show_output`: its output becomes a note for the model. `sandbox`: it runs shut in like the model's commands, otherwise with
    the person's own rights. `form` is the format of its input and answer: ours, or Claude Code's, in which `matcher` restricts it
    to some tools, starts or compactions. `background`: it is not waited for, so it cannot decide anything.
    """

    command: str
    timeout: float = 30.0
    show_output: bool = False
    sandbox: bool = True
    form: Literal["ctxchat", "claude"] = "ctxchat"
    matcher: str = ""
    background: bool = False


class HookVerdict(msgspec.Struct, frozen=True):
    """The answer of a hook about what is going to happen.

    `blocks`: it must not happen, for this `reason`. `asks`: the person is asked first. `stops`: the turn ends here. `arguments`
    replace those of a tool call, unless None. `context` is a text for the model, `tells_person` one for the person; `by` is the
    hook's name.
    """

    blocks: bool = False
    asks: bool = False
    stops: bool = False
    reason: str = ""
    arguments: dict[str, object] | None = None
    context: str = ""
    tells_person: str = ""
    by: str = ""


class Notify(msgspec.Struct, frozen=True):
    """Action: show a notice to the person."""

    text: str


class Inject(msgspec.Struct, frozen=True):
    """Action: send a text to the model with its next request."""

    text: str


Action = CompactContext | RunCommand | Notify | Inject

# ── which, and how often ────────────────────────────────────────────────────────────────────────────────────────────


class Hook(msgspec.Struct, frozen=True):
    """An action to take at an event, where `when` holds.

    `name` is unique among the hooks of a session. `cooldown` is the least number of turns between two times it acts, `max_fires`
    the most times it acts in a session (0: no limit). Hooks of higher `priority` act first.
    """

    name: str
    event: HookEvent
    action: Action
    when: When = When()
    cooldown: int = 0
    max_fires: int = 0
    priority: int = 0

    @property
    def counts(self) -> bool:
        """True where a limit depends on how often it acted, so that this must be remembered."""
        return bool(self.cooldown or self.max_fires)


class Tally(msgspec.Struct, frozen=True):
    """How many times a hook acted in a session (`fires`), and in which turn it did last."""

    fires: int = 0
    turn: int = 0

    def count_turn(self, turn: int) -> Tally:
        """The tally after it acted once more, in this turn."""
        return Tally(self.fires + 1, turn)


def rested(hook: Hook, tally: Tally, turn: int) -> bool:
    """True when the hook's limits let it act in this turn: fewer than `max_fires` times so far, and `cooldown` turns since."""
    if not tally.fires:
        return True
    if hook.max_fires and tally.fires >= hook.max_fires:
        return False
    return turn - tally.turn >= hook.cooldown


def firing(
    hooks: Sequence[Hook], event: HookEvent, moment: Moment, tallies: Mapping[str, Tally] | None = None
) -> tuple[Hook, ...]:
    """The hooks that act at this event, highest priority first, those of equal priority in the order given. `tallies` are by the
    hooks' names."""
    by_name = tallies or {}
    acting = [
        hook
        for hook in hooks
        if hook.event == event
        and rested(hook, by_name.get(hook.name, Tally()), moment.turn_count)
        and holds(hook.when, moment)
    ]
    return tuple(sorted(acting, key=lambda hook: -hook.priority))


def replaces_automatic(hooks: Sequence[Hook]) -> bool:
    """True when one of them compacts in the course of turns: then the person has taken over when to compact, and automatic
    compaction before a request stays off."""
    events = {"turn_started", "turn_finished", "tool_started", "tool_finished"}
    return any(isinstance(hook.action, CompactContext) and hook.event in events for hook in hooks)
