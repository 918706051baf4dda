"""Every action with its keys: which there are, which of them somebody changed, and a way to press another one.

Made of the same table as the documentation; writes `[keys]` of the person's own file.
"""

from __future__ import annotations

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.widgets import Static

from ctxchat.config.keys import ACTIONS, PRESETS, Action, fault
from ctxchat.config.layers import Origin
from ctxchat.config.write import set_value, unset_value
from ctxchat.presentation.text import clean, one_line
from ctxchat.presentation.usage_text import count
from ctxchat.tui.commands import shown_key
from ctxchat.tui.panels.panel import Dialog, EditableListing, PanelKeys
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.rows import Cell, Column


class AskKey(Dialog[str]):
    """The next key that is pressed, in Textual's name of it; None for esc, which stays the way out."""

    TAKES_EVERY_KEY = True
    """Also those that start something elsewhere."""

    def __init__(self, action: Action) -> None:
        super().__init__()
        self._action = action

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(f"Press the key for: {self._action.help}"), markup=False)
            yield Static(id="said", classes="quiet -wrong", markup=False)
            yield PanelKeys()

    def on_mount(self) -> None:
        self.query_one("#said").display = False  # until there is something to say

    def on_key(self, event: Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key == "escape":
            self.dismiss(None)
        elif why := fault(event.key):
            said = self.query_one("#said", Static)
            said.update(Content(clean(f"! {why[0]}. Press another one.")))
            said.display = True
        else:
            self.dismiss(event.key)


class KeysScreen(EditableListing):
    """Shows and changes the keys. Its result is True if a key was changed, else None."""

    TITLE = "Keys"
    COLUMNS = (
        Column("", least=44, share=3),
        Column("keys", least=12, share=2),
        Column("command", 12, rank=1),
        Column("name in [keys]", 16, rank=2),
        Column("from", 16, rank=3),
    )
    NOT_FOUND = "No action has these words."
    FILTER_PLACEHOLDER = "words of an action, or a key"
    BINDINGS = [
        Binding("enter", "choose", "press another key", key_display="enter"),
        Binding("plus", "choose(True)", "one more", key_display="+"),
        Binding("backspace,delete", "reset", "as they were", key_display="⌫"),
        Binding("p", "preset", "next preset"),
    ]

    def on_mount(self) -> None:
        self.apply_filter()

    def apply_filter(self) -> None:
        shown = self.matching(ACTIONS, self._search_text)
        self.set_items(shown, at=self.rows.current)
        preset = self._loaded.settings.interface.keys
        self.head(f"{count(len(shown), 'action')}, preset {preset}, in {clean(str(self._file))}", f"preset {preset}")

    def _search_text(self, action: Action) -> str:
        keys = self._loaded.keys.keys[action.id]
        return f"{action.id} {action.help} {' '.join(keys)} {' '.join(map(shown_key, keys))}"

    def cells(self, action: Action) -> tuple[Cell, ...]:
        keys = self._loaded.keys.keys[action.id]
        origin = self._origin(action)
        own = origin.layer != "default"
        return (
            (action.help, ""),
            (", ".join(map(shown_key, keys)) or "none", "strong" if own else "" if keys else "dim"),
            (f"/{action.name}" if action.name else "", "dim"),
            (action.id, "dim"),
            (one_line(origin.text.rsplit("/", 1)[-1]), "dim"),
        )

    def _origin(self, action: Action) -> Origin:
        return self._loaded.origin(f"keys.{action.id}")

    def describe_item(self, item: Action | None) -> Content | str:
        if item is None:
            return ""
        usual = ", ".join(map(shown_key, PRESETS[self._loaded.settings.interface.keys].get(item.id, item.keys)))
        lines = [Content(item.help), Content.styled(f"keys.{item.id}, by the preset: {usual}", MUTED)]
        return Content("\n").join(lines)

    # ── what is done ──

    @work(group="write", exit_on_error=False)
    async def action_choose(self, more: bool = False) -> None:
        """Replace the action's keys, or add one."""
        action: Action | None = self.rows.current
        if action is None:
            return
        key = await self.app.push_screen_wait(AskKey(action))
        if key is None:
            return
        there = self._loaded.keys.keys[action.id] if more else ()
        await self.change_file(set_value, f"keys.{action.id}", list(dict.fromkeys((*there, key))))

    @work(group="write", exit_on_error=False)
    async def action_reset(self) -> None:
        """The preset's again."""
        action: Action | None = self.rows.current
        if action and self._origin(action).layer == "user":
            await self.change_file(unset_value, f"keys.{action.id}")
        elif action:
            self.notify_here("These keys are the preset's already.")

    @work(group="write", exit_on_error=False)
    async def action_preset(self) -> None:
        """The next set of keys to build on."""
        names = list(PRESETS)

        def following() -> tuple[str, str]:
            return "interface.keys", names[(names.index(self._loaded.settings.interface.keys) + 1) % len(names)]

        await self.write_next(set_value, following)
