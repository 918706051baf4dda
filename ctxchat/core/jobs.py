"""A background command as everybody outside the tools sees it."""

from __future__ import annotations

import msgspec


class JobRow(msgspec.Struct, frozen=True):
    """`state` in words, `seconds` it has run or ran, `bytes` of output so far, which lies in `file`. `moved` names what it
    put where it could run later, which was taken away when it ended; `goes_on`: it is let go when its session is closed."""

    id: str
    command: str
    state: str
    running: bool
    seconds: float
    bytes: int
    file: str
    moved: str = ""
    goes_on: bool = False
