"""A stored session that is opened: its parts are measured, and one larger than the window offers room before the first send."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ctxchat.config.schema import Settings
from ctxchat.core.budget import Window
from ctxchat.core.journal import Record
from ctxchat.core.messages import Text
from ctxchat.core.options import Options
from ctxchat.models.discovery import FirstLook
from ctxchat.tui.app import CtxchatApp, Runtime
from ctxchat.tui.chat.banner import Banner
from ctxchat.tui.chat.offers import SuggestionPanel
from ctxchat.tui.commands import BY_NAME
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.xray import XrayScreen
from ctxchat.tui.transcript.blocks import UserBlock
from tests.agent.desk import Desk
from tests.doubles.scripted import ScriptedModel, says
from tests.tui.chatting import THEMES, idle, said, until
from tests.tui.fakes import FakeServices
from tests.tui.real import LONG, Writer

OPTIONS = Options(keep_recent=2, strategy="summarize", prepare=False, min_messages=1)


async def stored() -> list[Record]:
    """A session of four long turns."""
    model = ScriptedModel([says(LONG) for _ in range(4)], window=Window(100_000, "configured"))
    desk = Desk(model, options=OPTIONS, summariser=Writer())
    for number in range(4):
        await desk.say(f"question {number} {LONG}")
    return list(desk.journal.records)


def opened(folder: Path, records: list[Record], window: int, **how: object) -> tuple[CtxchatApp, Desk, ScriptedModel]:
    model = ScriptedModel([says("done")], window=Window(window, "configured"))
    desk = Desk(model, options=OPTIONS, summariser=Writer(), records=records, **how)  # type: ignore[arg-type]
    return (
        CtxchatApp(
            FakeServices(folder, desk.session),
            Settings(),
            THEMES,
            session_id="s1",
            runtime=Runtime(now=count().__next__),
        ),
        desk,
        model,
    )


async def test_one_larger_than_the_window_offers_room_and_n_makes_it(tmp_path: Path) -> None:
    app, desk, model = opened(tmp_path, await stored(), 4_000)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(app.chat.query(SuggestionPanel)))
        assert desk.session.context_usage.excess > 0 and not desk.state.compactions
        assert "Free up context?" in str(app.chat.query_one(".question").render())
        await pilot.press("tab", "n")
        await until(pilot, lambda: bool(desk.state.compactions))
        await idle(app, pilot)
        assert desk.session.context_usage.excess == 0 and not app.chat.query(SuggestionPanel)
        assert model.requests == [], "before anything was sent"


async def test_one_that_fits_is_measured_and_nobody_is_asked(tmp_path: Path) -> None:
    app, desk, _ = opened(tmp_path, await stored(), 100_000)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.session is not None and desk.session.context_usage.tokens("user") > 0)
        await pilot.pause()
        assert not app.chat.query(SuggestionPanel)


async def test_what_went_along_says_its_tokens_once_they_are_known(tmp_path: Path) -> None:
    first = Desk(ScriptedModel([says("seen")], window=Window(100_000, "configured")), options=OPTIONS)
    async with aclosing(first.session.send("look", [Text("PERIOD = 90\n" * 30, "gauge.py")])) as stream:
        assert [stamped async for stamped in stream]
    app, _, _ = opened(tmp_path, list(first.journal.records), 100_000)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: re.search(r"30 lines \d", said(app, UserBlock)))


async def test_where_nothing_can_be_freed_that_is_said(tmp_path: Path) -> None:
    app, desk, _ = opened(tmp_path, [], 2_000, system="rule " * 3_000)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: desk.session.context_usage.excess > 0)
        await until(pilot, lambda: "larger than the window" in str(app.chat.query_one(Banner).render()) or _said(app))
        assert not app.chat.query(SuggestionPanel)


def _said(app: CtxchatApp) -> bool:
    return any("larger than the window" in str(w.render()) for w in app.chat.query_one(Banner).query("Static"))


class Slow(FakeServices):
    """Opens a session when it is let."""

    async def open(self, session_id: str = "") -> Any:
        await self.go.wait()
        return await super().open(session_id)

    async def first_look(self) -> FirstLook:
        return FirstLook((), "No key or local server found.")

    go: asyncio.Event


async def test_a_key_that_needs_the_session_waits_for_it(tmp_path: Path) -> None:
    _, desk, _ = opened(tmp_path, await stored(), 100_000)
    services = Slow(tmp_path, desk.session)
    services.go = asyncio.Event()
    app = CtxchatApp(services, Settings(), THEMES, session_id="s1", runtime=Runtime(now=count().__next__))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        app.run_command(BY_NAME["xray"])
        app.run_command(BY_NAME["archive"])
        await pilot.pause()
        assert app.session is None and app.screen is app.chat
        services.go.set()
        await until(pilot, lambda: isinstance(app.screen, ArchiveScreen))
        await until(pilot, lambda: desk.session.context_usage.tokens("user") > 0)
        assert not desk.session.context_usage.model.startswith("offline/")
        assert not app.chat.banner.told, "it goes on with the model it has"


@pytest.mark.parametrize(
    ("keys", "screens"),
    [
        (("f4", "f3"), [ArchiveScreen]),
        (("f4", "f4"), [XrayScreen]),
        (("f4", "escape"), []),
        (("f4", "x"), [XrayScreen]),
    ],
)
async def test_of_keys_that_wait_for_the_session_the_last_counts_and_esc_takes_it_back(
    tmp_path: Path, keys: tuple[str, ...], screens: list[type]
) -> None:
    _, desk, _ = opened(tmp_path, await stored(), 100_000)
    services = Slow(tmp_path, desk.session)
    services.go = asyncio.Event()
    app = CtxchatApp(services, Settings(), THEMES, session_id="s1", runtime=Runtime(now=count().__next__))
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        for key in keys:
            await pilot.press(key)
        assert app.screen is app.chat
        services.go.set()
        await until(pilot, lambda: app.session is not None and len(app.screen_stack) == 1 + len(screens))
        await pilot.pause()
        assert [type(screen) for screen in app.screen_stack[1:]] == screens
        assert app.chat.composer.draft == ("x" if "x" in keys else "")
