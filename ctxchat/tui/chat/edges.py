"""The first and the last line of the chat: what this is, and the keys that matter now."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from textual.content import Content

from ctxchat.core.context_usage import OFFLINE_NAME
from ctxchat.presentation.text import one_line
from ctxchat.tui.commands import Keys, shown_key
from ctxchat.tui.widgets.line import Line
from ctxchat.tui.widgets.lines import spread, target


class HeaderState(msgspec.Struct, frozen=True):
    """The content of the header. `mode` is empty if the composer shows it."""

    folder: str = ""
    branch: str = ""
    title: str = ""
    model: str = ""
    mode: str = ""
    sandboxed: bool = True
    read_only: bool = False
    agent: str = ""
    effort: str = ""


def model_words(name: str, room: int) -> str:
    """A model's name in at most `room` characters: who provides it goes first, then what stands at the left."""
    if name == OFFLINE_NAME:
        words = "offline assistant"
        return words if len(words) <= room else "offline"
    flat = one_line(name, 200)
    shown = flat.rsplit("/", 1)[-1] if len(flat) > room or flat.count("/") == 1 else flat
    if len(shown) > room:
        shown = shown.removeprefix("claude-").removesuffix("-latest")
    return shown if len(shown) <= room else "…" + shown[1 - room :]


class Header(Line):
    """`ctxchat  folder ⎇ branch · title      model  sandboxed`; in a narrow window `folder ⎇ branch  model`."""

    def __init__(self) -> None:
        super().__init__(id="header")
        self._heading = HeaderState()

    def show_state(self, heading: HeaderState) -> None:
        """Show this from now on."""
        if heading != self._heading:
            self._heading = heading
            self.refresh()

    def draw_line(self, width: int) -> Content:
        heading = self._heading
        model = model_words(heading.model, max(8, width // 3))
        model += f" · {one_line(heading.effort, 12)}" if heading.effort and width >= 60 else ""
        mode = "read-only session" if heading.read_only else heading.mode
        sandbox = ("sandboxed" if heading.sandboxed else "not sandboxed") if model else ""  # nothing is known before it
        agent = one_line(heading.agent, 20) if width >= 50 else ""
        words: list[tuple[str, str, str]] = [  # with the command that a click starts
            (agent, "$text-accent", "agent"),
            (model, "$text", "model"),
            (mode, _mode_style(mode), "" if heading.read_only else "mode"),
        ]
        if width >= 70:
            words.append((sandbox, "$text-muted" if heading.sandboxed else "$text-warning", ""))
        elif not heading.sandboxed and width >= 44:
            words.append(("no sandbox", "$text-warning", ""))
        if width < 34:
            words = words[2:]
        right = Content("   " if width >= 70 else "  ").join(
            [target(said, does) if does else said for w, s, does in words if w and (said := Content.styled(w, s))]
        )
        left = Content.styled("ctxchat", "bold $accent")
        branch = f" ⎇ {one_line(heading.branch, 40)}" if heading.branch else ""
        if width < 56 and heading.folder:
            left = Content.assemble((one_line(heading.folder, 40), "bold $accent"), (branch, "$text-muted"))
        elif width >= 56:
            place = Content.styled(f"{one_line(heading.folder, 40)}{branch}", "$text-muted")
            title = Content(one_line(heading.title, 120))
            named = [place, title] if title and place and heading.title != heading.folder else [place or title]
            left = left.append("  ").append(Content.styled(" · ", "$text-muted").join(named))
        return spread(left, Content("  ").append(right), width)


def _mode_style(mode: str) -> str:
    return "bold reverse $text-error" if mode == "all" else "$text-muted"


BETWEEN = "  "

IDLE_KEYS = (
    ("send", "send"),
    ("newline", "line"),
    ("context", "context"),
    ("archive", "archive"),
    ("search", "search"),
    ("xray", "x-ray"),
    ("free_up", "free up"),
    ("palette", "commands"),
)
FRESH_KEYS = (*IDLE_KEYS[:-1], ("undo_compaction", "undo"), IDLE_KEYS[-1])
"""Right after a compaction: the way back."""

BUSY_KEYS = (("interrupt", "stop"), ("send", "send next"), ("send_later", "after the turn"), *IDLE_KEYS[2:])
OF_PROMPT = frozenset({"send", "send_later", "newline"})
"""What does something only where one writes."""

FOREMOST = (
    "interrupt",
    "send",
    "send_later",
    "free_up",
    "context",
    "palette",
    "undo_compaction",
    "archive",
    "search",
    "xray",
    "newline",
)
"""Which are kept where there is no room for all, the most useful first; what is not named here stays as long as it fits."""


class KeyLine(Line):
    """The keys that matter now, as many as fit whole: the most useful of them, in their usual order."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(id="keys")
        self._keys = keys
        self._wanted: Sequence[tuple[str, str]] = ()

    def use_keys(self, keys: Keys) -> None:
        """Show these keys from now on."""
        self._keys = keys
        self.refresh()

    def show_keys(self, wanted: Sequence[tuple[str, str]]) -> None:
        """Pairs of an action of the key table (or a plain key after `=`) and a word or two."""
        if wanted != self._wanted:
            self._wanted = wanted
            self.refresh()

    def draw_line(self, width: int) -> Content:
        pairs = [(action, pair) for action, words in self._wanted if (pair := self._pair(action, words))]
        room = width + len(BETWEEN)
        fitting: list[tuple[str, Content]] = []
        for each in sorted(pairs, key=lambda pair: FOREMOST.index(pair[0]) if pair[0] in FOREMOST else -1):
            room -= each[1].cell_length + len(BETWEEN)
            if room < 0:
                break
            fitting.append(each)
        return Content(BETWEEN).join([pair for action, pair in pairs if (action, pair) in fitting])

    def _pair(self, action: str, words: str) -> Content | None:
        key = action[1:] if action.startswith("=") else next(iter(self._keys.get(action, ())), "")
        if not key:
            return None
        return target(Content.assemble((shown_key(key), "$text-accent"), (f" {words}", "$text-muted")), "key", key)
