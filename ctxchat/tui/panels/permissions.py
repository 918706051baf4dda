"""The rules in force in a session: what each allows or forbids, where it comes from, and ways to edit, add and remove them.

Rules of settings files are shown, and it is said where to edit them; they are never written from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Input, Static

from ctxchat.agent.turn.approvals import Approvals
from ctxchat.config.effective import Loaded
from ctxchat.config.rules import read_rules, remove_rule, replace_rule
from ctxchat.core.errors import CtxchatError
from ctxchat.core.permissions import Rule, parse_rule
from ctxchat.core.quantities import count
from ctxchat.presentation.modes import MODES
from ctxchat.presentation.text import clean, one_line
from ctxchat.tui.panels.panel import AnswerField, Confirm, Dialog, Listing
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.rows import Cell, Column

HOW = """\
A rule lets a call run without asking, or forbids it:
  shell: uv run pytest **
  write_file: src/**
  deny shell: rm **
a adds one here; a question of the agent offers fitting ones."""


class Listed(msgspec.Struct, frozen=True):
    """A rule with where it is from: given in the `session`, stored for the `folder`, written in `settings` at `place`."""

    rule: Rule
    origin: Literal["session", "folder", "settings"]
    holds: str
    place: str


def listed_rules(approvals: Approvals, loaded: Loaded, stored: Sequence[Rule]) -> tuple[Listed, ...]:
    """The rules in force, the deny rules first: they win."""
    written = {
        parse_rule(text): origin for text, origin in zip(loaded.settings.permissions.rules, loaded.rules, strict=True)
    }
    found: list[Listed] = []
    for rule in approvals.all_rules:
        if rule in stored:
            found.append(Listed(rule, "folder", "this folder", "always"))
        elif rule.folder:
            found.append(Listed(rule, "session", "this folder", "this session"))
        else:
            origin = written.get(rule)
            holds = "this folder" if origin and origin.layer == "project" else "everywhere"
            found.append(Listed(rule, "settings", holds, origin.text if origin else "changed settings"))
    return tuple(sorted(found, key=lambda each: not each.rule.denies))


class RuleScreen(Dialog[Rule]):
    """Edits one rule. Its result is the rule's text, or None. Mistakes are shown while it is written."""

    def __init__(self, about: str, text: str = "") -> None:
        super().__init__()
        self._about, self._text = about, text

    def body(self) -> ComposeResult:
        yield Static(Content(clean(self._about)), markup=False)
        yield AnswerField(self._text, placeholder="shell: uv run pytest **", compact=True)
        yield Static(Content(self._rule_hint(self._text, False)), id="said", classes="quiet", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        wrong = bool(event.value.strip()) and parse_rule(event.value) is None
        self.query_one("#said").set_class(wrong, "-wrong")
        self.query_one("#said", Static).update(Content(self._rule_hint(event.value, wrong)))

    @staticmethod
    def _rule_hint(text: str, wrong: bool) -> str:
        if wrong:
            return "! Not a rule yet: a rule is a tool, a colon and a pattern."
        rule = parse_rule(text)
        verb = "Forbids" if rule and rule.denies else "Allows"
        return f"{verb} it. * stays within a word or folder, ** does not. `deny` in front forbids."

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if rule := parse_rule(event.value):  # else it has been said already
            self.dismiss(rule)


class PermissionsScreen(Listing[None]):
    """`approvals` has the rules in force, `loaded` says where those of settings are written; those for good are stored in
    `config`, the settings folder."""

    TITLE = "Permissions"
    COLUMNS = (
        Column("", 1),
        Column("rule", least=16, share=3),
        Column("holds", 11, rank=1),
        Column("from", least=22, rank=2, path=True),
    )
    EMPTY = "There are no rules yet."
    NOT_FOUND = "No rule has these words."
    FILTER_PLACEHOLDER = "words of a rule"
    BINDINGS = [
        Binding("enter,e", "choose", "edit", key_display="e"),
        Binding("d,delete", "remove", "remove", key_display="d"),
        Binding("a", "add('always')", "add"),
        Binding("s", "add('session')", "add for this session"),
    ]

    def __init__(self, approvals: Approvals, loaded: Loaded, config: Path) -> None:
        super().__init__()
        self._approvals, self._loaded, self._config = approvals, loaded, config
        self._listed: Sequence[Listed] = ()

    def body(self) -> ComposeResult:
        mode = self._approvals.mode
        yield Static(
            Content.assemble(("mode ", MUTED), (mode, "bold"), (f"   {MODES[mode]}", MUTED)), id="mode", markup=False
        )
        yield from super().body()

    def on_mount(self) -> None:
        self.reread(self._loaded)

    def reread(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.run_worker(self._list_rules, group="load", exclusive=True, exit_on_error=False)

    async def _list_rules(self, at: Rule | None = None) -> None:
        """The rules as they are now, with the cursor on this one."""
        stored, _ = await asyncio.to_thread(read_rules, self._config)
        self._listed = listed_rules(self._approvals, self._loaded, stored)
        self.apply_filter(at)

    def apply_filter(self, at: Rule | None = None) -> None:
        shown = self.matching(self._listed, lambda each: f"{each.rule.text} {each.holds} {each.place}")
        at = at or (self.rows.current.rule if self.rows.current else None)
        self.set_items(shown, at, lambda each: each.rule)
        forbid = sum(each.rule.denies for each in self._listed)
        told = count(len(self._listed), "rule")
        self.head(*([f"{told}, {forbid} forbid{'s' if forbid == 1 else ''}"] if forbid else []), told)

    def cells(self, each: Listed) -> tuple[Cell, ...]:
        rule = each.rule
        sign = ("✗", "warn") if rule.denies else ("✓", "good")
        return sign, (one_line(rule.text, 400), "warn" if rule.denies else ""), each.holds, (_brief(each.place), "dim")

    def describe_item(self, item: Listed | None) -> Content:
        if item is None:
            return Content.styled("" if self._listed else HOW, MUTED)
        return Content("\n").join(
            [Content(clean(item.rule.text)), Content.styled(clean(self._origin_text(item)), MUTED)]
        )

    def _origin_text(self, each: Listed) -> str:
        match each.origin:
            case "session":
                return "Given in this session: it ends when the session is closed."
            case "folder":
                return f"Stored for this folder, in {self._config / 'permissions.toml'}."
            case _:
                return f"Written in {each.place}: edit it there."

    # ── what is done ──

    def _editable_rule(self, what: str) -> Listed | None:
        """The rule under the cursor where it can be changed from here; else it is said why not."""
        each: Listed | None = self.rows.current
        if each is None:
            self.notify_here(f"There is no rule to {what}. a adds one.")
        elif each.origin == "settings":
            self.notify_here(f"This rule is written in {each.place}: {what} it there. It counts as soon as you save.")
            return None
        return each

    @work(group="write", exit_on_error=False)
    async def action_choose(self) -> None:
        """Replace the rule under the cursor."""
        if (each := self._editable_rule("edit")) is None:
            return
        for_how_long = "in this session" if each.origin == "session" else "always"
        rule = await self.app.push_screen_wait(RuleScreen(f"In this folder, {for_how_long}:", each.rule.text))
        if rule is None or rule.text == each.rule.text:
            return
        rule = msgspec.structs.replace(rule, folder=each.rule.folder)
        if each.origin == "session" or await self._written(replace_rule, each.rule, rule):
            self._approvals.withdraw(each.rule)
            await self._approvals.allow([rule], "session")
            await self._list_rules(rule)

    @work(group="write", exit_on_error=False)
    async def action_remove(self) -> None:
        """Remove the rule under the cursor; asks first if it forbids something."""
        if (each := self._editable_rule("remove")) is None:
            return
        sure = f"Without `{one_line(each.rule.text)}` this is no longer forbidden. Remove the rule?"
        if each.rule.denies and not await self.app.push_screen_wait(Confirm(sure)):
            return
        if each.origin == "session" or await self._written(remove_rule, each.rule):
            self._approvals.withdraw(each.rule)
            self.notify_here(f"Removed: {one_line(each.rule.text)}")
            await self._list_rules()

    @work(group="write", exit_on_error=False)
    async def action_add(self, verdict: Literal["session", "always"]) -> None:
        """Add a rule for this folder."""
        for_how_long = "in this session" if verdict == "session" else "always"
        rule = await self.app.push_screen_wait(RuleScreen(f"A new rule in this folder, {for_how_long}:"))
        if rule is None:
            return
        try:
            await self._approvals.allow([rule], verdict)
        except CtxchatError as problem:
            self.notify_here(f"The rule holds for this session only. {problem}", error=True)
        await self._list_rules(next((held for held in self._approvals.all_rules if held.text == rule.text), None))

    async def _written(self, change: Callable[..., bool], *about: Rule) -> bool:
        """The stored rules are others now; False, and it is said, where that failed."""
        try:
            if await asyncio.to_thread(change, self._config, *about):
                return True
        except OSError as problem:
            why = str(problem) if isinstance(problem, CtxchatError) else problem.strerror or str(problem)
            self.notify_here(f"The rules could not be written: {why}", error=True)
            return False
        self.notify_here("The rule is no longer stored: it was removed in the meantime.")
        await self._list_rules()
        return False


def _brief(place: str) -> str:
    """A place in a file, by the file's folder and name: `.ctxchat/config.toml:3`."""
    return one_line("/".join(place.split("/")[-2:]))
