"""Free up context: what it shows, what it asks, what it comes back with."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from textual.events import Key
from textual.widgets import Input, Static, TextArea

from ctxchat.core.cache_state import CacheState, Hold, NextCall, PrefixRewrite
from ctxchat.core.context_usage import TokenPrice
from ctxchat.core.errors import LedgerError
from ctxchat.core.strategies.oversize import KEPT
from ctxchat.presentation.usage_text import gain
from ctxchat.tui.panels.panel import Heading
from ctxchat.tui.panels.preview import PreviewScreen, Stepper, Steps
from ctxchat.tui.panels.reader import TextScreen
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.rows import Rows
from tests.tui.chatting import until
from tests.tui.harbour import HarbourSession, state
from tests.tui.panel_app import PanelApp

UNASKED = object()


class Opened(PanelApp):
    """The screen over nothing; `result` is what it came back with."""

    def __init__(self, desk: HarbourSession, **changes: Any) -> None:
        super().__init__()
        self.desk, self.changes = desk, changes
        self.result: Any = UNASKED

    async def on_mount(self) -> None:
        preview = msgspec.structs.replace(await self.desk.preview(), **self.changes)
        self.push_screen(PreviewScreen(self.desk, preview), self.take)

    def take(self, result: Any) -> None:
        self.result = result

    def text(self, selector: str) -> str:
        found = self.screen.query_one(selector)
        assert isinstance(found, Static | Heading | Stepper)
        return str(found.render()) if all(w.display for w in found.ancestors_with_self) else ""

    def steps(self) -> list[str]:
        steps = self.screen.query_one(Steps)
        return [steps.render_line(y).text for y, step in enumerate(steps.items) if not step.why_nothing]


async def weighed(app: Opened) -> None:
    """What was asked of the planner is on screen."""
    await app.screen.workers.wait_for_complete()


def desk() -> HarbourSession:
    return HarbourSession(state(30), window=24_000)


async def test_a_double_click_on_a_message_decides_nothing() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        await weighed(app)
        await pilot.double_click("#steps", offset=(8, 0))
        await pilot.double_click("#messages", offset=(8, 0))
        await pilot.pause()
        assert isinstance(app.screen, PreviewScreen) and app.result is UNASKED


@pytest.mark.parametrize(("after_range", "shown"), [((9_000, 12_000), "→ 9.0k–12.0k"), ((9_010, 9_020), "→ ~")])
async def test_a_range_is_told_where_its_ends_read_apart(after_range: tuple[int, int], shown: str) -> None:
    app = Opened(desk(), after_range=after_range)
    async with app.run_test(size=(100, 30)) as pilot:
        await weighed(app)
        await pilot.pause()
        assert shown in app.text(".panel-heading")


async def test_enter_agrees_to_all_that_is_ticked() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        assert all(line.startswith("[x]") for line in app.steps())
        await pilot.press("enter")
        preview, ticked = app.result.preview, app.result.steps
        assert ticked == ("shrink_tool_results", "summarize")
        assert preview.plan is not None and preview.instructions == ""


async def test_esc_leaves_everything_as_it_is() -> None:
    app = Opened(desk())
    before = app.desk.state
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("space", "escape")
        assert app.result is None
        assert app.desk.state is before


async def test_unticking_reckons_anew() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        whole = app.text(".panel-heading")
        await pilot.press("down", "space")
        assert app.steps()[1].startswith("[ ]")
        await weighed(app)
        assert app.text(".panel-heading") != whole
        assert app.text("#sent").startswith("Nothing is sent anywhere.")
        after_bar = app.screen.query_one("#after", Gauge)
        assert "Σ" in after_bar.render_line(0).text  # the summary that is in force stays
        await pilot.press("enter")
        assert app.result.steps == ("shrink_tool_results",)


@pytest.mark.parametrize(("freed", "told"), [(0.04, True), (0.06, False)])
async def test_a_pass_that_would_be_refused_for_freeing_too_little_is_told_before_it_is_run(
    freed: float, told: bool
) -> None:
    here = desk()
    whole = await here.preview()
    start = whole.before.used - whole.before.tokens("draft")
    after = msgspec.structs.replace(whole.after, used=round(start * (1 - freed)))
    app = Opened(here, steps=whole.steps[:1], after=after)
    async with app.run_test(size=(100, 30)):
        assert app.text("#sent").startswith("Nothing is sent anywhere.")
        assert ("less than 5 %" in app.text("#sent")) is told


async def test_what_is_ticked_is_weighed_as_it_would_be_run() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        at_once = app.text(".panel-heading")
        await pilot.press("down", "space")
        await weighed(app)
        assert app.desk.weighed == [("shrink_tool_results",)]
        assert app.text(".panel-heading") != at_once
        assert [line[:3] for line in app.steps()] == ["[x]", "[ ]"]
        await pilot.press("space")  # all of it again: nothing has to be asked for that
        assert "sent to" in app.text("#sent") and app.text(".panel-heading") == at_once
        await weighed(app)
        assert len(app.desk.weighed) == 1


async def test_the_step_under_the_cursor_shows_what_it_touches_and_the_facts_it_carries() -> None:
    app = Opened(desk(), facts_text="Commands: pytest -q")
    async with app.run_test(size=(120, 30)) as pilot:
        await app.screen.workers.wait_for_complete()
        await pilot.pause()
        touched = app.screen.query_one("#messages", Rows)
        step = app.screen.query_one(Steps).current
        assert step is not None and touched.items and {row.group for row in touched.items} <= step.affected_groups
        sizes = [row.tokens for row in touched.items]
        assert sizes == sorted(sizes, reverse=True)
        assert not app.text("#facts Static")
        await pilot.press("down")
        await pilot.pause()
        assert len(touched.items) > len(sizes)
        assert app.text("#facts Static") == "Commands: pytest -q"
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.text("#goes").startswith("turns 1–30; largest: "))
        assert not app.text("#facts Static")


async def test_the_rows_add_up_to_the_heading_whatever_is_ticked() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        for key, ticked in (
            ("space", ("summarize",)),
            ("space", None),
            ("down", None),
            ("space", ("shrink_tool_results",)),
        ):
            await pilot.press(key)
            await weighed(app)
            whole = await app.desk.preview()
            preview = await app.desk.with_steps(whole, ticked) if ticked else whole
            assert gain(preview.freed) in app.text(".panel-heading")
            assert all(any(gain(s.tokens_freed) in row for row in app.steps()) for s in preview.steps)
            assert abs(sum(s.tokens_freed for s in preview.steps) - preview.freed) <= len(preview.steps)


async def test_nothing_ticked_runs_nothing() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.press("space", "down", "space", "enter")
        assert app.result is UNASKED
        before = app.screen.query_one("#before", Gauge).render_line(0).text
        assert app.screen.query_one("#after", Gauge).render_line(0).text == before


async def test_a_click_unticks() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.click(Steps, offset=(1, 1))
        assert [line[:3] for line in app.steps()] == ["[x]", "[ ]"]


async def test_the_cut_moves_by_keys_and_by_mouse_and_the_session_is_asked_once() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        for _ in range(3):
            app.post_message(Key("right", None))  # at once: a slow machine is no one who waits for an answer
        await pilot.pause()
        await app.screen.workers.wait_for_complete()
        await pilot.pause()
        assert app.desk.asked == [("", None), ("", 9)]
        assert app.text("#keep") == "leave the newest ◂ 9 ▸ messages"
        await pilot.click(Stepper, offset=(17, 0))
        await app.screen.workers.wait_for_complete()
        assert app.desk.asked[-1] == ("", 8)
        await pilot.click(Stepper, offset=(21, 0))
        await app.screen.workers.wait_for_complete()
        assert app.desk.asked[-1] == ("", 9)


async def test_the_arrows_change_what_stays_from_everywhere_but_the_field() -> None:
    app = Opened(desk())
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await weighed(app)
        for place in ("#steps", "#messages", "#facts"):
            app.screen.query_one(place).focus()
            await pilot.press("left")
        assert "◂ 3 ▸ messages" in app.text("#keep")
        app.screen.query_one(Input).focus()
        await pilot.press("right", "left")
        assert "◂ 3 ▸ messages" in app.text("#keep")
        app.screen.query_one(Steps).focus()
        await pilot.press("left", "left", "left")
        assert "◂ 1 ▸ message" in app.text("#keep")
        await until(pilot, lambda: "newest message always stays" in str([n.message for n in app._notifications]))


async def test_that_long_results_among_the_newest_are_cut_is_said_beside_their_number() -> None:
    here = desk()
    first, *others = (await here.preview()).steps
    app = Opened(here, steps=(msgspec.structs.replace(first, name=KEPT), *others))
    async with app.run_test(size=(120, 36)) as pilot:
        assert app.text("#keep") == "leave the newest ◂ 6 ▸ messages, but cut long results among them"
        await pilot.press("space")
        assert app.text("#keep") == "leave the newest ◂ 6 ▸ messages"


async def test_what_goes_can_be_read_whole() -> None:
    app = Opened(desk())
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await weighed(app)
        touched = app.screen.query_one("#messages", Rows).items
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, TextScreen))
        whole = app.screen.query_one(TextArea).text
        assert whole.count("── m") == len(touched)
        await pilot.press("escape")
        app.screen.query_one("#messages", Rows).focus()
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, TextScreen))
        one = app.screen.query_one(TextArea).text
        assert one.startswith(f"── m{touched[0].message} ") and one in whole
        await pilot.press("escape")
        app.screen.query_one(Steps).focus()
        await pilot.press("down", "down", "v")
        await until(pilot, lambda: "no old reasoning" in str([n.message for n in app._notifications]))
        assert app.text("#about") == "nothing goes: no old reasoning"


async def test_an_instruction_goes_along() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        app.screen.query_one(Input).focus()
        await pilot.press(*"keep x", "enter")
        preview, ticked = app.result.preview, app.result.steps
        assert preview.instructions == "keep x" and len(ticked) == 2


async def test_esc_leaves_the_field_before_the_screen() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        app.screen.query_one(Input).focus()
        await pilot.press("escape")
        assert app.result is UNASKED
        await pilot.press("escape")
        assert app.result is None


async def test_another_provider_is_named() -> None:
    app = Opened(desk(), other_provider=True, model="other/[bold]x\x1b[2J")
    async with app.run_test(size=(100, 30)):
        assert "sent to other/[bold]x, not the provider in use" in app.text("#sent")


async def test_nothing_to_free_is_said_calmly() -> None:
    app = Opened(HarbourSession(state(1, passes=0)))
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.text("#calm").startswith("Nothing to free:")
        await pilot.press("enter")
        assert app.result is UNASKED
        await pilot.press("escape")
        assert app.result is None


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20), (20, 10)])
async def test_it_fits(size: tuple[int, int]) -> None:
    app = Opened(desk())
    async with app.run_test(size=size) as pilot:
        assert all(len(line) <= size[0] and "−" in line for line in app.steps())
        await pilot.press("enter")
        assert app.result is not UNASKED


async def test_what_the_next_message_takes_with_it_and_without_follows_the_ticks() -> None:
    asked = desk()
    asked.price = TokenPrice(3e-6, 0.3e-6, 3.75e-6)
    asked.cache = CacheState((Hold(asked.context_usage.used, time.time() + 3_000, length=99),), "cold", NextCall(0.4))
    app = Opened(asked, rewrite=PrefixRewrite(2, 1_000, 0, 3))
    async with app.run_test(size=(100, 30)) as pilot:
        assert "The next message costs $0.0" in app.text("#sent") and "reasoning of 3 replies" in app.text("#sent")
        await pilot.press("space", "down", "space")
        assert "next message" not in app.text("#sent")


async def test_enter_runs_what_the_stepper_says_however_quickly_it_comes() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("right", "right", "enter")
        await until(pilot, lambda: app.result is not UNASKED)
        assert app.result.preview.keep_recent == 8


async def test_where_another_number_cannot_be_looked_at_nothing_is_run_and_the_one_shown_stands() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30), notifications=True) as pilot:

        async def refused(*_: object) -> None:
            raise LedgerError("The plan cannot be carried out.")

        app.desk.preview = refused
        await pilot.press("right", "enter")
        await until(pilot, lambda: app._notifications)
        assert "◂ 6 ▸" in app.text("#keep") and app.result is UNASKED


async def test_a_step_that_frees_nothing_says_why_and_cannot_be_ticked() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        rows = app.screen.query_one(Steps)
        assert "no old reasoning" in rows.render_line(2).text and "[" not in rows.render_line(2).text
        await pilot.press("down", "down", "space")
        await until(pilot, lambda: app._notifications)
        await pilot.press("enter")
        assert app.result.steps == ("shrink_tool_results", "summarize")


async def test_what_is_told_the_summary_ticks_it() -> None:
    app = Opened(desk())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("down", "space")
        await weighed(app)
        app.screen.query_one(Input).focus()
        await pilot.press("k")
        await weighed(app)
        assert [line[:3] for line in app.steps()] == ["[x]", "[x]"]
        await pilot.press("escape")
        app.screen.query_one(Steps).focus()
        await pilot.press("space")
        await weighed(app)
        assert "is not used" in app.text("#sent")
