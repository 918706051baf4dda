"""A break: where a request does not begin as the one before did, and what that costs. Knows no view and no model."""

from __future__ import annotations

import msgspec

UNKNOWN_PLACE = -1
"""Where nobody knows any more at which message a request began to differ: another process sent the one before."""


class PrefixBreak(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a request first differs from the one before, and why.

    `place` counts its messages, tools being 0; `message` is the id of the message there, empty for what is none of the record.
    `kept` are our tokens before it, `lost` those behind it that had been sent before: a server has to read them anew. `cause` is
    what of ours stands otherwise than before, in words; empty where nothing does, which is a fault. `thoughts` are the replies
    whose reasoning no longer fits what stands before it.
    """

    place: int
    cause: str = ""
    message: str = ""
    kept: int = 0
    lost: int = 0
    thoughts: int = 0
