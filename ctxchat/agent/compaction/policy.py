"""Decides whether a compaction may start by itself, by what the person said and by how the last ones ended, and tells the person
where it may not.

Knows figures and outcomes; plans nothing and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ctxchat.agent.compaction.planner import nothing_to_free
from ctxchat.agent.conversation import Conversation
from ctxchat.core.automatic import AGAIN
from ctxchat.core.backoff import MAX_FAILURES_IN_A_ROW, Backoff
from ctxchat.core.budget import make_budget
from ctxchat.core.context_usage import FIXED, ContextUsage, compaction_due, fixed, overhead, starts_at
from ctxchat.core.events import Notice
from ctxchat.core.quantities import percent, short
from ctxchat.core.record import CompactionRecord, Reason

When = Literal["now", "after"]
"""`now`: as soon as no call is open. `after`: when the turn has ended."""


class ApprovedCompaction(msgspec.Struct, frozen=True):
    """A compaction that the person agreed to, or (`auto`) that the model asked for where it may."""

    when: When
    instructions: str = ""
    reason: Reason = "manual"


class AutoCompactPolicy:
    """What may happen by itself in one conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._agreed: ApprovedCompaction | None = None
        self._told = 0  # the last turn in which a notice was given that comes once a turn

    # ── what a person says ──

    def agree(self, when: When, instructions: str = "") -> None:
        """The person says yes to a suggestion."""
        self._agreed = ApprovedCompaction(when, instructions)

    def wanted_by_model(self, keep: str) -> str:
        """The model asks for room, as soon as no call is open; the answer to it."""
        context_usage, options = self._conversation.context_usage, self._conversation.options
        if options.auto_compact != "auto":
            return "The person decides when room is made here: nothing is done. Go on with what fits, and read less at once."
        if context_usage.used <= context_usage.target_tokens:
            used = f"{percent(context_usage.pressure)} of {short(context_usage.limit)} tokens are used"
            return f"Not needed yet: {used}. Nothing is done."
        self._agreed = self._agreed or ApprovedCompaction("now", keep, "auto")
        return (
            "Room is made before your next reply, or as soon as a summary is written, as far as there is something that can "
            "go. Go on with the work."
        )

    def take_agreed(self, *times: When) -> ApprovedCompaction | None:
        """Take the compaction that was agreed for one of these times; None without one."""
        agreed = self._agreed
        if agreed is None or agreed.when not in times:
            return None
        self._agreed = None
        return agreed

    def put_back(self, agreed: ApprovedCompaction) -> None:
        """Put back what `take_agreed` gave: its summary is still being written."""
        self._agreed = self._agreed or agreed

    def pause_for(self, turns: int) -> None:
        """No automatic compaction and no question for the rest of this turn and `turns` more, unless the window overflows."""
        self._agreed = None
        self._use(self._conversation.backoff.rested(self._conversation.ledger.turn, turns))

    def stopped(self) -> None:
        """The person stopped a compaction or undid one: it must not come back at once."""
        self._use(self._conversation.backoff.rested(self._conversation.ledger.turn))

    def start_over(self) -> None:
        """Forget why automatic compaction stopped: a model was chosen or a setting edited."""
        self._use(self._conversation.backoff.reset())

    def _use(self, backoff: Backoff) -> None:
        """Put another back-off in force, and journal what of it outlives a restart."""
        conversation = self._conversation
        if backoff.saved_state != conversation.backoff.saved_state:
            conversation.write_later(backoff.saved_state)
        conversation.backoff = backoff
        conversation.remeasured()

    # ── what may be done ──

    @property
    def standing(self) -> str:
        """The state of the back-off: `free`, `resting`, `waiting`, `broken` or `thrashing`."""
        return self._conversation.backoff.standing(self._conversation.clock.seconds(), self._conversation.ledger.turn)

    def may_start(self, context_usage: ContextUsage, *, inside: bool) -> bool:
        """Whether a compaction may start by itself; `inside`: between two rounds of a turn. A request that cannot fit overrides a
        pause."""
        if self._conversation.options.auto_compact != "auto":
            return False
        standing = self.standing
        rests = standing == "resting" and not self._conversation.backoff.waits(self._conversation.clock.seconds())
        return standing == "free" or (context_usage.excess > 0 and (inside or rests))

    def may_ask(self, context_usage: ContextUsage) -> bool:
        """Whether to ask the person: they want to be asked and were not in this turn, and no pause is on while the request
        fits."""
        if self._conversation.options.auto_compact != "ask" or self._agreed:
            return False
        if self.standing == "resting" and not context_usage.excess:
            return False
        return self._told != self._conversation.ledger.turn

    # ── what came of it ──

    def helped(self) -> None:
        """A compaction that somebody asked for made room: automatic ones may run again."""
        self._use(self._conversation.backoff.closed())

    def record_result(self, result: CompactionRecord, *, inside: bool) -> Sequence[Notice]:
        """Learn from the outcome of an automatic compaction; notices for the person. One `inside` a turn, or one that was content
        with less than the target since it needed no summary, does not count as a sign that the window fills again at once."""
        if result.outcome == "compacted":
            if inside or result.strategy != self._conversation.options.strategy:
                return ()
            if result.reason == "auto":
                self._use(self._conversation.backoff.helped(self._conversation.ledger.turn))
            return self._refilled() if self.standing == "thrashing" else ()
        self._use(self._conversation.backoff.failed(self._conversation.clock.seconds()))
        if self.standing == "broken":
            return (
                Notice(
                    "warning",
                    f"{result.detail} {MAX_FAILURES_IN_A_ROW} compactions failed: automatic compaction stops. {AGAIN}",
                ),
            )
        seconds = round(Backoff.wait(self._conversation.backoff.failures))
        wait = f"{seconds} s" if seconds < 60 else f"{seconds // 60} min"
        return (Notice("warning", f"{result.detail} Next try in {wait}, or by /compact."),)

    def _refilled(self) -> Sequence[Notice]:
        """The notice that compaction stops since the window fills again at once. It advises a higher trigger only where one is
        possible."""
        options, budget = self._conversation.options, self._conversation.budget
        higher = make_budget(
            budget.window,
            options.output_reserved,
            min(0.95, options.compression_trigger + 0.1),
            options.target,
            working=budget.working,
        )
        ways = "A higher context.compression_trigger or a" if higher.trigger > budget.trigger else "A"
        ways = "A higher context.working_limit" if budget.trigger == budget.working.tokens else f"{ways} larger window"
        text = "The window fills again right after each compaction, so automatic compaction stops."
        return (Notice("warning", f"{text} {ways} would give room. {AGAIN}"),)

    # ── what is said instead of a compaction ──

    def once_a_turn(self) -> bool:
        """True the first time in a turn."""
        told, self._told = self._told, self._conversation.ledger.turn
        return told != self._told

    def about_overhead(self, context_usage: ContextUsage) -> Sequence[Notice]:
        """The notice that what cannot be compacted is too much already; once a turn."""
        if not self.once_a_turn():
            return ()
        parts = sorted(((context_usage.tokens(n), n) for n in FIXED), reverse=True)
        biggest = ", ".join(f"{name} {short(tokens)}" for tokens, name in parts[:3] if tokens)
        text = f"A compaction would not help: {short(fixed(context_usage))} tokens cannot be compacted ({biggest})."
        cost = fixed(context_usage) * context_usage.price.input
        price = f" They cost ${cost:,.2f} a request." if cost >= 0.01 else ""
        ways = "Fewer tools or shorter memory files make room."
        if overhead(context_usage) < context_usage.trigger_tokens:
            ways = "Unpin some of them (F4, p)."
        return (Notice("warning", f"{text}{price} {ways}"),)

    def about_trigger(self, context_usage: ContextUsage, *, inside: bool) -> Sequence[Notice]:
        """Why nothing happens although the trigger is reached: automatic compaction is off, or there is nothing to free. Once a
        turn."""
        if compaction_due(context_usage) != "compact":
            return ()
        if context_usage.automatic.standing == "off":
            ways = "F8 frees up context; nothing is done by itself."
        elif 0 < starts_at(context_usage) <= context_usage.used and not (inside or self._agreed):
            ways = nothing_to_free(context_usage)
        else:
            return ()
        return (
            (Notice("info", f"The window is {percent(context_usage.pressure)} full. {ways}"),)
            if self.once_a_turn()
            else ()
        )
