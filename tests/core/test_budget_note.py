"""The line that tells the model how full its window is: only once that matters."""

from __future__ import annotations

import msgspec

from ctxchat.core.automatic import Automatic
from ctxchat.core.budget import Window, make_budget
from ctxchat.core.context_usage import ContextUsage, Counting, budget_note, measure
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.tokens import TokenCounter, rough_count
from ctxchat.core.view import compile


def gauge(used: int, window: Window) -> ContextUsage:
    empty = measure(
        compile(Ledger(), Head(), TokenCounter(rough_count, lambda w, h: 0)),
        make_budget(window, 0, 0.75, 0.5),
        Counting("m"),
    )
    return msgspec.structs.replace(empty, used=used, pressure=used / empty.limit)


def test_nothing_is_said_while_there_is_room_or_nobody_knows() -> None:
    assert budget_note(gauge(5_000, Window(20_000, "loaded"))) == ("", "")
    assert budget_note(gauge(19_000, Window(20_000, "assumed"))) == ("", "")


def test_each_step_has_a_name_that_sorts_by_fullness() -> None:
    window = Window(20_000, "loaded")  # the trigger is at 15,000
    steps = [budget_note(gauge(used, window))[0] for used in (11_900, 12_000, 13_500, 14_250, 19_000)]
    assert steps == ["", "0.80", "0.90", "0.95", "0.95"] and steps == sorted(steps)


def test_near_the_trigger_it_says_how_full_it_is_and_what_comes() -> None:
    context_usage = gauge(14_000, Window(20_000, "loaded"))
    _, line = budget_note(context_usage)
    assert "70 % full (14.0k of 20.0k tokens)" in line and "\n" not in line
    assert "Older parts become a summary from 75 % on before the user's next message;" in line
    _, within = budget_note(msgspec.structs.replace(context_usage, automatic=Automatic(inside=0.85)))
    assert "Older parts become a summary from 85 % on, and from 75 % on before the user's next message;" in within
    for standing in (Automatic("off"), Automatic("snoozed", 3)):
        _, nothing = budget_note(msgspec.structs.replace(context_usage, automatic=standing))
        assert "70 % full" in nothing and "summary" not in nothing
