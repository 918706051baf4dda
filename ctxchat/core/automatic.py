"""Whether compaction starts by itself, and why not: the one value by which gauge, draft line, panel, notices and advice go.

Knows no clock and no settings; `core.context_usage.starts_at` says what it comes to for a window as full as it is.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ctxchat.core.quantities import count

Standing = Literal["auto", "asks", "off", "by_hook", "snoozed", "waiting", "failed", "refilled"]

SNOOZE_TURNS = 3
"""Turns in which nothing starts by itself where a person said `later`, stopped a compaction or took one back."""


class Automatic(msgspec.Struct, frozen=True, omit_defaults=False):
    """`standing`: it starts by itself (`auto`), asks first, is off by the settings, or left to a hook; it is `snoozed` for
    `turns` turns, the one under way or else the next counted, `waiting` for a moment after a failure, or stopped: after
    compactions that `failed` in a row, or because the window `refilled` right after them. `inside`: share of the limit from
    which rounds of a long turn are folded, 0 for never. `few`: even with the next message the conversation is shorter than
    `context.min_messages`. `joins`: there is a draft, and a turn under way that it would join or wait for. `by_word`: wherever
    something would start, the person is asked first.
    """

    standing: Standing = "auto"
    turns: int = 0
    inside: float = 0.0
    few: bool = False
    joins: bool = False
    by_word: bool = False

    @property
    def at_trigger(self) -> bool:
        """The trigger is where something happens by itself."""
        return self.standing in {"auto", "asks"}

    @property
    def resumes(self) -> bool:
        """Nothing happens at the trigger for now, but will again without a person's doing."""
        return self.standing in {"snoozed", "waiting"}

    @property
    def stopped(self) -> bool:
        """It stopped by itself, and a person has to turn it on again."""
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
    """What is out of the ordinary, in a few words; empty where compaction starts by itself."""
    if automatic.standing == "snoozed":
        return f"no compaction by itself for {count(automatic.turns, 'turn')}"
    return _WORDS[automatic.standing]
