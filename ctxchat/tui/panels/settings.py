"""Every option with its value, default and origin; what it does here, what may stand there, and a way to change it for good.

Reads and writes through `ctxchat.config`; a change is written to the person's own file and read back before it is shown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Input, Static

from ctxchat.config.consistency import for_agent
from ctxchat.config.effective import Loaded, entry_points
from ctxchat.config.explain import OptionRow, rows
from ctxchat.config.option_table import NOW, Option, bare
from ctxchat.config.toml_positions import literal, parse_key
from ctxchat.config.write import refused, set_value, unset_value
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import UsageError
from ctxchat.presentation.advice import Advice, advice
from ctxchat.presentation.cache_text import anew_words
from ctxchat.presentation.effects import MARKS, effect, with_marks
from ctxchat.presentation.text import clean, one_line
from ctxchat.presentation.usage_text import count
from ctxchat.tui.panels.panel import AnswerField, Confirm, Dialog, EditableListing
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.rows import Cell, Column

if TYPE_CHECKING:
    from ctxchat.agent.session import Session


def shown_value(value: Any) -> str:
    """A value as it would stand in the file, on one line; `–` where it is left out."""
    return "–" if value is None else one_line(literal(value), 120)


def following(row: OptionRow) -> Any:
    """The next of a few words, or the other of true and false; None for options that must be typed."""
    kind = bare(row.option.type)
    words: tuple[Any, ...] = (False, True) if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
    if not words:
        return None
    return words[(words.index(row.value) + 1) % len(words)] if row.value in words else words[0]


def parsed(text: str, option: Option) -> Any:
    """What a person typed as a plain value: as TOML reads it, else as the words they are. Text is words unless all of it is
    quoted."""
    text = text.strip()
    if bare(option.type) is str and not (len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


class ChangeScreen(Dialog[Any]):
    """Comes back with a plain value, or None. `effect` says what a value means, `refused` why it cannot be, empty where it can;
    `context_usage` are given for what moves something on the bar."""

    def __init__(
        self,
        row: OptionRow,
        effect: Callable[[Any], str],
        refused: Callable[[Any], str],
        context_usage: ContextUsage | None = None,
    ) -> None:
        super().__init__()
        self._row, self._effect, self._refused, self._context_usage = row, effect, refused, context_usage

    def body(self) -> ComposeResult:
        value = self._row.value
        now = "" if value is None else value if isinstance(value, str) else literal(value)
        yield Static(Content(clean(f"{self._row.key}: {self._row.option.allowed}")), markup=False)
        yield AnswerField(now, compact=True)
        yield Static(id="effect", classes="quiet", markup=False)
        if self._context_usage:
            yield Gauge(self._context_usage)

    def on_input_changed(self, event: Input.Changed) -> None:
        value = self._typed(event.value)
        wrong = self._wrong(value)
        said = self.query_one("#effect", Static)
        said.set_class(bool(wrong), "-wrong")
        said.update(Content(clean(f"! {wrong}" if wrong else self._effect(value)) or " "))
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if self._context_usage and not wrong and number and 0 <= value <= 1e8:
            self.query_one(Gauge).show_usage(with_marks(self._context_usage, **{MARKS[self._row.key]: value}))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        value = self._typed(event.value)
        if not self._wrong(value):  # else it has been said already: nothing is written, Esc leaves
            self.dismiss(value)

    def _typed(self, text: str) -> Any:
        return parsed(text, self._row.option) if text.strip() else None

    def _wrong(self, value: Any) -> str:
        return self._refused(value) if value is not None else ""


class SettingsScreen(EditableListing):
    """Comes back with True where something was changed, else None. `session` is the one effects and advice are about."""

    TITLE = "Settings"
    COLUMNS = (
        Column("option", least=34, path=True, share=2),
        Column("value", least=10),
        Column("here", 30, rank=3),
        Column("default", 14, rank=2),
        Column("from", 18, rank=1),
    )
    EMPTY = "No option is set."
    NOT_FOUND = "No option has these words."
    FILTER_PLACEHOLDER = "words of an option or its help"
    BINDINGS = [
        Binding("enter", "choose", "change", key_display="enter"),
        Binding("backspace,delete", "reset", "back to the default", key_display="⌫"),
        Binding("c", "changed", "only what is set"),
        Binding("a", "advised", "to the advice"),
    ]

    def __init__(self, loaded: Loaded, load: Callable[[], Loaded], file: Path, session: Session | None = None) -> None:
        super().__init__(loaded, load, file)
        self._session = session
        self._rows: tuple[OptionRow, ...] = ()
        self._advice: tuple[Advice, ...] = ()
        self._only_changed = False

    def body(self) -> ComposeResult:
        yield Static(id="advice", markup=False)
        yield from super().body()
        yield Gauge(self._session.context_usage if self._session else None)

    def on_mount(self) -> None:
        self.reread(self._loaded)
        if self._session and not self._session.view.items:
            self.run_worker(self._weigh, group="weigh", exit_on_error=False)

    async def _weigh(self) -> None:
        """What options mean for a session that is only now looked at."""
        if self._session:
            await self._session.seen_view()
            self.reread(self._loaded)

    # ── what it shows ──

    @property
    def chosen(self) -> OptionRow | None:
        """The option under the cursor."""
        return self.rows.current

    def reread(self, loaded: Loaded) -> None:
        self._loaded, self._rows = loaded, rows(loaded)
        self._advise(loaded)
        self.apply_filter(self.chosen.key if self.chosen else "")

    def _advise(self, loaded: Loaded) -> None:
        session = self._session
        if session is None:
            return
        try:
            settings = for_agent(loaded.settings, session.setup.agent)[0]
        except UsageError:
            settings = loaded.settings
        self._advice = advice(session.context_usage, session.state, settings.context)
        said = self.query_one("#advice", Static)
        said.display = bool(self._advice)
        said.update(Content("\n").join([Content(a.text) for a in self._advice]))
        context = settings.context
        marks = with_marks(
            session.context_usage, compression_trigger=context.compression_trigger, target=context.target
        )
        self.query_one(Gauge).show_usage(marks)

    def apply_filter(self, at: str = "") -> None:
        some = [row for row in self._rows if not self._only_changed or row.origin.layer != "default"]
        shown = self.holding(some, lambda row: f"{row.key} {row.option.facts.help}")
        self.set_items(shown, at, lambda row: row.key)
        words = count(len(shown), "option")
        self.head(f"{words} of {clean(str(self._file))}", words)

    def cells(self, row: OptionRow) -> tuple[Cell, ...]:
        own = row.origin.layer != "default"
        place = Path(row.origin.place).name if row.origin.line else row.origin.text
        return (
            (one_line(row.key), "" if own else "dim"),
            (shown_value(row.value), "strong" if own else ""),
            (self._effect(row, row.value), "dim"),
            (shown_value(row.default), "dim"),
            (one_line(f"{place}:{row.origin.line}" if row.origin.line else place), "dim"),
        )

    def _effect(self, row: OptionRow, value: Any) -> str:
        session = self._session
        return effect(row.option, row.key, value, session.context_usage, session.view) if session else ""

    def _price(self, row: OptionRow, value: Any = ...) -> str:
        """What an edit costs the conversation under way, of which the next request repeats less; empty where it costs nothing, as
        to the `value` that goes on to hold here until the next compaction."""
        session, rewrites = self._session, row.option.facts.rewrites
        if session is None or not rewrites or session.setup.deferred.settings.get(row.key, row.value) == value:
            return ""
        table, name, *_ = (*parse_key(row.key), "")
        others = {"models": session.context_usage.model, "agents": session.setup.agent}
        if others.get(table, name) != name:
            return ""
        change = session.changes.rewrite_all(head=rewrites == "all")
        return anew_words(session.context_usage, change, time(), at_most=rewrites == "messages")

    def describe_item(self, item: OptionRow | None) -> Content:
        if item is None:
            return Content("")
        row, facts, unit = item, item.option.facts, item.option.facts.unit
        lines = [Content(clean(facts.help))]
        if here := self._effect(row, row.value):
            lines.append(Content.styled(f"here: {here}", "$text-accent"))
        if facts.effect:
            lines.append(Content.styled(clean(facts.effect), MUTED))
        lines.append(Content.styled(f"{row.option.allowed}{f', {unit}' if unit else ''}", MUTED))
        if price := self._price(row):
            lines.append(Content(f"Changed now: {price}"))
        notes = [f"set by {clean(row.origin.text)}"] if row.origin.layer != "default" else []
        notes += [f"an edit counts {facts.counts}"] if facts.counts != NOW else []
        notes += ["in a project's file: trusted folders only"] if facts.trust else []
        kept = self._session.setup.deferred.settings if self._session else {}
        if row.key in kept:
            lines.append(Content(f"Waits for the next compaction; until then {shown_value(kept[row.key])} holds here."))
        if notes:
            lines.append(Content.styled("; ".join(notes), MUTED))
        return Content("\n").join(lines)

    # ── what is done ──

    def action_changed(self) -> None:
        self._only_changed = not self._only_changed
        self.apply_filter(self.chosen.key if self.chosen else "")

    def action_advised(self) -> None:
        """To the option the first advice is about; pressed there, to the next one's."""
        keys = [a.key for a in self._advice]
        if not keys:
            self.notify_here("Nothing to advise: this session went well so far.")
            return
        at = self.chosen.key if self.chosen else ""
        self._only_changed = False
        self.apply_filter(keys[(keys.index(at) + 1) % len(keys)] if at in keys else keys[0])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self._advice) if action == "advised" else True

    @work(group="write", exit_on_error=False)
    async def action_choose(self) -> None:
        """The next word of a few; anything else is asked for."""
        row = self.chosen
        if row is None:
            return
        if (word := following(row)) is not None:
            if not self._price(row, word) and not self._waits(row):
                await self.write_next(set_value, partial(self._following, row.key))
            elif await self._agreed(row, word):
                await self.change_file(set_value, row.key, word)
            return
        context_usage = self._session.context_usage if self._session and row.key in MARKS else None
        wrong = partial(refused, row.key, known=cache(entry_points))  # looked for once, not with every key
        asked = ChangeScreen(row, partial(self._effect, row), wrong, context_usage)
        value = await self.app.push_screen_wait(asked)
        if value is not None and await self._agreed(row, value):
            await self.change_file(set_value, row.key, value)

    def _waits(self, row: OptionRow) -> bool:
        return bool(self._session and row.key in self._session.setup.deferred.settings)

    async def _agreed(self, row: OptionRow, value: Any) -> bool:
        """What an edit costs is asked about, where it costs something: the conversation may go on without it for a while."""
        price, later = self._price(row, value), False
        if price:
            answer = await self.app.push_screen_wait(Confirm(f"Change {row.key} now?\n{price}", may_wait=True))
            if not answer:
                return False
            later = answer == "later"
        if self._session and (later or self._waits(row)):
            kept = dict(self._session.setup.deferred.settings)
            if later:
                kept.setdefault(row.key, row.value)
            else:
                del kept[row.key]
            return await self.attempt(self._session.setup.defer_setup(settings=kept)) is not None
        return True

    def _following(self, key: str) -> tuple[str, Any]:
        """The option and its next word, as it is set now."""
        return key, next(following(row) for row in self._rows if row.key == key)

    @work(group="write", exit_on_error=False)
    async def action_reset(self) -> None:
        if (row := self.chosen) and row.origin.layer == "user":
            if await self._agreed(row, row.default):
                await self.change_file(unset_value, row.key)
        elif row and row.origin.layer != "default":
            self.notify_here(f"Set by {row.origin.text}, not by your own file.")
        elif row:
            self.notify_here("This is the default already.")
