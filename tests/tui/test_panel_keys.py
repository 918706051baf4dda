"""The keys of a screen over the chat: whole words only, and always a way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets._footer import FooterKey

from ctxchat.agent.turn.approvals import Approvals
from ctxchat.config.effective import load_settings
from ctxchat.config.explain import rows
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Ledger
from ctxchat.core.permissions import Rule
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.panel import AskText, Confirm, PanelKeys
from ctxchat.tui.panels.permissions import PermissionsScreen, RuleScreen
from ctxchat.tui.panels.settings import ChangeScreen
from tests.tui.chatting import until
from tests.tui.fakes import FakeServices
from tests.tui.harbour import HarbourSession, history
from tests.tui.panel_app import PanelApp


class Over(Screen[None]):
    BINDINGS = [
        Binding("enter", "open", "look into it"),
        Binding("d", "drop", "drop with its group"),
        Binding("u", "undo", "undo"),
        Binding("escape", "back", "back"),
    ]

    def compose(self) -> ComposeResult:
        yield PanelKeys()

    def action_open(self) -> None: ...
    def action_drop(self) -> None: ...
    def action_undo(self) -> None: ...
    def action_back(self) -> None: ...


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (80, ["look into it", "drop with its group", "undo", "back"]),
        (40, ["look into it", "undo", "back"]),
        (12, ["back"]),
    ],
)
async def test_keys_that_do_not_fit_are_left_out_but_never_the_way_back(columns: int, shown: list[str]) -> None:
    app: App[None] = App()
    async with app.run_test(size=(columns, 10)) as pilot:
        await app.push_screen(Over())
        await pilot.pause()
        keys = app.screen.query(FooterKey)
        assert [key.description for key in keys] == shown
        assert all(key.region.right <= columns for key in keys)


async def test_keys_come_back_with_the_room() -> None:
    app: App[None] = App()
    async with app.run_test(size=(12, 10)) as pilot:
        await app.push_screen(Over())
        await pilot.resize_terminal(80, 10)
        await pilot.pause()
        assert len(app.screen.query(FooterKey)) == 4


@pytest.mark.parametrize(
    ("over", "keys"),
    [
        (Confirm("Sure?"), ["enter yes", "esc no"]),
        (AskText("New title", "x"), ["enter take it", "esc back"]),
        (RuleScreen("A new rule:"), ["enter take it", "esc back"]),
    ],
)
async def test_a_short_question_says_what_enter_does(over: Screen[Any], keys: list[str]) -> None:
    app = PanelApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(over)
        await pilot.pause()
        assert [f"{key.key_display} {key.description}" for key in app.screen.query(FooterKey)] == keys


async def test_a_question_shows_each_of_its_answers_in_a_narrow_window() -> None:
    app = PanelApp()
    async with app.run_test(size=(40, 20)) as pilot:
        await app.push_screen(Confirm("Pin it?", may_wait=True))
        await pilot.pause()
        keys = list(app.screen.query(FooterKey))
        assert [key.description for key in keys] == ["yes", "with the next compaction", "no"]
        assert all(key.region.right <= 40 and key.region.height == 1 for key in keys)
        assert len({key.region.y for key in keys}) == 3


async def test_what_an_option_means_is_there_whole_when_its_dialog_opens(tmp_path: Path) -> None:
    means = "sessions that were begun before go on as they are, and those begun from now on use it " * 2
    row = next(row for row in rows(load_settings(environ={}, known=lambda _: ())) if row.key == "model")
    app = PanelApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(ChangeScreen(row, lambda _: means, lambda _: ""))
        await pilot.pause()
        assert app.screen.query_one("#effect").size.height >= 3


async def test_an_empty_archive_offers_no_details() -> None:
    app = PanelApp()
    desk = HarbourSession(SessionState(ledger=Ledger(groups=history(3))))
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(ArchiveScreen(desk, FakeServices(Path())))
        await pilot.pause()
        assert "details" not in [key.description for key in app.screen.query(FooterKey)]


@pytest.mark.parametrize("many", [3, 60])
async def test_what_is_said_of_a_row_stands_right_below_a_short_list_and_is_seen_below_a_long_one(
    many: int, tmp_path: Path
) -> None:
    app = PanelApp()
    rules = [Rule("shell", f"make {n}") for n in range(many)]
    async with app.run_test(size=(80, 24)) as pilot:
        loaded = load_settings(config=tmp_path / "config.toml", environ={})
        await app.push_screen(over := PermissionsScreen(Approvals(rules=rules), loaded, tmp_path))
        await until(pilot, lambda: len(over.rows.items) == many and over.rows.has_class("-few") == (many < 10))
        await pilot.pause()
        about = over.query_one("#about").region
        assert about.y == (over.rows.region.y + 1 + many if many < 10 else over.rows.region.bottom)
        assert about.bottom < 24 and over.rows.region.height >= min(many, 10)
