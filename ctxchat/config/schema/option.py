"""Describes an option of the settings: range, unit, help and effect, the source of its names, and where it counts."""

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
"""When a saved edit comes into force in a running program."""

Rewrites = Literal["", "messages", "all"]
"""The part of a running conversation that an edit changes in later requests, so that the provider's cache no longer holds it:
nothing, the messages, or instructions and tools as well."""

NOW: Counts = "at once"

PROVIDERS = ("skills", "workspace", "identity")
"""The context providers that come with the program, in their order."""


SHOWN_STRATEGIES = ("pipeline", "summarize", "truncate")
"""The strategies that the documentation of settings names. Others are accepted too; they are meant for programs that use the
library."""


def own_names(names: Names | None) -> tuple[str, ...]:
    """The names of a list that come with the program; plug-ins add to them. Empty for tools, which only the agent knows."""
    if names == "strategies":
        from ctxchat.core.strategies.builtin import builtin_strategies  # only where a setting names one
        from ctxchat.core.strategies.planning import PlanOptions

        return tuple(builtin_strategies(PlanOptions()))
    return PROVIDERS if names == "providers" else ()


class Facts(msgspec.Struct, frozen=True):
    """The description of an option in the schema, besides its type.

    `effect` says what a higher or lower value does. With `trust`, a project's file can set it in a trusted folder only; with
    `own`, not at all. With `append`, layers add to it instead of replacing it. `names` is the list its names come from, to which
    plug-ins add. `partial` marks a free table that may hold any options of that table. `counts` says when an edit comes into
    force, and `rewrites` what of a running conversation it changes in later requests.
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
    """The annotation of an option: its `Facts`, and its lowest and highest value."""
    facts = Facts(help, unit, effect, trust, own, append, names, partial, counts, rewrites)
    limits: dict[str, Any] = {k: v for k, v in (("ge", ge), ("le", le)) if v is not None}
    return Meta(description=help, extra={"facts": facts}, **limits)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all tables of the settings have in common."""
