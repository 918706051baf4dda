"""Regular expressions that are compiled when they are first used.

There are hundreds, most of them for what rarely happens (a refusal, a compaction, the built-in assistant); compiling all of them
would be a quarter of what the imports of a start cost.
"""

from __future__ import annotations

import re
from typing import Any, cast


def expression(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`; a pattern that cannot be compiled raises where it is first used. Not for the functions of `re`, which want
    a compiled one."""
    return cast("re.Pattern[str]", _Expression(pattern, flags))


class _Expression:
    def __init__(self, pattern: str, flags: int) -> None:
        self._compiled: re.Pattern[str] | None = None
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self.flags)
        found = getattr(self._compiled, name)
        setattr(self, name, found)  # from now on it is found without a detour
        return found
