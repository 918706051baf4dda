"""What the style sheet remembers of a place is what Textual's own finds there."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from weakref import ref

from textual.app import ComposeResult
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widgets import Button, Input, Static

from ctxchat.tui.style.stylesheet import RememberingStylesheet
from ctxchat.tui.style.themed_app import ThemedApp
from tests.tui.chatting import ASK, chatting, until
from tests.tui.fakes import FakeSession, Pause, reply
from tests.tui.panel_app import PanelApp


def nodes(app: ThemedApp) -> Iterator[DOMNode]:
    for screen in app.screen_stack:
        yield from screen.walk_children(with_self=True)


def worn(app: ThemedApp) -> dict[DOMNode, object]:
    """The rules of each node and of its component classes."""
    return {
        node: (dict(node.styles.base._rules), {k: dict(v.base._rules) for k, v in node._component_styles.items()})
        for node in nodes(app)
    }


def wrong(app: ThemedApp) -> list[DOMNode]:
    """Nodes that Textual's own style sheet gives other rules."""
    plain = Stylesheet(variables=app.get_css_variables())
    plain.source = app.stylesheet.source
    plain.parse()
    before = worn(app)
    for node in nodes(app):
        plain.apply(node)
    after = worn(app)
    return [node for node in before if before[node] != after[node]]


async def test_every_widget_wears_what_the_rules_say_whatever_came_before(tmp_path: Path) -> None:
    session = FakeSession(lambda text: [ASK, Pause("answer:c1"), *reply("# Done\n\n- one\n- two")])
    async with chatting(tmp_path, session) as (app, pilot):
        assert isinstance(app.stylesheet, RememberingStylesheet)
        assert not wrong(app)
        await pilot.press(*"go", "enter")
        await until(pilot, lambda: app.chat.questions.keys)
        assert app.controller.busy and not wrong(app)
        for key in ("f4", "tab", "escape", "f10", "down", "escape", "ctrl+p", "a", "escape"):
            await pilot.press(key)
            assert not wrong(app), key
        app.wear("light")
        await pilot.resize_terminal(50, 20)
        assert not wrong(app), "another theme, and narrow"
        session.approvals("answer:c1").set()
        await until(pilot, lambda: not app.controller.busy)
        app.wear("dark")
        await pilot.resize_terminal(100, 30)
        assert not wrong(app)


class Buttons(PanelApp):
    def compose(self) -> ComposeResult:
        yield from (Button("one"), Button("two"), Input(), Button("three"))


async def test_each_state_of_a_widget_has_rules_of_its_own() -> None:
    app = Buttons()
    async with app.run_test() as pilot:
        for key in ("tab", "tab", "tab", "shift+tab", "shift+tab"):
            await pilot.press(key)
            assert not wrong(app), key
        for state in (True, False):
            app.query(Button).first().disabled = state
            await pilot.hover(Button)
            assert not wrong(app), state


async def test_a_widget_that_is_gone_leaves_none_of_its_painted_lines() -> None:
    """Textual's cache of backgrounds held on to those of a thousand widgets."""
    async with PanelApp().run_test() as pilot:
        line = Static("gone soon")
        await pilot.app.mount(line)
        await pilot.pause()
        painted = ref(line._styles_cache)
        await line.remove()
        del line
        await pilot.app.mount(Static("in its place"))
        await pilot.pause()
        gc.collect()
        assert painted() is None
