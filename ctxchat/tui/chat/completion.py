"""Completes the word at the cursor: slash commands, and files or resources after `@`. Finds the choices, and shows them as a list
above the composer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from textual.content import Content
from textual.fuzzy import Matcher
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ctxchat.core.prompt_files import PromptFile
from ctxchat.presentation.text import one_line
from ctxchat.tools.mentions import mention
from ctxchat.tui.commands import BY_NAME, COMMANDS
from ctxchat.tui.widgets.field import AnySizeList

if TYPE_CHECKING:
    from ctxchat.tools.mcp.protocol import OfferedResource

MAX_SUGGESTIONS = 8
MAX_LINES = 8
"""Lines of the list; it scrolls to further ones."""

MAX_LABEL_CELLS = 22
"""Cells of a command with its argument, in a window that is not narrow."""

_FILE = re.compile(r"(?:^|(?<=[\s(\"']))@([^\s@]*)$")
_COMMAND = re.compile(r"^/([\w?:.-]*)$")


class Completion(msgspec.Struct, frozen=True):
    """One choice: `insert` replaces the word; `label` and `note` are shown."""

    insert: str
    label: str
    note: str = ""


class Wanted(msgspec.Struct, frozen=True):
    """The word before the cursor that can be completed: its kind, what is typed of it, and how many characters it replaces."""

    kind: str
    typed: str
    length: int


def completable(before: str) -> Wanted | None:
    """The word to complete in the cursor's line up to the cursor; None if there is none."""
    if match := _COMMAND.search(before):
        return Wanted("command", match[1], len(match[0]))
    if match := _FILE.search(before):
        return Wanted("file", match[1], len(match[1]) + 1)
    return None


def command_choices(typed: str, prompts: Sequence[PromptFile] = ()) -> list[Completion]:
    """Slash commands, skills and command files that begin with what is typed, then those that contain its letters."""
    every = [(c.name, Completion(f"/{c.name} ", f"/{c.name} {c.argument}".rstrip(), c.help)) for c in COMMANDS]
    every += [(p.name, _prompt_choice(p)) for p in prompts if p.name not in BY_NAME]
    if not typed:
        return [choice for _, choice in every]
    matcher = Matcher(typed)
    scored = [(not name.startswith(typed.lower()), -matcher.match(name), name, c) for name, c in every]
    return [c for later, score, _, c in sorted(scored, key=lambda s: s[:3]) if score < 0 or not later]


def _prompt_choice(prompt: PromptFile) -> Completion:
    """The choice for a skill or command file. It names its origin, as a project's file may have been written by anybody."""
    label = one_line(f"/{prompt.name} {prompt.hint}".rstrip(), 60)
    return Completion(f"/{prompt.name} ", label, one_line(f"({prompt.origin} {prompt.kind}) {prompt.description}", 120))


def file_choices(typed: str, files: Sequence[str], most: int = MAX_SUGGESTIONS) -> list[Completion]:
    """The files that match best; of equal ones the shorter paths first."""
    if not typed:
        best = sorted(files, key=lambda f: (f.count("/"), f))[:most]
    else:
        matcher = Matcher(typed)
        scored = ((matcher.match(f), f) for f in files)
        best = [
            f for _, f in sorted(((s, f) for s, f in scored if s > 0), key=lambda r: (-r[0], len(r[1]), r[1]))[:most]
        ]
    return [Completion(f"{mention(f)} ", one_line(f, 120)) for f in best]


def resource_choices(
    typed: str, listed: Mapping[str, Sequence[OfferedResource]], most: int = MAX_SUGGESTIONS
) -> list[Completion]:
    """The resources that match best by server, address or name, each with its name."""
    every = [(f"{server}:{each.uri}", each.name) for server, of in listed.items() for each in of]
    if typed:
        matcher = Matcher(typed)
        scored = [(matcher.match(f"{mentioned} {name}"), mentioned, name) for mentioned, name in every]
        every = [(mentioned, name) for score, mentioned, name in sorted(scored, key=lambda s: -s[0]) if score > 0]
    return [
        Completion(f"{mention(mentioned)} ", one_line(mentioned, 80), one_line(name, 60))
        for mentioned, name in every[:most]
    ]


def mention_choices(
    typed: str, files: Sequence[str], listed: Mapping[str, Sequence[OfferedResource]]
) -> list[Completion]:
    """Files, then resources; resources first if a server is named."""
    found, resources = file_choices(typed, files), resource_choices(typed, listed)
    return [*resources, *found] if typed.partition(":")[0] in listed else [*found, *resources]


class CompletionList(AnySizeList, can_focus=False):
    """The list of choices above the composer. The composer keeps the focus and moves the highlight."""

    class Taken(Message):
        """A choice was clicked."""

        def __init__(self, choice: Completion) -> None:
            super().__init__()
            self.choice = choice

    class Shown(Message):
        """The list shows other choices, or none any more."""

    def __init__(self) -> None:
        super().__init__(id="completion", markup=False)
        self.choices: list[Completion] = []
        self.display = False

    @property
    def is_open(self) -> bool:
        """Whether the list is shown."""
        return bool(self.display)

    def offer(self, choices: Sequence[Completion]) -> None:
        """Show these choices; without any, close the list."""
        if choices or self.choices:
            self.post_message(self.Shown())
        self.choices = list(choices)
        self.display = bool(choices)
        self.clear_options()
        if not choices:
            return
        longest = 0 if self.screen.has_class("-narrow") else MAX_LABEL_CELLS
        # of a long one the name alone, for its sentence to be read
        labels = [c.label.partition(" ")[0] if c.note and len(c.label) > longest else c.label for c in choices]
        widest = max(map(len, labels)) + 3
        lines = (
            Content.assemble(label.ljust(widest if c.note else 0), (c.note, "$text-muted"))
            for label, c in zip(labels, choices, strict=True)
        )
        self.add_options([Option(line) for line in lines])
        self.highlighted = 0
        self.styles.offset = (0, -min(len(choices), MAX_LINES))  # over the line above the composer, never over it

    def move(self, step: int) -> None:
        """Move the highlight up or down; it wraps around."""
        if self.choices:
            self.highlighted = ((self.highlighted or 0) + step) % len(self.choices)

    @property
    def current(self) -> Completion | None:
        """The highlighted choice."""
        return self.choices[self.highlighted] if self.choices and self.highlighted is not None else None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self.choices):
            self.post_message(self.Taken(self.choices[event.option_index]))
