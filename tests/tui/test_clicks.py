"""What can be clicked beside buttons and lists: keys, model and mode, what holds most, and lines of files."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.chat.breakdown import Offenders
from ctxchat.tui.panels.panel import Confirm
from ctxchat.tui.transcript.markdown import PLACE
from ctxchat.tui.unsent.outside_editor import visit
from tests.tui.chatting import chatting, until
from tests.tui.fakes import FakeSession, reply
from tests.tui.test_chat import words
from tests.tui.test_reading import Copied


async def click_on(app: CtxchatApp, pilot: Pilot[int], said: str) -> None:
    """On these words, wherever they stand on the screen."""
    rows = words(app).split("\n")
    y = next(place for place, row in enumerate(rows) if said in row)
    await pilot.click(offset=(rows[y].index(said) + 1, y))
    await pilot.pause()


async def test_keys_model_and_mode_do_what_they_say(tmp_path: Path) -> None:
    session = FakeSession(lambda _: reply("Yes."))
    async with chatting(tmp_path, session, (120, 40)) as (app, pilot):
        await pilot.press("x")
        await click_on(app, pilot, "enter send")
        await until(pilot, lambda: "Yes." in words(app) and not app.controller.busy)
        before = session.permissions.mode
        await click_on(app, pilot, "shift+tab")
        await until(pilot, lambda: session.permissions.mode != before)
        session.permissions.mode = "auto-edit"
        app.chat.show_header()
        await click_on(app, pilot, "auto-edit")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert session.permissions.mode == "ask", "a click is asked as the key is"
        await click_on(app, pilot, "F4 x-ray")
        await until(pilot, lambda: len(app.screen_stack) > 1)
        await pilot.press("escape")
        await click_on(app, pilot, session.context_usage.model.rsplit("/", 1)[-1])
        await until(pilot, lambda: type(app.screen).__name__ == "ModelsScreen")


async def test_the_head_of_a_column_orders_by_it(tmp_path: Path) -> None:
    session = FakeSession(lambda _: reply("A long answer. " * 400))
    async with chatting(tmp_path, session, (140, 44)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: not app.controller.busy)
        await pilot.press("f4")
        await until(pilot, lambda: "biggest first" in words(app) and "tokens ▾" in words(app))
        await click_on(app, pilot, "turn")
        await until(pilot, lambda: "as sent" in words(app) and "tokens ▾" not in words(app))
        await click_on(app, pilot, "tokens")
        await until(pilot, lambda: "biggest first" in words(app))


async def test_an_address_that_no_window_opens_is_copied_shown_and_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    async with chatting(tmp_path, FakeSession(), (120, 40), app=Copied) as (app, pilot):
        app.open_url("https://example.org/a")
        await until(pilot, lambda: "Copied, as over SSH" in words(app) and "example.org/a" in words(app))
        assert app.copied == "https://example.org/a"


async def test_what_holds_most_is_gone_to(tmp_path: Path) -> None:
    session = FakeSession(lambda _: reply("A long answer. " * 400))
    async with chatting(tmp_path, session, (140, 44)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: not app.controller.busy and "biggest" in words(app))
        assert "▌ You" not in words(app)
        await pilot.click(Offenders, offset=(4, 2))
        await until(pilot, lambda: "▌ You" in words(app))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("see src/a.py:10 and `b.rs:3`.", ["src/a.py:10", "b.rs:3"]),
        ("/srv/x-1/app.test.ts:7:3 or ~/a.py:1", ["/srv/x-1/app.test.ts:7", "~/a.py:1"]),
        ("http://127.0.0.1:80/ or https://example.org:8443 or me@example.org:22", []),
        ("at 10:30, v1.2:3, ratio 3:1", []),
    ],
)
def test_a_line_of_a_file_is_told_from_an_address(text: str, places: list[str]) -> None:
    assert [found[0] for found in PLACE.finditer(text)] == places


async def test_a_line_of_a_file_opens_in_the_editor(tmp_path: Path) -> None:
    session = FakeSession(lambda _: reply("Look at gone.py:3, and at [this.py:4](https://example.org)."))
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "gone.py:3" in words(app) and not app.controller.busy)
        await click_on(app, pilot, "gone.py:3")
        await until(pilot, lambda: "gone.py: there is no such file here." in words(app))


@pytest.mark.parametrize(("name", "given"), [("vim", "+4 {file}"), ("code", "--goto {file}:4"), ("hx", "{file}:4")])
def test_each_editor_is_told_the_line_in_its_own_way(tmp_path: Path, name: str, given: str) -> None:
    editor, file, got = tmp_path / name, tmp_path / "a b.py", tmp_path / "got"
    editor.write_text(f"#!/bin/sh\nprintf '%s ' \"$@\" > '{got}'\n")
    editor.chmod(0o755)
    visit(file, 4, str(editor), nullcontext)
    assert got.read_text() == given.format(file=file) + " "
