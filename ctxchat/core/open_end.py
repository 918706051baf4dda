"""Where a conversation stopped, when its last turn did not come to its end. Pure."""

from __future__ import annotations

from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group

NOTHING_OPEN = "There is nothing to continue: the last reply is whole."


def open_end(ledger: Ledger) -> Group | None:
    """What such a turn left last: a half reply, a round nobody answered, a message without a reply. None where the last reply is
    whole, or nothing was ever said."""
    last = next((group for group in reversed(ledger.standing) if group.kind in {"user", "reply", "round"}), None)
    return None if last is None or (last.kind == "reply" and not last.first.interrupted) else last
