"""The ruled line of a compaction in the transcript: what it freed and kept, with its verbs; and that of one that came to
nothing."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.manual_changes import put_back
from ctxchat.core.record import CompactionRecord
from ctxchat.core.words import count
from ctxchat.tui.reading.history import folded_messages
from ctxchat.tui.reading.text import clean, clock, short


class CompactionMark(Widget, can_focus=True):
    """A ruled line where a compaction was made, with what can be done about it."""

    BINDINGS = [
        Binding("v,enter", "choose('view')", "View", show=False),
        Binding("u", "choose('undo')", "Undo", show=False),
        Binding("b", "choose('branch')", "Branch", show=False),
        Binding("r", "choose('re-insert')", "Re-insert", show=False),
    ]

    class Chosen(Message):
        """A person wants to view, undo or branch from a compaction, or have what it lost."""

        def __init__(self, change: Change, what: str) -> None:
            super().__init__()
            self.change, self.what = change, what

    def __init__(self, change: Change, facts_back: bool = False) -> None:
        super().__init__(classes="mark")
        self._change, self._facts_back = change, facts_back

    def keep_up(self, ledger: Ledger) -> None:
        """Tell of the compaction as it is in force: some of what it put away, or lost, may be back."""
        change = next((c for c in ledger.compactions if c.id == self._change.id), self._change)
        back = change.id in put_back(ledger)
        if change is not self._change or back != self._facts_back:
            self._change, self._facts_back = change, back
            self.refresh(layout=True)

    def render(self) -> Content:
        """Rule, figures, and the words to choose from; as many lines as they need where one is too narrow."""
        width = self.size.width
        figures = [Content.styled(words, "$text") for words in self._figures(self._change.record, wide=width >= 30)]
        verbs = [self._verb(what, words) for what, words in self._verbs()]
        rule = Content.styled("──── " if width >= 30 else "─ ", "$rule")
        one = rule.append(Content("  ").join(figures)).append("   ").append(Content("   ").join(verbs)).append(" ")
        at = Content.styled(clock(self._change.at), "$text-muted")
        if one.cell_length + at.cell_length + 4 <= width:
            fill = Content.styled("─" * (width - one.cell_length - at.cell_length - 1) + " ", "$rule")
            return one.append(fill).append(at)
        indent = Content("     " if width >= 30 else " ")
        first, *more = _lines(figures, width - rule.cell_length, "  ")
        head = rule.append(first).append(" ").truncate(width, ellipsis=True)
        head = head.append(Content.styled("─" * max(0, width - head.cell_length), "$rule"))
        more += _lines(verbs, width - indent.cell_length, "   " if width >= 60 else "  ")
        return Content("\n").join([head, *(indent.append(line).truncate(width, ellipsis=True) for line in more)])

    def _figures(self, record: CompactionRecord | None, *, wide: bool) -> list[str]:
        folded = folded_messages(self._change, record)
        words = [f"{count(folded, 'message')} compacted" if wide else f"{folded:,} compacted"]
        if record:
            words.append(f"−{short(max(0, record.freed))}")
            if record.back.messages:
                words.append(f"{record.back.messages:,} put back")
            elif record.facts.found:
                of = f" of {count(record.facts.found, 'fact')}" if wide else f" of {record.facts.found}"
                back = f", {len(record.lost)} put back" if self._facts_back else ""
                words.append(f"kept {record.facts.kept}{of}{back}")
        return words

    def _verbs(self) -> list[tuple[str, str]]:
        """What can be done, and how that reads."""
        lost = len(self._change.record.lost) if self._change.record else 0
        verbs = [("view", "view"), ("undo", "undo"), ("branch", "branch")]
        return [*verbs, ("re-insert", f"re-insert {lost}")] if lost and not self._facts_back else verbs

    def _verb(self, what: str, words: str) -> Content:
        return Content.styled(words, "$text-accent").append(Content.styled(f" {what[0]}", "$text-muted"))

    def on_click(self, event: Click) -> None:
        """A click on one of the words."""
        line = self.render().plain.split("\n")
        row = line[event.y] if event.y < len(line) else ""
        for what, words in self._verbs():
            start = row.find(f"{words} {what[0]}")
            if start >= 0 and start <= event.x < start + len(words) + 2:
                event.stop()
                self.action_choose(what)

    def action_choose(self, what: str) -> None:
        if what in dict(self._verbs()):
            self.post_message(self.Chosen(self._change, what))


def _lines(pieces: Sequence[Content], width: int, gap: str) -> list[Content]:
    """The pieces in lines of at most `width` cells, each whole."""
    lines: list[Content] = []
    for piece in pieces:
        if lines and lines[-1].cell_length + len(gap) + piece.cell_length <= width:
            lines[-1] = lines[-1].append(gap).append(piece)
        else:
            lines.append(piece)
    return lines


class PassLine(Static):
    """How a pass that is not in the record as a change ended (refused, failed, nothing to free)."""

    def __init__(self, outcome: str, detail: str) -> None:
        sign = {"failed": "✗", "rejected": "!"}.get(outcome, "·")
        self.detail = detail
        super().__init__(Content(f"{sign} {clean(detail) or outcome}"), markup=False, classes=f"notice -pass-{outcome}")
