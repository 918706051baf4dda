"""What the assistant decided: words, or calls with a few thoughts about them. A value."""

from __future__ import annotations

import msgspec


class Wanted(msgspec.Struct, frozen=True):
    """A call to make."""

    name: str
    arguments: dict[str, object]


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """`text` is the answer, or empty while there are `wanted` calls; `thought` says what is looked for and why."""

    text: str = ""
    wanted: tuple[Wanted, ...] = ()
    thought: str = ""


def wanted(*calls: tuple[str, dict[str, object]] | None) -> tuple[Wanted, ...]:
    """Calls without those that cannot be made, and without doubles."""
    made: list[Wanted] = []
    for call in calls:
        if call and (one := Wanted(*call)) not in made:
            made.append(one)
    return tuple(made)
