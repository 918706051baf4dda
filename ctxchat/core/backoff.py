"""Decides when a compaction may start by itself: it waits longer after each failure, stops after three in a row, stops where the
window refills at once, and rests where a person wanted that.

Immutable: each method returns the next value. Times are in seconds, of any clock that the caller uses.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ctxchat.core import journal
from ctxchat.core.automatic import SNOOZE_TURNS, Automatic
from ctxchat.core.automatic import Standing as Shown
from ctxchat.core.options import AutoCompact, Options

MAX_FAILURES_IN_A_ROW = 3
"""Failures in a row after which automatic compaction stops until a compaction by hand succeeds."""

MAX_REFILLS_IN_A_ROW = 3
"""Compactions in a row, each in the same turn as the one before or the next, after which automatic compaction stops."""

Standing = Literal["free", "waiting", "broken", "thrashing", "resting"]


class Backoff(msgspec.Struct, frozen=True):
    """The state of automatic compaction after past ones: `failures` and `refills` in a row, the time `not_before` of the next
    try, the `last_turn` with an automatic compaction, and the turn `rest_until` which a person wants rest."""

    failures: int = 0
    not_before: float = 0.0
    refills: int = 0
    last_turn: int = -10
    rest_until: int = 0

    @classmethod
    def remembered(cls, kept: journal.BackoffState) -> Backoff:
        """The state as it was when the session was last open, without a wait after a failure."""
        return cls(kept.failures, 0.0, kept.refills, kept.last_turn, kept.rest_until)

    @property
    def saved_state(self) -> journal.BackoffState:
        """The part of the state that is stored for the next start."""
        return journal.BackoffState(self.failures, self.refills, self.last_turn, self.rest_until)

    def standing(self, now: float, turn: int) -> Standing:
        """Whether an automatic compaction may run now, and if not why."""
        if self.failures >= MAX_FAILURES_IN_A_ROW:
            return "broken"
        if self.refills >= MAX_REFILLS_IN_A_ROW:
            return "thrashing"
        if turn < self.rest_until:
            return "resting"
        return "waiting" if self.waits(now) else "free"

    def waits(self, now: float) -> bool:
        """True until the time of the next try after a failure, whether or not a person wanted rest."""
        return now < self.not_before

    def failed(self, now: float) -> Backoff:
        """The state after a compaction that failed or was rejected: the next try waits 30 s, twice as long each further time."""
        failures = self.failures + 1
        return msgspec.structs.replace(self, failures=failures, not_before=now + self.wait(failures))

    def helped(self, turn: int) -> Backoff:
        """The state after an automatic compaction that made room."""
        again = turn - self.last_turn <= 1
        return Backoff(refills=self.refills + 1 if again else 0, last_turn=turn)

    def closed(self) -> Backoff:
        """The state after a compaction by hand that made room: everything may run again."""
        return Backoff()

    def reset(self) -> Backoff:
        """The state after the cause of a stop may be gone: compactions may run again, except while a person wants rest."""
        return Backoff(rest_until=self.rest_until)

    def rested(self, turn: int, turns: int = SNOOZE_TURNS) -> Backoff:
        """The state where a person wants no automatic compaction for the rest of this turn and `turns` more."""
        return msgspec.structs.replace(self, rest_until=turn + 1 + turns)

    def automatic(self, options: Options, now: float, turn: int, *, by_hook: bool, few: bool) -> Automatic:
        """Whether compaction starts by itself in a turn. `by_hook`: hooks decide when; `few` as in `Automatic`."""
        standing = self._shown_state(options.auto_compact, self.standing(now, turn), by_hook=by_hook)
        reactive = standing in {"auto", "by_hook"} and options.auto_compact == "auto" and options.reactive_per_turn > 0
        return Automatic(
            standing,
            turns=self.rest_until - turn if standing == "snoozed" else 0,
            inside=options.micro_trigger if reactive else 0.0,
            few=few,
            by_word=options.auto_compact == "ask",
        )

    def _shown_state(self, auto_compact: AutoCompact, standing: Standing, *, by_hook: bool) -> Shown:
        """What the gauge shows of automatic compaction, by the setting and the state of the back-off."""
        match auto_compact, standing:
            case "off", _:
                return "by_hook" if by_hook else "off"
            case "ask", _:
                return "snoozed" if standing == "resting" else "asks"
            case _, "broken":
                return "failed"
            case _, "waiting":
                return "waiting"
            case _ if by_hook:
                return "by_hook"
            case _, "thrashing":
                return "refilled"
            case _, "resting":
                return "snoozed"
            case _:
                return "auto"

    @staticmethod
    def wait(failures: int) -> float:
        """Seconds to wait after this many failures in a row."""
        return 30.0 * 2 ** (failures - 1)
