"""The keys of a screen over the chat: whole words only, and always a way back."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets._footer import FooterKey

from ctxchat.tui.panels.panel import PanelKeys


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
