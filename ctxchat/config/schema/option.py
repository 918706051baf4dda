"""How one option is described: type, range, unit, help and effect, where its words come from and where it counts."""

from typing import Any, Literal

import msgspec
from msgspec import Meta

Unit = Literal[
    "",
    "tokens",
    "US dollars",
    "messages",
    "share of the limit",
    "seconds",
    "turns",
    "rounds",
    "port",
    "megabytes",
    "copies",
    "results",
    "groups",
    "calls",
]
Names = Literal["strategies", "providers", "transforms", "tools"]
Counts = Literal["at once", "from the next session on", "from the next start on"]
"""When a saved edit comes into force in a program that runs."""

Rewrites = Literal["", "messages", "all"]
"""What of a conversation under way goes out in another form once an edit is in force, which a provider's cache pays for: nothing,
messages, or instructions and tools as well."""

NOW: Counts = "at once"

PROVIDERS = ("skills", "workspace", "identity")
"""The context providers that come with the program, in their order."""


SHOWN_STRATEGIES = ("pipeline", "summarize", "truncate")
"""Those that settings tell of. The others are taken too: for programs that use the library, and for who knows what they do."""


def own_names(names: Names | None) -> tuple[str, ...]:
    """The words of an open list that come with the program; plug-ins add to them. Tools are known to the agent only."""
    if names == "strategies":
        from ctxchat.core.strategies.builtin import builtin_strategies  # only where a setting names one
        from ctxchat.core.strategies.planning import PlanOptions

        return tuple(builtin_strategies(PlanOptions()))
    return PROVIDERS if names == "providers" else ()


class Facts(msgspec.Struct, frozen=True):
    """What the schema says about one option besides its type.

    `effect` says what more or less of it does. `trust`: in a project's file it counts in a trusted folder only. `own`: in no
    project's file at all.
    `append`: layers add to it instead of replacing it. `names`: the open list its words come from (plug-ins add to it).
    `partial`: a free table that holds any options of this one. `counts`: when an edit comes into force. `rewrites`: what was sent
    goes out otherwise then.
    """

    help: str = ""
    unit: Unit = ""
    effect: str = ""
    trust: bool = False
    own: bool = False
    append: bool = False
    names: Names | None = None
    partial: type["Table"] | None = None
    counts: Counts = NOW
    rewrites: Rewrites = ""


def opt(
    help: str,
    *,
    unit: Unit = "",
    effect: str = "",
    trust: bool = False,
    own: bool = False,
    append: bool = False,
    names: Names | None = None,
    partial: type["Table"] | None = None,
    counts: Counts = NOW,
    rewrites: Rewrites = "",
    ge: float | None = None,
    le: float | None = None,
) -> Meta:
    """The description of one option: its `Facts`, and the least and the most it may be."""
    facts = Facts(help, unit, effect, trust, own, append, names, partial, counts, rewrites)
    limits: dict[str, Any] = {k: v for k, v in (("ge", ge), ("le", le)) if v is not None}
    return Meta(description=help, extra={"facts": facts}, **limits)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all tables of the settings have in common."""
