"""The value that describes a prefix break: where a request does not begin as the one before did, and what that costs. Knows no
view and no model."""

from __future__ import annotations

import msgspec

UNKNOWN_PLACE = -1
"""The `place` of a break whose message is unknown, since another process sent the request before."""


class PrefixBreak(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a request first differs from the one before, and why.

    `place` is the index of the first message that differs, the tools being 0; `message` is its id, empty where it is not in the
    record. `kept` is our token estimate before it, `lost` that of what follows and had been sent before: a server has to read it
    anew. `cause` names what changed on our side, in words; it is empty where nothing did, which is a fault of this program.
    `thoughts` is the number of replies whose reasoning no longer fits the messages before it.
    """

    place: int
    cause: str = ""
    message: str = ""
    kept: int = 0
    lost: int = 0
    thoughts: int = 0
