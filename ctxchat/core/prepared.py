"""A summary that was made before a compaction needed it, as the journal keeps it: it outlives a restart. Knows no model."""

from __future__ import annotations

import msgspec

from ctxchat.core.ledger import Edit, Ledger
from ctxchat.core.notes import CONTEXT_NOTE


class Prepared(msgspec.Struct, frozen=True, tag="prepared", omit_defaults=True):
    """A summary made ahead. `covers` are the groups it was made of, the earlier summary's included; `changes` the changes that
    bore on it; `freed` what the gauge would lose by the compaction; `cost_usd` what it cost to make, booked already."""

    covers: tuple[str, ...]
    changes: tuple[str, ...]
    text: str
    freed: int
    cost_usd: float = 0.0

    def is_current(self, ledger: Ledger) -> bool:
        """True while nothing it was made of has changed since."""
        if bearing(ledger) != self.changes or not all(map(ledger.holds, self.covers)):
            return False
        return ledger.current.isdisjoint(self.covers) and ledger.pinned.isdisjoint(self.covers)


def bearing(ledger: Ledger) -> tuple[str, ...]:
    """Ids of the changes that bear on a summary made of the record: all but compactions that only made messages shorter, and took
    out notes of ours that no longer hold."""

    def bears(edit: Edit) -> bool:
        ours = all(ledger.group(name).source.startswith(CONTEXT_NOTE) for name in edit.covers)
        return edit.kind != "shrink" and not (edit.kind == "drop" and ours)

    return tuple(c.id for c in ledger.changes if c.kind != "compaction" or any(map(bears, c.edits)))
