"""The step that takes whole groups out of the view."""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.ledger import Edit, Entry
from ctxchat.core.strategies.base import Step
from ctxchat.core.strategies.planning import Basis


def drop_step(name: str, basis: Basis, entries: Sequence[Entry]) -> Step | None:
    """One edit that shows nothing of these entries; those the view does not show anyway are left alone."""
    shown = [e for e in entries if basis.weight(e)]
    if not shown:
        return None
    names = {name for e in shown for name in e.covers}
    covers = tuple(g.id for g in basis.ledger.groups if g.id in names)
    freed = sum(basis.weight(e) for e in shown)
    return Step(name, freed, len(shown), edits=(Edit(kind="drop", covers=covers),))
