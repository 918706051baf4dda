"""The value that tells whether compaction starts by itself, and if not, why; the gauge, panels, notices and advice all use it.

Knows no clock and no settings; `core.context_usage.starts_at` applies it to how full the window is.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ctxchat.core.quantities import count

Standing = Literal["auto", "asks", "off", "by_hook", "snoozed", "waiting", "failed", "refilled"]

SNOOZE_TURNS = 3
"""Turns without automatic compaction after a person said `later`, stopped a compaction or undid one."""


class Automatic(msgspec.Struct, frozen=True, omit_defaults=False):
    """Whether compaction starts by itself.

    `standing`: it starts by itself (`auto`), asks first (`asks`), is off by the settings (`off`), or left to a hook (`by_hook`);
    it is `snoozed` for `turns` turns (counting the one under way, else the next), `waiting` for a moment after a failure, or
    stopped: after compactions that `failed` in a row, or because the window `refilled` right after them. `inside`: the share of
    the limit from which rounds of a long turn are folded, 0 for never. `few`: even with the next message the conversation is
    shorter than `context.min_messages`. `joins`: there is a draft, and a turn under way that it would join or wait for.
    `by_word`: wherever something would start, the person is asked first.
    """

    standing: Standing = "auto"
    turns: int = 0
    inside: float = 0.0
    few: bool = False
    joins: bool = False
    by_word: bool = False

    @property
    def at_trigger(self) -> bool:
        """True where reaching the trigger starts a compaction or a question."""
        return self.standing in {"auto", "asks"}

    @property
    def resumes(self) -> bool:
        """True where nothing happens at the trigger for now, but will again without a person's action."""
        return self.standing in {"snoozed", "waiting"}

    @property
    def stopped(self) -> bool:
        """True where automatic compaction stopped by itself, and a person has to turn it on again."""
        return self.standing in {"failed", "refilled"}


AGAIN = "A compaction by hand that helps (F8), another model or an edited setting turns it on again."

_WORDS: dict[Standing, str] = {
    "auto": "",
    "asks": "compaction asks first",
    "off": "automatic compaction is off (context.auto_compact)",
    "by_hook": "compaction is left to your hook",
    "waiting": "compaction waits after a failed compaction",
    "failed": "automatic compaction stopped: compactions failed",
    "refilled": "automatic compaction stopped: the window refilled right after each compaction",
}


def standing_words(automatic: Automatic) -> str:
    """Why compaction does not start by itself, in a few words; empty where it does."""
    if automatic.standing == "snoozed":
        return f"no compaction by itself for {count(automatic.turns, 'turn')}"
    return _WORDS[automatic.standing]
