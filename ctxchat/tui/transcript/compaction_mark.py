"""The ruled line of a compaction in the transcript: what it freed and kept, with its verbs."""

from __future__ import annotations

from textual.content import Content
from textual.message import Message

from ctxchat.core.ledger import Change
from ctxchat.core.record import CompactionRecord
from ctxchat.core.words import count
from ctxchat.tui.reading.history import folded_messages
from ctxchat.tui.reading.text import clock, short
from ctxchat.tui.transcript.block import INDENT, Block
from ctxchat.tui.transcript.lines import DrawnLine, packed, target


class CompactionMark(Block):
    """A ruled line where a compaction was made, with what can be done about it."""

    above = below = 1
    yields = True
    keys = {"v": "view", "enter": "view", "u": "undo", "b": "branch", "r": "re-insert"}

    class Chosen(Message):
        """A person wants to view, undo or branch from a compaction, or have what it lost."""

        def __init__(self, change: Change, what: str) -> None:
            super().__init__()
            self.change, self.what = change, what

    def __init__(self, change: Change, facts_back: bool = False) -> None:
        self._change, self._facts_back = change, facts_back

    def draw(self, width: int) -> list[DrawnLine]:
        """Rule, figures, and the words to choose from; as many lines as they need where one is too narrow."""
        lines = self._lines(max(1, width - 1))
        return [DrawnLine(line.stylize_before("$text-muted"), INDENT) for line in lines]

    def _lines(self, width: int) -> list[Content]:
        figures = [Content.styled(words, "$text") for words in self._figures(self._change.record, wide=width >= 30)]
        verbs = [self._verb(what, words) for what, words in self._verbs()]
        rule = Content.styled("──── " if width >= 30 else "─ ", "$rule")
        one = rule.append(Content("  ").join(figures)).append("   ").append(Content("   ").join(verbs)).append(" ")
        at = Content.styled(clock(self._change.at), "$text-muted")
        if one.cell_length + at.cell_length + 4 <= width:
            fill = Content.styled("─" * (width - one.cell_length - at.cell_length - 1) + " ", "$rule")
            return [one.append(fill).append(at)]
        indent = Content("     " if width >= 30 else " ")
        first, *more = packed(figures, width - rule.cell_length, "  ")
        head = rule.append(first).append(" ").truncate(width, ellipsis=True)
        head = head.append(Content.styled("─" * max(0, width - head.cell_length), "$rule"))
        more += packed(verbs, width - indent.cell_length, "   " if width >= 60 else "  ")
        return [head, *(indent.append(line).truncate(width, ellipsis=True) for line in more)]

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
            if record.missed and wide:
                words.append("above the target")
        return words

    def _verbs(self) -> list[tuple[str, str]]:
        """What can be done, and how that reads."""
        lost = len(self._change.record.lost) if self._change.record else 0
        verbs = [("view", "view"), ("undo", "undo"), ("branch", "branch")]
        return [*verbs, ("re-insert", f"re-insert {lost}")] if lost and not self._facts_back else verbs

    def _verb(self, what: str, words: str) -> Content:
        return target(Content.styled(words, "$text-accent").append(Content.styled(f" {what[0]}", "$text-muted")), what)

    def press(self, what: str) -> Message | None:
        return self.Chosen(self._change, what) if what in dict(self._verbs()) else None
