"""Every action with its keys: which there are, which of them somebody changed, and a way to press another one.

Made of the same table as the documentation; writes `[keys]` of the person's own file.
"""

from __future__ import annotations

from functools import partial

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from ctxchat.config.files import Loaded
from ctxchat.config.keys import ACTIONS, PRESETS, Action, fault
from ctxchat.config.layers import Origin
from ctxchat.config.write import set_value, unset_value
from ctxchat.tui.commands import shown_key
from ctxchat.tui.reading.figures_text import count
from ctxchat.tui.reading.text import clean, one_line
from ctxchat.tui.screens.panel import MUTED, Heading, Over
from ctxchat.tui.screens.writing import EditableListing
from ctxchat.tui.widgets.panel_keys import PanelKeys
from ctxchat.tui.widgets.rows import Cell, Column, Rows

COLUMNS = (
    Column("", least=44, share=3),
    Column("keys", least=12, share=2),
    Column("command", 12, rank=1),
    Column("name in [keys]", 16, rank=2),
    Column("from", 16, rank=3),
)


class AskKey(Over[str], ModalScreen[str]):
    """The next key that is pressed, in Textual's name of it; None for esc, which stays the way out."""

    TAKES_EVERY_KEY = True
    """Also those that start something elsewhere."""

    def __init__(self, action: Action) -> None:
        super().__init__(classes="asking")
        self._action = action

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(f"Press the key for: {self._action.help}"), markup=False)
            yield Static("esc leaves everything as it is", id="said", classes="quiet", markup=False)

    def on_key(self, event: Key) -> None:
        event.stop()
        event.prevent_default()
        said = self.query_one("#said", Static)
        if event.key == "escape":
            self.dismiss(None)
        elif why := fault(event.key):
            said.update(Content(clean(f"{why[0]}. Another one, or esc.")))
        else:
            self.dismiss(event.key)


class KeysScreen(EditableListing):
    """Comes back with True where a key was changed, else None."""

    BINDINGS = [
        Binding("enter", "change", "press another key", key_display="enter"),
        Binding("plus", "add", "one more", key_display="+"),
        Binding("backspace,delete", "reset", "as they were", key_display="⌫"),
        Binding("p", "preset", "next preset"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("escape", "back", "back"),
    ]

    def compose(self) -> ComposeResult:
        yield Heading("Keys")
        yield Rows(COLUMNS, self._cells, empty="No action has these words.")
        yield self.field("words of an action, or a key")
        yield Static(id="about", markup=False)
        yield PanelKeys()

    def on_mount(self) -> None:
        self.set_focus(self.home)
        self.take(self._load())

    def take(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.narrowed()

    def narrowed(self) -> None:
        wanted = self.words.casefold().split()
        shown = [a for a in ACTIONS if all(w in self._text(a) for w in wanted)]
        at = self.rows.current
        self.rows.show(shown, at=shown.index(at) if at in shown else 0)
        preset = self._loaded.settings.interface.keys
        words = count(len(shown), "action")
        self.query_one(Heading).show(
            "Keys", f"{words}, preset {preset}, in {clean(str(self._file))}", f"preset {preset}"
        )

    def _text(self, action: Action) -> str:
        keys = self._loaded.keys.keys[action.id]
        return f"{action.id} {action.help} {' '.join(keys)} {' '.join(map(shown_key, keys))}".casefold()

    def _cells(self, action: Action) -> tuple[Cell, ...]:
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

    def on_rows_moved(self, event: Rows.Moved) -> None:
        action: Action | None = event.item
        if action is None:
            self.query_one("#about", Static).update("")
            return
        usual = ", ".join(map(shown_key, PRESETS[self._loaded.settings.interface.keys].get(action.id, action.keys)))
        lines = [Content(action.help), Content.styled(f"keys.{action.id}, by the preset: {usual}", MUTED)]
        self.query_one("#about", Static).update(Content("\n").join(lines))

    # ── what is done ──

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_change()

    def action_change(self) -> None:
        """Another key in place of those there are."""
        self.run_worker(partial(self._press, more=False), group="write", exit_on_error=False)

    def action_add(self) -> None:
        """One more key."""
        self.run_worker(partial(self._press, more=True), group="write", exit_on_error=False)

    async def _press(self, *, more: bool) -> None:
        action: Action | None = self.rows.current
        if action is None:
            return
        key = await self.app.push_screen_wait(AskKey(action))
        if key is None:
            return
        there = self._loaded.keys.keys[action.id] if more else ()
        keys = list(dict.fromkeys((*there, key)))
        await self.write(partial(set_value, self._file, f"keys.{action.id}", keys))

    def action_reset(self) -> None:
        """The preset's again."""
        action: Action | None = self.rows.current
        if action and self._origin(action).layer == "user":
            self.run_worker(
                partial(self.write, partial(unset_value, self._file, f"keys.{action.id}")), exit_on_error=False
            )

    def action_preset(self) -> None:
        """The next set of keys to build on."""
        names = list(PRESETS)
        after = names[(names.index(self._loaded.settings.interface.keys) + 1) % len(names)]
        self.run_worker(
            partial(self.write, partial(set_value, self._file, "interface.keys", after)), exit_on_error=False
        )
