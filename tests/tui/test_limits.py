"""What is left of the spending limits, and a limit raised for this session."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.agent.spending_budget import SpendingBudget
from ctxchat.core.events import Usage
from ctxchat.core.limits import SpendingLimits
from ctxchat.tui.chat.offers import LimitPanel
from tests.agent.test_spending_limits import PRICES
from tests.doubles.scripted import says
from tests.tui.chatting import chatting, until, words
from tests.tui.fakes import FakeSession
from tests.tui.real import say, talking


async def test_limits_are_shown_and_set_and_what_is_none_is_refused(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session, (100, 30)) as (app, pilot):
        await pilot.press(*"/limit", "enter")
        await until(pilot, lambda: "No limit is set" in words(app))
        await pilot.press(*"/limit session 5", "enter")
        await until(pilot, lambda: "$0.00 of $5.00 for this session is spent." in words(app))
        assert session.spending.limits.session == 5.0
        await pilot.press(*"/limit week 5", "enter")
        await until(pilot, lambda: "week 5 is no limit" in words(app))


DEAR = Usage(8_000, 2_000, cost_usd=0.09)


async def test_who_is_stopped_by_a_limit_is_asked_and_the_turn_goes_on_under_another(tmp_path: Path) -> None:
    script = [says(f"Answer {n}.", usage=DEAR) for n in range(4)]
    async with talking(tmp_path, script, prices=PRICES) as (app, pilot, desk):
        desk.session._conversation.spending = SpendingBudget(SpendingLimits(session=0.1), session=desk.session.id)
        await say(app, pilot, "one")
        await until(pilot, lambda: "Answer 0." in words(app) and not app.controller.busy)
        await say(app, pilot, "two")
        await until(pilot, lambda: app.query(LimitPanel))
        assert "$0.09 of $0.10 for this session is spent" in words(app) and "Answer 1." not in words(app)
        await pilot.press("tab", "g")
        await until(pilot, lambda: "Answer 1." in words(app) and not app.query(LimitPanel))
        assert desk.session.spending.limits.session == pytest.approx(0.19)

        await until(pilot, lambda: not app.controller.busy)
        await say(app, pilot, "three")
        await until(pilot, lambda: app.query(LimitPanel))
        await pilot.press("tab", "a", *"much", "enter")
        await until(pilot, lambda: "much is no amount" in words(app) and app.query(LimitPanel))
        await pilot.press("tab", "a", *"$2.50", "enter")
        await until(pilot, lambda: "Answer 2." in words(app))
        assert desk.session.spending.limits.session == 2.5


async def test_not_now_leaves_the_limit_and_the_message(tmp_path: Path) -> None:
    async with talking(tmp_path, [says("Never said.")], prices=PRICES) as (app, pilot, desk):
        desk.session._conversation.spending = SpendingBudget(SpendingLimits(turn=0.000001), session=desk.session.id)
        await say(app, pilot, "one")
        await until(pilot, lambda: app.query(LimitPanel))
        await pilot.press("tab", "escape")
        await until(pilot, lambda: not app.query(LimitPanel))
        assert desk.session.spending.limits.turn == 0.000001 and "Never said." not in words(app)
        assert [group.kind for group in desk.state.ledger.groups] == ["user"], "it was said once"
