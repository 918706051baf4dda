"""The gauge (how full the window is, by section) of a session that was just opened, until its messages have been counted: the
figures it was closed with, or else an estimate by the length of its texts.

Knows no model and no token counter.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Ledger
from ctxchat.core.sections import section_of

CHARS_A_TOKEN = 4
"""Characters per token, for a first guess."""


def stored_usage(empty: ContextUsage, state: SessionState, off: float) -> ContextUsage:
    """The gauge of a stored session: the total and the parts by section that it was closed with.

    A session that was imported or written by an older version knows only its total, which is divided by the length of the texts
    in each section. Where nothing was measured, the total is estimated by length, too. `empty` is the gauge of an empty view,
    `off` the tokens by which the total may be wrong.
    """
    used, parts = state.used, state.parts
    if not used or sum(parts.values()) != used:
        lengths = _lengths_of(state.ledger)
        if not used:
            used = sum(lengths.values()) // CHARS_A_TOKEN
            off = used / 2
        parts = _shared_out(used, lengths)
    if not used or empty.used:
        return empty
    free = max(0, empty.window - empty.reserved_output - used)
    tokens = {**parts, "free": free}
    sections = tuple(
        msgspec.structs.replace(s, tokens=tokens.get(s.name, s.tokens), estimated=s.name in tokens)
        for s in empty.sections
    )
    pressure = round(used / empty.limit, 4)
    band = round(min(0.5, off / used), 4)
    return msgspec.structs.replace(empty, used=used, estimated=True, pressure=pressure, sections=sections, band=band)


def _lengths_of(ledger: Ledger) -> Counter[str]:
    """The characters that a view would show, by section."""
    lengths = Counter[str]()
    for entry in ledger.live():
        for message in entry.group.messages if entry.group and entry.group.kind != "system" else ():
            lengths[section_of(message, entry)] += len(message.text) + sum(len(c.arguments) for c in message.calls)
    return lengths


def _shared_out(used: int, lengths: Counter[str]) -> dict[str, int]:
    """A total in tokens by section, in proportion to these lengths."""
    whole = sum(lengths.values())
    parts = {name: used * length // whole for name, length in lengths.items()} if whole else {}
    rest = max(parts, key=parts.__getitem__, default="assistant")
    return {**parts, rest: parts.get(rest, 0) + used - sum(parts.values())}
