"""The archive: every compaction of the session, what each put away, and the ways back: undo, put back, branch, export."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Markdown, Static, TabbedContent, TabPane

from ctxchat.core.errors import CtxchatError
from ctxchat.core.evidence import KINDS, TITLES, line_of, survival
from ctxchat.core.figures import Figures
from ctxchat.core.ledger import Change
from ctxchat.tui.figures_text import count, day_and_clock, gain, money
from ctxchat.tui.fill import fill_points
from ctxchat.tui.passes import REASONS, Kept, Pass, archived, compared, export_lines, passes, previous
from ctxchat.tui.screens.panel import MUTED, Heading, Panel
from ctxchat.tui.screens.reader import WHO, ReaderScreen
from ctxchat.tui.services import ChatSession, Services
from ctxchat.tui.text import clean, clock, elapsed, one_line, short
from ctxchat.tui.tool_words import decoded, key_argument
from ctxchat.tui.widgets.rows import Cell, Column, Rows
from ctxchat.tui.widgets.sparkline import FillLine

TABS = ("summary", "facts", "messages", "diff", "record")

PASSES = (
    Column("when", 6),
    Column("why", least=13),
    Column("before → after", 16, right=True),
    Column("freed", 7, right=True, rank=3),
    Column("how", 12, rank=2),
    Column("cost", 7, right=True, rank=4),
)
MESSAGES = (
    Column("", 6),
    Column("turn", 4, right=True, rank=2),
    Column("who", 7),
    Column("what"),
    Column("", 6, rank=1),
)


class ArchiveScreen(Panel[str]):
    """Comes back with the id of a branch that was made, else None."""

    BINDINGS = [
        Binding("enter", "open", "open", key_display="enter"),
        Binding("u", "undo", "undo"),
        Binding("r", "restore", "put back this message"),
        Binding("b", "branch", "branch from here"),
        Binding("x", "export", "export"),
        Binding("left,right", "tab", "tabs", show=False),
        *(Binding(str(i + 1), f"tab('{name}')", show=False) for i, name in enumerate(TABS)),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, session: ChatSession, services: Services, change_id: str = "") -> None:
        super().__init__(name="archive", classes="panel")
        self._session, self._services, self._wanted = session, services, change_id
        self._passes: tuple[Pass, ...] = ()
        self._drawn: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        yield Heading()
        with Horizontal(classes="panel-body"):
            with Vertical(id="timeline"):
                yield Rows(PASSES, self._pass_cells, id="passes", empty="Nothing was compacted in this session yet.")
                yield FillLine()
            with TabbedContent(id="detail"):
                with TabPane(Content("Summary"), id="summary"), VerticalScroll():
                    yield Markdown(open_links=False)
                yield self._page("facts")
                with TabPane(Content("Messages"), id="messages"):
                    yield Rows(
                        MESSAGES, self._message_cells, id="archived", titles=False, empty="Nothing is put away here."
                    )
                yield self._page("diff")
                yield self._page("record")
        yield self.footer()

    @staticmethod
    def _page(name: str) -> TabPane:
        return TabPane(Content(name.title()), VerticalScroll(Static(id=f"{name}-text", markup=False)), id=name)

    def on_mount(self) -> None:
        self.refresh_passes(self._wanted)
        self.set_focus(self.home)

    # ── what it shows ──

    @property
    def home(self) -> Widget | None:
        return self.query_one("#passes", Rows)

    @property
    def chosen(self) -> Pass | None:
        """The compaction under the cursor."""
        return self.query_one("#passes", Rows).current

    @property
    def kept(self) -> Kept | None:
        """The archived message under the cursor, where the messages are on screen."""
        if self.query_one(TabbedContent).active != "messages":
            return None
        return self.query_one("#archived", Rows).current

    def refresh_passes(self, at: str = "") -> None:
        """Read the session anew; the cursor goes to this compaction where it is there."""
        state = self._session.state
        self._passes = passes(state)
        self._drawn.clear()
        rows = self.query_one("#passes", Rows)
        rows.show(self._passes, at=next((i for i, p in enumerate(self._passes) if p.id == at), None))
        points, figures = fill_points(state), self._session.figures
        line = self.query_one(FillLine)
        line.display = len(points) > 1
        line.show(points, figures.limit, figures.trigger_tokens)
        words = count(len(self._passes), "compaction")
        self.query_one(Heading).show(f"Archive   {one_line(state.title, 80)}", words)
        self.set_class(not self._passes, "-empty")

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows.id == "passes":
            self._drawn.clear()
            self._draw_tab()
        self.refresh_bindings()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_open()

    def on_tabbed_content_tab_activated(self) -> None:
        self._draw_tab()
        self.refresh_bindings()

    def _draw_tab(self) -> None:
        """Fill the tab that is on screen, once for each compaction."""
        one, tab = self.chosen, self.query_one(TabbedContent).active
        if one is None or self._drawn.get(tab) == one.id:
            return
        self._drawn[tab] = one.id
        if tab == "summary":
            words = one.summary or f"*{_without_summary(one)}*"
            self.query_one(Markdown).update(clean(words))
        elif tab == "messages":
            self.query_one("#archived", Rows).show(archived(one, self._session.state.ledger), at=0)
        elif tab in TABS:
            self.query_one(f"#{tab}-text", Static).update(getattr(self, f"_{tab}")(one))

    def _pass_cells(self, one: Pass) -> tuple[Cell, ...]:
        style = "" if one.change else "dim"
        why = REASONS[one.reason] + ("" if one.change else f", {one.standing}")
        freed = one.before - one.after
        return (
            (clock(one.at) or "  ·", "dim"),
            (why, "warn" if one.standing in ("failed", "rejected") else style),
            (f"{short(one.before)} → {short(one.after)}" if one.outcome == "compacted" else "", style),
            (gain(freed) if one.change else "", "good"),
            (one_line(one.strategy, 20), "dim"),
            (money(one.cost_usd) if one.cost_usd else "", "dim"),
        )

    def _message_cells(self, kept: Kept) -> tuple[Cell, ...]:
        if kept.nested:
            return ("", "", ("Σ", "strong"), (_nested_words(kept.nested), "strong"), "")
        message = kept.message
        calls = (f"{one_line(c.name, 40)} {key_argument(decoded(c.arguments))}" for c in message.calls)
        text = one_line(message.text, 200) or "  ".join(calls)
        return (
            (message.id, "dim"),
            (str(kept.group.turn), "dim"),
            WHO[message.role],
            clean(text),
            (clock(message.at), "dim"),
        )

    def _facts(self, one: Pass) -> Content:
        evidence = one.evidence
        if not evidence.facts:
            text = clean(one.record.evidence) if one.record else ""
            return Content(text or "No facts were found in what was put away.")
        held, lost = survival(evidence, self._session.view)
        lines = [Content.styled(f"The model still sees {held.kept} of {held.found} facts.", MUTED)]
        for kind in KINDS:
            facts = [f for f in evidence.facts if f.kind == kind]
            lines += [Content(""), Content.styled(TITLES[kind], "bold")] if facts else []
            for fact in facts:
                words = clean(line_of(fact))
                lines.append(
                    Content.styled(f"– {words}   (not in view)", MUTED) if fact in lost else Content(f"✓ {words}")
                )
        return Content("\n").join(lines)

    def _diff(self, one: Pass) -> Content:
        before = previous(one, self._passes)
        if before is None:
            return Content.styled("There is no earlier summary to compare with.", MUTED)
        styles = {"+": "$text-success", "-": "$text-error", "@": MUTED}
        lines = [
            Content.styled(clean(line), styles[line[0]]) if line[:1] in styles else Content(clean(line))
            for line in compared(before.summary, one.summary)
        ]
        return Content("\n").join(lines) if lines else Content.styled("The summaries are equal.", MUTED)

    def _record(self, one: Pass) -> Content:
        record = one.record
        rows = [
            ("id", one.id),
            ("when", day_and_clock(one.at)),
            ("why", REASONS[one.reason]),
            ("outcome", one.standing),
            ("how", one.strategy),
            ("before → after", f"{short(one.before)} → {short(one.after)}   {gain(one.before - one.after)}"),
            ("took", f"{elapsed(one.seconds)}   {money(one.cost_usd)}   {one.model or 'no model'}"),
            ("said", one.detail),
        ]
        if record:
            rows += [("step", f"{s.name}   {gain(s.tokens_freed)}   {count(s.groups, 'group')}") for s in record.steps]
            rows += [
                ("put away", f"{count(record.folded_messages, 'message')}, {count(len(record.folded), 'group')}"),
                ("kept verbatim", count(record.keep_recent, "message") if record.keep_recent else ""),
                ("facts", f"kept {record.facts.kept} of {record.facts.found}" if record.facts.found else ""),
                ("attempts", str(record.attempts) if record.attempts > 1 else ""),
                ("tools then", ", ".join(record.tools)),
                ("memory then", ", ".join(record.memory)),
                ("last calls", "\n".join(record.recent_calls)),
            ]
        lines = [Content.assemble((f"{key:<16}", MUTED), clean(value)) for key, value in rows if value]
        return Content("\n").join(lines)

    # ── what is done ──

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("branch", "export", "open"):
            return bool(self._passes)
        if action == "undo":
            return bool(self.chosen and self.chosen.change)
        if action == "restore":
            return self.is_mounted and self.kept is not None and self.kept.nested is None
        return True

    def action_back(self) -> None:
        if self.has_class("-open"):
            self.remove_class("-open")
            self.set_focus(self.home)
        else:
            self.dismiss(None)

    def action_open(self) -> None:
        """From the list into the detail; from a message to the whole of it, from a nested compaction to that one."""
        if self.query_one("#archived", Rows).has_focus and (kept := self.kept):
            if kept.nested:
                self.refresh_passes(kept.nested.id)
            else:
                self._read(kept)
            return
        self.add_class("-open")
        tab = self.query_one(TabbedContent)
        self.set_focus(self.query_one("#archived" if tab.active == "messages" else f"#{tab.active} VerticalScroll"))

    def _read(self, kept: Kept) -> None:
        def done(wish: str | None) -> None:
            if wish == "restore":
                self._start(self._session.restore(kept.group.id), "Put back at the end, as a quotation.")

        self.app.push_screen(ReaderScreen(kept.message), done)

    def action_tab(self, name: str = "") -> None:
        """To this tab, or to the next."""
        tabs = self.query_one(TabbedContent)
        tabs.active = name or TABS[(TABS.index(tabs.active) + 1) % len(TABS)]

    def action_undo(self) -> None:
        one = self.chosen
        if one and one.change:
            self._start(self._session.undo(one.id), "Undone: the messages are back in the view.")

    def action_restore(self) -> None:
        if kept := self.kept:
            self._start(self._session.restore(kept.group.id), "Put back at the end, as a quotation.")

    def _start(self, verb, done: str) -> None:
        self.run_worker(self._do(verb, done), group="verb", exit_on_error=False)

    async def _do(self, verb, done: str) -> None:
        at = self.chosen.id if self.chosen else ""
        figures: Figures | None = await self.attempt(verb)
        if figures is None:
            return
        over = figures.used - figures.limit
        words = f"{done} That is {short(over)} too much for the window: free up some of it." if over > 0 else done
        self.notify(words, severity="warning" if over > 0 else "information", markup=False)
        self.refresh_passes(at)

    def action_branch(self) -> None:
        self.run_worker(self._branch(), group="verb", exit_on_error=False)

    async def _branch(self) -> None:
        one = self.chosen
        if one is None:
            return
        kept = archived(one, self._session.state.ledger)
        last = self.kept or (kept[-1] if kept else None)
        made = await self.attempt(self._services.fork(self._session.id, last.message.id if last else ""))
        if made is not None:
            self.dismiss(made)

    def action_export(self) -> None:
        self.run_worker(self._export(), group="verb", exit_on_error=False)

    async def _export(self) -> None:
        one = self.chosen
        if one is None:
            return
        lines = "".join(export_lines(self._session.id, one, self._session.state.ledger))
        path = self._services.workspace / f"ctxchat-archive-{self._session.id[:8]}-{one.id}.jsonl"
        written = await self.attempt(asyncio.to_thread(_write, path, lines))
        if written is not None:
            self.notify(f"Written to {clean(str(written))}", markup=False)


def _write(path: Path, text: str) -> Path:
    """Write a new file that only its owner can read. Raises CtxchatError where there is one already, or no room."""
    try:
        with path.open("x", encoding="utf-8", errors="replace") as file:
            path.chmod(0o600)
            file.write(text)
    except FileExistsError:
        raise CtxchatError(f"{path} is there already.", "Move it away first.") from None
    except OSError as problem:
        raise CtxchatError(f"{path}: {problem.strerror or problem}") from None
    return path


def _without_summary(one: Pass) -> str:
    if one.change is None:
        return clean(one.detail) or f"This compaction is {one.standing}: what it put away is in the view."
    return "This compaction left no summary: it dropped or shortened messages, which are under Messages as they were."


def _nested_words(change: Change) -> str:
    messages = change.record.folded_messages if change.record else 0
    return f"compaction of {clock(change.at)}, {count(messages, 'message')}: enter opens it"
