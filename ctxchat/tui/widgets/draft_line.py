"""The line under the editor: what the message being written would do to the gauge, where it matters. Knows no session."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from ctxchat.core.figures import Figures
from ctxchat.tui.reading.figures_text import draft_words, starts_with_draft
from ctxchat.tui.unsent.draft import Along, Paste

WORTH_SAYING = 0.02
"""Share of the limit from which a draft gets a line of its own."""

OFFER = "tab, then f: send the paste as a file"
UNSEEN = "This model is shown no images: their names go instead."


class DraftLine(Static):
    """Empty for a message that hardly matters."""

    def __init__(self) -> None:
        super().__init__(id="draft-line", markup=False)

    def say(self, figures: Figures, along: Sequence[Along], *, unseen: bool) -> bool:
        """What there is to say; True where that is anything. `unseen`: images go along that the model is not shown."""
        whole = any(isinstance(each, Paste) and not each.as_file for each in along)
        offer = OFFER if whole and figures.used > figures.limit else ""
        words = "\n".join(filter(None, (UNSEEN if unseen else "", draft_line(figures), offer)))
        self.update(Content(words))
        return bool(words)


def draft_line(figures: Figures) -> str:
    """`this message +18k → 92 %, compaction would start`; empty where it hardly matters."""
    draft = figures.tokens("draft")
    worth = figures.over or draft >= figures.limit * WORTH_SAYING or starts_with_draft(figures)
    return draft_words(figures) if worth else ""
