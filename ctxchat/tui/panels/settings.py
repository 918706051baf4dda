"""The screen of the settings: every option with its value, default and origin, its effect on this session and its allowed values;
and a way to change it for good.

Reads and writes through `ctxchat.config`; a change is written to the person's own file and read back before it is shown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
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
from ctxchat.config.option_table import NOW, Option, bare, find_option
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
    """A value as TOML has it, on one line; `–` for None, which is an option left out."""
    return "–" if value is None else one_line(literal(value), 120)


def following(row: OptionRow) -> Any:
    """The next of the values that an option with a few values can have, true and false among them; None for options whose value
    must be typed."""
    kind = bare(row.option.type)
    values: tuple[Any, ...] = (False, True) if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
    if not values:
        return None
    return values[(values.index(row.value) + 1) % len(values)] if row.value in values else values[0]


def parsed(text: str, option: Option) -> Any:
    """The value that a person typed: read as TOML, or as plain text if it is none. For an option of text it is plain text unless
    all of it is quoted."""
    text = text.strip()
    if bare(option.type) is str and not (len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


class ChangeScreen(Dialog[Any]):
    """A dialog that asks for the value of an option. Its result is the value, or None.

    `effect` says what a value means here, `refused` why it is not allowed (empty if it is). `context_usage` is given for options
    that are marks on the gauge, which is then shown below.
    """

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
        yield Static(self._meaning(self._typed(now)), id="effect", classes="quiet", markup=False)
        if self._context_usage:
            yield Gauge(self._context_usage)

    def on_input_changed(self, event: Input.Changed) -> None:
        value = self._typed(event.value)
        error = self._error_in(value)
        below = self.query_one("#effect", Static)
        below.set_class(bool(error), "-wrong")
        below.update(self._meaning(value))
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if self._context_usage and not error and number and 0 <= value <= 1e8:
            self.query_one(Gauge).show_usage(with_marks(self._context_usage, **{MARKS[self._row.key]: value}))

    def _meaning(self, value: Any) -> Content:
        error = self._error_in(value)
        return Content(clean(f"! {error}" if error else self._effect(value)) or " ")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        value = self._typed(event.value)
        if not self._error_in(value):  # else the error is shown already: nothing is written, Esc leaves
            self.dismiss(value)

    def _typed(self, text: str) -> Any:
        return parsed(text, self._row.option) if text.strip() else None

    def _error_in(self, value: Any) -> str:
        return self._refused(value) if value is not None else ""


def price_of_edits(session: Session, keys: Sequence[str]) -> str:
    """A sentence on what it costs to change these options, after which requests begin anew; empty where they do not."""
    served = {"models": session.context_usage.model, "agents": session.setup.agent}
    found = set[str]()
    for key in keys:
        path = parse_key(key)
        table, name, *_ = (*path, "")
        option = find_option(path)
        if option and served.get(table, name) == name:
            found.add(option.facts.rewrites)
    if not found - {""}:
        return ""
    change = session.changes.rewrite_all(head="all" in found)
    return anew_words(session.context_usage, change, time(), at_most="all" not in found)


class SettingsScreen(EditableListing):
    """The screen of the settings. Its result is True if something was changed, else None. `session` is the one that effects,
    costs and advice are about."""

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
            self.run_worker(self._measure_session, group="weigh", exit_on_error=False)

    async def _measure_session(self) -> None:
        """Show the effects of options on a session whose view was not compiled before."""
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
        self._show_advice(loaded)
        self.apply_filter(self.chosen.key if self.chosen else "")

    def _show_advice(self, loaded: Loaded) -> None:
        """Show the advice for this session, and on the gauge the marks that these settings set."""
        session = self._session
        if session is None:
            return
        try:
            settings = for_agent(loaded.settings, session.setup.agent)[0]
        except UsageError:
            settings = loaded.settings
        self._advice = advice(session.context_usage, session.state, settings.context)
        advice_line = self.query_one("#advice", Static)
        advice_line.display = bool(self._advice)
        advice_line.update(Content("\n").join([Content(a.text) for a in self._advice]))
        context = settings.context
        marks = with_marks(
            session.context_usage, compression_trigger=context.compression_trigger, target=context.target
        )
        self.query_one(Gauge).show_usage(marks)

    def apply_filter(self, at: str = "") -> None:
        candidates = [row for row in self._rows if not self._only_changed or row.origin.layer != "default"]
        shown = self.matching(candidates, lambda row: f"{row.key} {row.option.facts.help}")
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
        """A sentence on the cost of an edit, after which the provider can reuse less of the conversation for the next request;
        empty if it costs nothing, as with the `value` that is in force in this session until the next compaction."""
        session = self._session
        if session is None or session.setup.deferred.settings.get(row.key, row.value) == value:
            return ""
        return price_of_edits(session, [row.key])

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
        """Move to the option of the first advice or, from the option of an advice, to that of the next."""
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
        """Set the next value of an option that has only a few; ask for the value of any other."""
        row = self.chosen
        if row is None:
            return
        if (next_value := following(row)) is not None:
            if not self._price(row, next_value) and not self._is_deferred(row):
                await self.write_next(set_value, partial(self._next_value_of, row.key))
            elif await self._confirm_cost(row, next_value):
                await self.change_file(set_value, row.key, next_value)
            return
        context_usage = self._session.context_usage if self._session and row.key in MARKS else None
        why_refused = partial(refused, row.key, known=cache(entry_points))  # cached: it is called with every key
        dialog = ChangeScreen(row, partial(self._effect, row), why_refused, context_usage)
        value = await self.app.push_screen_wait(dialog)
        if value is not None and await self._confirm_cost(row, value):
            await self.change_file(set_value, row.key, value)

    def _is_deferred(self, row: OptionRow) -> bool:
        """Whether an edit of this option waits for the next compaction."""
        return bool(self._session and row.key in self._session.setup.deferred.settings)

    async def _confirm_cost(self, row: OptionRow, value: Any) -> bool:
        """Ask about an edit that costs something, and whether it should wait for the next compaction. Return whether to write it;
        the session then knows whether the former value holds until that compaction."""
        price, later = self._price(row, value), False
        if price:
            answer = await self.app.push_screen_wait(Confirm(f"Change {row.key} now?\n{price}", may_wait=True))
            if not answer:
                return False
            later = answer == "later"
        if self._session and (later or self._is_deferred(row)):
            kept = dict(self._session.setup.deferred.settings)
            if later:
                kept.setdefault(row.key, row.value)
            else:
                del kept[row.key]
            return await self.attempt(self._session.setup.defer_setup(settings=kept)) is not None
        return True

    def _next_value_of(self, key: str) -> tuple[str, Any]:
        """The key of an option and the value after its present one."""
        return key, next(following(row) for row in self._rows if row.key == key)

    @work(group="write", exit_on_error=False)
    async def action_reset(self) -> None:
        if (row := self.chosen) and row.origin.layer == "user":
            if await self._confirm_cost(row, row.default):
                await self.change_file(unset_value, row.key)
        elif row and row.origin.layer != "default":
            self.notify_here(f"Set by {row.origin.text}, not by your own file.")
        elif row:
            self.notify_here("This is the default already.")
