"""Helpers that the modules of `facts` share: paths, plain text, questions, and limits for matches."""

from __future__ import annotations

import re

from ctxchat.core.expressions import expression
from ctxchat.core.record import FactKind, Speaker

At = tuple[int, Speaker, int]
"""Where a fact was found: the number of the message, who brought it up, the turn."""

FILES: frozenset[FactKind] = frozenset({"changed", "read", "path"})
"""The kinds of facts whose key is the path of a file."""


def name_in(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def plain(text: str) -> str:
    """The text on one line, with single spaces."""
    return " ".join(text.split())


_ASKED = expression(
    r"^\W*(?:(?:(?:where|when|why)|(?:which|what|how|who)(?:\s+\w+)?)\s+(?:is|are|was|were|did|do|does|have|has|should|would|will)\b"
    r"|(?:did|do|does|have|has|had|is|are|was|were|should|shall|can|could|would|will)\s+(?:we|you|they|i)\b)"
    r"|\b(?:remind me|tell me|(?:i |i'm |i am )?wonder(?:ing)? (?:whether|if|what|which|why|how))\b",
    re.IGNORECASE,
)
"""The beginning of a question that may lack a question mark."""


def asks(sentence: str) -> bool:
    """True for a question, with a question mark or without; a question decides nothing."""
    return sentence.rstrip().endswith(("?", "？")) or bool(_ASKED.search(sentence))


def some(pattern: re.Pattern[str], text: str, most: int) -> list[re.Match[str]]:
    """At most `most` matches, the first and the last ones: the middle of a long text matters least."""
    matches = list(pattern.finditer(text))
    return matches if len(matches) <= most else [*matches[: most // 2], *matches[-(most - most // 2) :]]
