"""Regular expressions that are compiled only when they are first used.

The program has hundreds, most of them for rare cases (a refusal, a compaction, the built-in assistant); to compile all of them
would take a quarter of the time of all imports at the start.
"""

from __future__ import annotations

import re
from typing import Any, cast


def expression(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, but compiles at the first use, and raises for a bad pattern only then. Use its methods; functions of
    `re` do not accept it in place of a pattern."""
    return cast("re.Pattern[str]", _Expression(pattern, flags))


class _Expression:
    """Has the methods of `re.Pattern`, each of which is looked up once and then kept as an attribute."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._compiled: re.Pattern[str] | None = None
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self.flags)
        method = getattr(self._compiled, name)
        setattr(self, name, method)  # so that this function is not called for it again
        return method
