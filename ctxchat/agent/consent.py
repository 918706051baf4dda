"""Whether a pass may start by itself, and what is said where it may not: the person's word, and what past passes taught.

Knows figures and outcomes; plans nothing and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.guard import Guard
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import CompactionFinished, Notice
from ctxchat.core.figures import Figures
from ctxchat.core.triggers import FIXED, fixed, overhead
from ctxchat.core.words import percent, short

When = Literal["now", "after"]
"""`now`: at the next place where no call is open. `after`: when the turn has ended."""


class Agreed(msgspec.Struct, frozen=True):
    """A pass a person has said yes to."""

    when: When
    instructions: str = ""


class Consent:
    """The standing of one conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._talk = conversation
        self._guard = Guard()
        self._agreed: Agreed | None = None
        self._told = 0  # the turn in which something was last said that is said once a turn

    # ── what a person says ──

    def agree(self, when: When, instructions: str = "") -> None:
        """Yes to a suggestion."""
        self._agreed = Agreed(when, instructions)

    def taken(self, *times: When) -> Agreed | None:
        """What was agreed for one of these times; it is no longer outstanding then."""
        agreed = self._agreed
        if agreed is None or agreed.when not in times:
            return None
        self._agreed = None
        return agreed

    def rest(self, turns: int) -> None:
        """Nothing by itself and no question for the rest of this turn and `turns` more, unless the window cannot hold it."""
        self._agreed = None
        self._guard = self._guard.rested(self._talk.ledger.turn, turns)

    def stopped(self) -> None:
        """A person stopped a pass, or took one back: it is not to come back at once."""
        self._guard = self._guard.rested(self._talk.ledger.turn)

    # ── what may be done ──

    @property
    def standing(self) -> str:
        """As the guard sees it."""
        return self._guard.standing(self._talk.clock.seconds(), self._talk.ledger.turn)

    def may_start(self, figures: Figures, *, inside: bool) -> bool:
        """True where a pass may start by itself; `inside` a turn, where it asks no model.

        What rests does not rest at the price of a request that cannot fit.
        """
        if self._talk.options.consent != "auto":
            return False
        standing = self.standing
        rests = standing == "resting" and not self._guard.waits(self._talk.clock.seconds())
        return standing == "free" or (figures.over > 0 and (inside or rests))

    def may_ask(self) -> bool:
        """True where a person wants to be asked, and was not in this turn."""
        if self._talk.options.consent != "ask" or self._agreed or self.standing == "resting":
            return False
        return self.once_a_turn()

    # ── what came of it ──

    def helped(self) -> None:
        """A pass that somebody asked for made room: everything may run again."""
        self._guard = self._guard.closed()

    def learn(self, result: CompactionFinished, *, inside: bool) -> Sequence[Notice]:
        """What is made of a pass that started by itself, and what the user is told of it. `inside` a turn it is no refill."""
        if result.outcome == "compacted":
            if inside:
                return ()
            if result.reason == "auto":
                self._guard = self._guard.helped(self._talk.ledger.turn)
            if self.standing == "thrashing":
                advice = "Raise context.compression_trigger, use a larger window, or free up by hand (F8)."
                return (Notice("warning", f"The window fills again right after each compaction. {advice}"),)
            return ()
        self._guard = self._guard.failed(self._talk.clock.seconds())
        if self.standing == "broken":
            return (Notice("warning", f"{result.detail} Three passes failed: the next one is yours (F8)."),)
        seconds = round(Guard.wait(self._guard.failures))
        wait = f"{seconds} s" if seconds < 60 else f"{seconds // 60} min"
        return (Notice("warning", f"{result.detail} Next try in {wait}, or F8."),)

    # ── what is said instead of a pass ──

    def once_a_turn(self) -> bool:
        """True the first time in a turn."""
        told, self._told = self._told, self._talk.ledger.turn
        return told != self._told

    def about_overhead(self, figures: Figures) -> Sequence[Notice]:
        """What cannot be compacted is too much already."""
        if not self.once_a_turn():
            return ()
        parts = sorted(((figures.tokens(n), n) for n in FIXED), reverse=True)
        biggest = ", ".join(f"{name} {short(tokens)}" for tokens, name in parts[:3] if tokens)
        text = f"Compaction would be in vain: {short(fixed(figures))} tokens cannot be compacted ({biggest})."
        cost = fixed(figures) * figures.price.input
        price = f" They cost ${cost:,.2f} a request." if cost >= 0.01 else ""
        ways = "Fewer tools or shorter memory files make room."
        if overhead(figures) < figures.trigger_tokens:
            ways = "Unpin some of them (F4, p)."
        return (Notice("warning", f"{text}{price} {ways}"),)

    def about_plan(self, problem: Exception) -> Sequence[Notice]:
        """A strategy failed, or is not there any more."""
        if not self.once_a_turn():
            return ()
        text = str(problem) if isinstance(problem, CtxchatError) else f"{type(problem).__name__}: {problem}."
        return (Notice("warning", f"No compaction could be planned. {text}"),)

    def about_trigger(self, figures: Figures) -> Sequence[Notice]:
        """The trigger is reached, and nothing is done by itself."""
        if self._talk.options.consent != "off" or not self.once_a_turn():
            return ()
        text = f"The window is {percent(figures.pressure)} full. F8 frees up context; nothing is done by itself."
        return (Notice("info", text),)
