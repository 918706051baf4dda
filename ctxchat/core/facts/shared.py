"""What all that looks for facts has in common."""

from __future__ import annotations

import re

from ctxchat.core.expressions import expression
from ctxchat.core.record import FactKind, Speaker

At = tuple[int, Speaker, int]
"""Where a fact was met: the message's place, who brought it up, the turn."""


FILES: frozenset[FactKind] = frozenset({"changed", "read", "path"})
"""What can be said of one file."""


def name_in(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def plain(text: str) -> str:
    """Text in one line, single spaces."""
    return " ".join(text.split())


_ASKED = expression(
    r"^\W*(?:(?:(?:where|when|why)|(?:which|what|how|who)(?:\s+\w+)?)\s+(?:is|are|was|were|did|do|does|have|has|should|would|will)\b"
    r"|(?:did|do|does|have|has|had|is|are|was|were|should|shall|can|could|would|will)\s+(?:we|you|they|i)\b)"
    r"|\b(?:remind me|tell me|(?:i |i'm |i am )?wonder(?:ing)? (?:whether|if|what|which|why|how))\b",
    re.IGNORECASE,
)
"""How a question begins that ends with no sign of one."""


def asks(sentence: str) -> bool:
    """Something is asked, with a question mark or without: it settles nothing."""
    return sentence.rstrip().endswith(("?", "？")) or bool(_ASKED.search(sentence))


def some(pattern: re.Pattern[str], text: str, most: int) -> list[re.Match[str]]:
    """The first and the last matches: what stands in the middle of a long text matters least."""
    found = list(pattern.finditer(text))
    return found if len(found) <= most else [*found[: most // 2], *found[-(most - most // 2) :]]
