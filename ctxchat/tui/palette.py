"""The table of commands as Textual takes it: bindings for its keys, and the source of the palette."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual.binding import Binding
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from ctxchat.config.keys import Action
from ctxchat.tui.commands import COMMANDS, Keys, keys_of, shown_key


def bindings(keys: Keys) -> list[Binding]:
    """What the app binds for these keys."""
    return [
        Binding(",".join(found), f"command('{c.name}')", c.help, id=c.name, show=False, priority=True)
        for c in COMMANDS
        if (found := keys_of(c, keys))
    ]


class Palette(CommandPalette):
    """The command palette, in any window: page keys do nothing where there is no room for a line, and Textual's raise there."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)


GROUPS = {
    "compaction": "context",
    "views": "looking",
    "files": "files",
    "sessions": "sessions",
    "importing": "sessions",
    "models": "models",
    "program": "program",
}
"""What belongs together in the palette, in this order: by the module that does it."""


def group_of(command: Action) -> str:
    """The word over what belongs together."""
    return GROUPS.get(command.does.partition(".")[0], "program")


class CommandSource(Provider):
    """The table, for the palette."""

    def _entries(self) -> list[tuple[Action, str]]:
        keys: Keys = getattr(self.app, "keys", {})
        order = list(dict.fromkeys(GROUPS.values()))
        grouped = sorted(COMMANDS, key=lambda command: order.index(group_of(command)))
        return [(c, " ".join(map(shown_key, keys_of(c, keys)[:1]))) for c in grouped]

    def _start(self, command: Action) -> Callable[[], object]:
        return partial(self.app.call_later, self.app.run_action, f"command('{command.name}')")

    async def discover(self) -> Hits:
        """All of it, group by group, each in the table's order."""
        before = ""
        for command, key in self._entries():
            group = group_of(command)
            head, before = ("" if group == before else group), group
            yield DiscoveryHit(self._line(command, key, head), self._start(command), text=command.help)

    async def search(self, query: str) -> Hits:
        """Those whose title or name matches."""
        matcher = self.matcher(query)
        for command, key in self._entries():
            score = max(matcher.match(command.help), matcher.match(command.name))
            if score > 0:
                yield Hit(score, self._line(command, key, group_of(command)), self._start(command), text=command.help)

    def _line(self, command: Action, key: str, group: str) -> Content:
        """Columns on fixed edges, the sentence last, for it may be long; in a narrow window only the key before it."""
        width = self.app.size.width
        if width < 60:
            return Content.assemble((f"{key:<10}", "$text-muted"), command.help)
        head = f"{group:<10}" if width >= 100 else ""
        return Content.assemble(
            (head, "$text-accent"), (f"{f'/{command.name}':<13}{key:<10}", "$text-muted"), command.help
        )
