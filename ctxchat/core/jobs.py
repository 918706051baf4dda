"""The value that describes a background command (a job) to screens and to the agent; `tools.jobs` runs it."""

from __future__ import annotations

import msgspec


class JobRow(msgspec.Struct, frozen=True):
    """A background command and how it is doing.

    `state` is in words for a person. `seconds` is how long it has run so far, or ran. `bytes` is the size of its output, in the
    file `file`. `moved` is a line about files that it created at guarded places (`core.guarded`) and the folder they were moved
    to. `goes_on`: it keeps running after its session is closed.
    """

    id: str
    command: str
    state: str
    running: bool
    seconds: float
    bytes: int
    file: str
    moved: str = ""
    goes_on: bool = False
