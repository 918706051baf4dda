"""The models that can be had: their windows, prices, and whether this session would fit."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from msgspec import structs
from textual import work
from textual.binding import Binding
from textual.content import Content
from textual.fuzzy import Matcher

from ctxchat.config.write import set_value
from ctxchat.core.budget import limit_of
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError
from ctxchat.core.prices import TOKENS_PER_PRICE
from ctxchat.presentation.cache_text import WORTH_USD, call_words, thoughts_words
from ctxchat.presentation.text import clean, one_line, short
from ctxchat.presentation.usage_text import SOURCES, brief, count, fit_words, money, per_million
from ctxchat.tui.panels.panel import Listing
from ctxchat.tui.services import Services
from ctxchat.tui.widgets.rows import Cell, Column

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.models.discovery import FoundModel


def with_current(rows: Sequence[FoundModel], context_usage: ContextUsage) -> Sequence[FoundModel]:
    """The rows, including the session's own model with its actual window; that comes first where no row names it."""
    from ctxchat.models.discovery import FoundModel

    if all(row.name != context_usage.model for row in rows):
        provider = context_usage.model.partition("/")[0]
        return (
            FoundModel(
                context_usage.model, provider, True, context_usage.window, context_usage.window_source, note="in use"
            ),
            *rows,
        )
    window, source = context_usage.window, context_usage.window_source
    return [
        structs.replace(row, window=window, window_source=source) if row.name == context_usage.model else row
        for row in rows
    ]


def price_words(row: FoundModel) -> str:
    """US dollars per million tokens, input / output; empty where unknown."""
    return per_million(row.input_cost, row.output_cost)


def switch_words(row: FoundModel, context_usage: ContextUsage) -> str:
    """A sentence on the cost of the next message after a switch to this model, which has to read the whole conversation anew;
    empty for the model in use, and if the cost is small or unknown."""
    cost = context_usage.used * (row.input_cost or 0.0) / TOKENS_PER_PRICE
    if row.name == context_usage.model or cost < WORTH_USD:
        return ""
    usual = call_words(context_usage.cache.next_at(time()))
    instead = f" instead of {usual}" if usual else ""
    return f"It reads all {short(context_usage.used)} tokens anew: the next message costs ≈ {money(cost)}{instead}."


def all_words(row: FoundModel) -> str:
    """All that is known of a model, as lines, for windows without room for columns."""
    price = price_words(row)
    window = f"window {brief(row.window)}, {SOURCES[row.window_source]}" if row.window > 0 else "window unknown"
    price_text = price if price in ("", "free") else f"$ {price} for a million tokens in / out"
    note = one_line(row.note) or ("" if row.reachable else "does not answer")
    return "\n".join(filter(None, (one_line(row.name), "   ".join(filter(None, (window, price_text))), note)))


def matching(rows: Sequence[FoundModel], words: str) -> list[FoundModel]:
    """The models whose name, provider or note match, best first; those that do not answer come last."""
    if not words.strip():
        return sorted(rows, key=lambda r: not r.reachable)
    matcher = Matcher(words.strip())
    scored = [(matcher.match(f"{r.name} {r.provider} {r.note}"), r) for r in rows]
    return [r for score, r in sorted(scored, key=lambda s: (not s[1].reachable, -s[0])) if score > 0]


NOTE_COLUMNS = 24
"""Cells for what is said of a model in the list; all of a longer note stands below."""


class ModelsScreen(Listing[str]):
    """Chooses a model. Its result is the model's name, or None."""

    TITLE = "Models"
    COLUMNS = (
        Column("", 1),
        Column("model", least=17, path=True),
        Column("window", 6, right=True, rank=1),
        Column("known from", 15, rank=4),
        Column("would fit", 11, right=True, rank=2),
        Column("$ in / out", 14, right=True, rank=3),
        Column("note", NOTE_COLUMNS, rank=5),
    )
    EMPTY = "No model was found."
    BINDINGS = [
        Binding("enter", "choose", "go on with it", key_display="enter"),
        Binding("d", "default", "begin with it from now on"),
        Binding("r", "load", "look again"),
    ]

    def __init__(
        self, services: Services, session: Session, settings_file: Path | None = None, default: str = ""
    ) -> None:
        """`default` is the model that new sessions use; `d` writes another one to `settings_file`."""
        super().__init__()
        self._services, self._session = services, session
        self._file, self._default = settings_file, default
        self._all: Sequence[FoundModel] = ()

    def on_mount(self) -> None:
        self.action_load()

    # ── what it shows ──

    @work(group="load", exclusive=True, exit_on_error=False)
    async def action_load(self) -> None:
        """Look for models, again where that was done before: what cannot be looked up now leaves the list as it is."""
        before = self._all
        found = await self.attempt(self._services.models())
        if found is None and before:
            return
        self._all = with_current(found or (), self._session.context_usage)
        self.apply_filter(self._session.context_usage.model)
        if before and list(before) == list(self._all):
            self.notify_here("Looked again: the same models.")

    def apply_filter(self, at: str = "") -> None:
        shown = matching(self._all, self.words)
        self.set_items(shown, at, lambda row: row.name)
        found = count(len(shown), "model")
        self.head(f"{found}, this session holds {short(self._session.context_usage.used)}", found)

    def cells(self, row: FoundModel) -> tuple[Cell, ...]:
        style = "" if row.reachable else "dim"
        context_usage = self._session.context_usage
        limit = limit_of(row.window, context_usage.reserved_output) if row.window > 0 else 0
        return (
            (self._mark(row.name), "good"),
            (one_line(row.name), style),
            (brief(row.window) if row.window > 0 else "?", style),
            (
                SOURCES[row.window_source].rpartition("from ")[2].removeprefix("its "),
                "dim",
            ),  # the column is "known from"
            (fit_words(context_usage.used, limit), "warn" if 0 < limit < context_usage.used else style),
            (price_words(row), style),
            (one_line(row.note) or ("" if row.reachable else "does not answer"), "dim"),
        )

    def _mark(self, name: str) -> str:
        return "●" if name == self._session.context_usage.model else "d" if name == self._default else ""

    def describe_item(self, item: FoundModel | None) -> Content | str:
        if item is None:
            return ""
        lost = self._session.setup.thoughts_lost_with(item.name) if item.reachable else 0
        costs = " ".join(filter(None, (switch_words(item, self._session.context_usage), thoughts_words(lost))))
        cut = len(one_line(item.note)) > NOTE_COLUMNS
        known = all_words(item) if cut or not self.has_class("-wide") else ""
        return Content("\n".join(filter(None, (known, costs))))

    # ── what is done ──

    async def action_default(self) -> None:
        """Sessions begin with this one from now on; this session goes on as it is."""
        row: FoundModel | None = self.rows.current
        if row is None or self._file is None:
            return
        try:
            await to_thread(set_value, self._file, "model", row.name)
        except (CtxchatError, OSError) as problem:
            self.notify_here(f"Not kept: {problem}", error=True)
            return
        self._default = row.name
        self.apply_filter(row.name)
        self.notify_here(f"Sessions begin with {one_line(row.name)} from now on ({self._file.name}).")

    def action_choose(self) -> None:
        """Choose the model under the cursor, if it answers."""
        row: FoundModel | None = self.rows.current
        if row is None:
            return
        if row.reachable:
            self.dismiss(row.name)
        else:
            why = (clean(row.note) or "it does not answer").rstrip(".")
            self.notify(f"{one_line(row.name)}: {why}. r looks again.", severity="warning", markup=False)
