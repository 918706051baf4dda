"""Search over everything ever said: in view or put away, in this session or another. What is found can be gone to or put back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ctxchat.core.figures import Figures
from ctxchat.core.messages import Group
from ctxchat.core.search import NEWEST, Hit, Scope
from ctxchat.tui.figures_text import count, day_and_clock, percent, tilde
from ctxchat.tui.screens.panel import MUTED, Heading, Panel
from ctxchat.tui.screens.reader import ReaderScreen
from ctxchat.tui.services import ChatSession, Services
from ctxchat.tui.text import clean, one_line, short
from ctxchat.tui.widgets.choice import Choice

OPEN, CLOSE = "\ue000", "\ue001"
"""What stands around the words that were found: characters no snippet holds otherwise."""

PAUSE = 0.12
"""Seconds of rest after a key before a search begins."""

HITS = 50

FOUND = "bold $text-accent"

WHO = {"user": "you", "assistant": "answer", "tool": "result", "system": "system"}

PLACES = ("all sessions", "this session")
ROLES = {"anyone": "", "you": "user", "answers": "assistant", "tool results": "tool"}
TIMES = {
    "any time": Scope(),
    "before last compaction": Scope(before=NEWEST),
    "since last compaction": Scope(after=NEWEST),
}

START = "Everything ever said is searched, in every session, what was put away too."


def highlighted(marked: str, width: int = 0) -> Content:
    """A snippet with what was found made to stand out; in `width` cells the first of it is on screen."""
    shown = Content("")
    for i, piece in enumerate(re.split(f"[{OPEN}{CLOSE}]", clean(marked))):
        shown = shown.append(Content.styled(piece, FOUND) if i % 2 else Content(piece))
    first = min((span.start for span in shown.spans), default=0)
    if width and first > width // 2:
        start = first - width // 3
        word = shown.plain.find(" ", start, first) + 1  # on a word, where one begins before it
        shown = Content("…").append(shown[word or start :])
    return shown


def passage_of(hit: Hit, query: str = "") -> Content:
    """The lines around what was found, the same words standing out, and those of the query."""
    words = {found.casefold() for found in re.findall(f"{OPEN}([^{CLOSE}]*){CLOSE}", hit.snippet)}
    words |= {word.casefold() for word in re.findall(r"\w{3,}", query)}
    text = clean(hit.passage)
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word.strip())
    shown = Content(text)
    for match in re.finditer(pattern, text, re.IGNORECASE) if pattern else ():
        shown = shown.stylize(FOUND, match.start(), match.end())
    return shown


class Hits(OptionList):
    """The list of what was found; its footer says what Enter does."""

    BINDINGS = [Binding("enter", "select", "go there", key_display="enter")]


class SearchScreen(Panel[tuple[str, str]]):
    """Comes back with a session's id and the group to go to there, or None."""

    CSS_PATH = Path(__file__).parent.parent / "search.tcss"

    BINDINGS = [
        Binding("r", "restore", "put back here"),
        Binding("v", "view", "read it whole"),
        Binding("s", "filter('place')", "session"),
        Binding("w", "filter('role')", "who"),
        Binding("t", "filter('time')", "when"),
        Binding("slash", "find", "words", key_display="/"),
        Binding("down", "into", show=False),
        Binding("escape", "back", "back", key_display="esc"),
    ]

    def __init__(self, services: Services, session: ChatSession, words: str = "") -> None:
        super().__init__(name="search", classes="panel")
        self._services, self._session, self._words = services, session, words
        self._hits: Sequence[Hit] = ()

    def compose(self) -> ComposeResult:
        yield Heading("Search")
        yield Input(self._words, placeholder='words that were said; "…" keeps them together', compact=True)
        with Horizontal(id="filters"):
            yield Choice(PLACES, id="place")
            yield Choice(tuple(ROLES), id="role")
            yield Choice(tuple(TIMES), id="time")
        yield Static(START, id="nothing", markup=False)
        yield Hits(id="hits", markup=False)
        yield Static(id="passage", markup=False)
        yield self.footer()

    def on_mount(self) -> None:
        self._show((), "")
        self.set_focus(self.query_one(Input))

    # ── what it shows ──

    @property
    def home(self) -> Widget | None:
        return self._list if self._hits else None

    @property
    def _list(self) -> OptionList:
        return self.query_one("#hits", OptionList)

    @property
    def chosen(self) -> Hit | None:
        """The hit under the cursor."""
        place = self._list.highlighted
        return self._hits[place] if place is not None and place < len(self._hits) else None

    @property
    def scope(self) -> Scope:
        """Where to look, as the filters say."""
        time = TIMES[self.query_one("#time", Choice).value]
        here = self.query_one("#place", Choice).value == PLACES[1]
        role = ROLES[self.query_one("#role", Choice).value]
        return Scope(session=self._session.id if here else "", role=role, before=time.before, after=time.after)  # type: ignore[arg-type]

    def on_input_changed(self, event: Input.Changed) -> None:
        self._look(PAUSE)

    def on_choice_changed(self, event: Choice.Changed) -> None:
        self._look(0)

    def _look(self, pause: float) -> None:
        """Search for what stands in the field; an answer to something older is dropped."""
        self.run_worker(self._search(pause), group="search", exclusive=True, exit_on_error=False)

    async def _search(self, pause: float) -> None:
        await asyncio.sleep(pause)
        words = self.query_one(Input).value.strip()
        found: Sequence[Hit] | None = ()
        if words:
            found = await self.attempt(self._services.search(words, self.scope, limit=HITS, marks=(OPEN, CLOSE)))
        self._show(found or (), words)

    def _show(self, hits: Sequence[Hit], words: str) -> None:
        self._hits = hits
        self._draw()
        self._list.highlighted = 0 if hits else None
        self.set_class(not hits, "-nothing")
        narrowed = self.scope != Scope()
        nothing = f"Nothing found for {one_line(words, 60)}." + (
            " Fewer filters may help: s, w, t." if narrowed else ""
        )
        self.query_one("#nothing", Static).update(nothing if words else START)
        tail = f"the {len(hits)} best" if len(hits) == HITS else count(len(hits), "hit") if hits else ""
        self.query_one(Heading).show("Search", tail)
        self._show_passage()

    def _draw(self) -> None:
        place = self._list.highlighted
        self._list.set_options([Option(self._lines(hit)) for hit in self._hits])
        self._list.highlighted = place

    def on_resize(self, event: Resize) -> None:
        if self._hits:
            self.call_after_refresh(self._draw)

    def _lines(self, hit: Hit) -> Content:
        """Two lines: the words, and where they stand and what putting them back costs."""
        width = max(16, (self.size.width or 80) - 4)
        here = hit.session == self._session.id
        who = WHO.get(hit.role, hit.role)
        if hit.tool:
            who = f"{'result' if hit.role == 'tool' else 'call'} of {hit.tool}"
        facts = [
            one_line(who, 24),
            f"{short(hit.tokens)} tokens",
            "this session" if here else one_line(hit.title, 30) or "without a title",
            *([f"turn {hit.turn}"] if hit.turn else []),
            day_and_clock(hit.at),
            "put away" if hit.compaction else "in view",
        ]
        line = ""
        for fact in filter(None, facts):
            if len(line) + 3 + len(fact) <= width:
                line += f" · {fact}" if line else fact
        words = highlighted(hit.snippet, width).truncate(width, ellipsis=True)
        return words.append("\n").append(Content.styled(line, MUTED))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._show_passage()

    def _show_passage(self) -> None:
        hit = self.chosen
        self.query_one("#passage", Static).update(passage_of(hit, self.query_one(Input).value) if hit else "")
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("restore", "view") and self.is_mounted:
            return self.chosen is not None
        return True

    # ── what is done ──

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.run_worker(self._now(), group="search", exclusive=True, exit_on_error=False)

    async def _now(self) -> None:
        await self._search(0)
        self.action_into()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_open()

    def action_into(self) -> None:
        """From the field to the hits."""
        if self.home:
            self.set_focus(self.home)

    def action_filter(self, which: str) -> None:
        self.query_one(f"#{which}", Choice).step()

    def action_find(self) -> None:
        self.set_focus(self.query_one(Input))

    def action_back(self) -> None:
        self.dismiss(None)

    def action_open(self) -> None:
        if hit := self.chosen:
            self.dismiss((hit.session, hit.group))

    def action_view(self) -> None:
        if hit := self.chosen:
            self.run_worker(self._view(hit), group="verb", exit_on_error=False)

    async def _view(self, hit: Hit) -> None:
        group = await self.attempt(self._services.group(hit.session, hit.message))
        message = next((m for m in group.messages if m.id == hit.message), None) if group else None
        if message is not None:
            self.app.push_screen(
                ReaderScreen(message), lambda wish: self.action_restore() if wish == "restore" else None
            )

    def action_restore(self) -> None:
        if hit := self.chosen:
            self.run_worker(self._restore(hit), group="verb", exit_on_error=False)

    async def _restore(self, hit: Hit) -> None:
        figures = await self.attempt(self._put_back(hit))
        if figures is None:
            return
        full = f"Put back at the end, as a quotation: the window is {tilde(figures)}{percent(figures.pressure)} full."
        over = figures.used - figures.limit
        words = f"{full} That is {short(over)} too much: free up some of it." if over > 0 else full
        self.notify(words, severity="warning" if over > 0 else "information", markup=False)

    async def _put_back(self, hit: Hit) -> Figures:
        if hit.session == self._session.id:
            return await self._session.restore(hit.group)
        group: Group = await self._services.group(hit.session, hit.message)
        return await self._session.quote(group, hit.title)
