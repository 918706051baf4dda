"""Filters typed among the words of a query: who said it, which tool, when, which file. Pure; knows no database."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from ctxchat.core.errors import UsageError
from ctxchat.core.search import Scope

_FILTER = re.compile(r'(?<!\S)(who|tool|since|until|file):("[^"]*"|\S*)')
_WHO: dict[str, Literal["user", "assistant", "tool", "system"]] = {
    **dict.fromkeys(("me", "user", "you"), "user"),
    **dict.fromkeys(("agent", "assistant", "answers", "answer"), "assistant"),
    **dict.fromkeys(("tool", "tools", "result", "results"), "tool"),
    "system": "system",
}
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def narrowed(query: str, scope: Scope, now: datetime) -> tuple[str, Scope]:
    """The words of a query without the filters typed in it, and the scope with them: they go before what it said. One without a
    value leaves nothing out, since it may still be being typed. `now` is in the time zone that days are meant in. Raises
    UsageError for a value that is none."""
    for name, typed in _FILTER.findall(query):
        if value := typed.strip('"'):
            scope = msgspec.structs.replace(scope, **_field(name, value, now))
    return " ".join(_FILTER.sub(" ", query).split()) + " " * query[-1:].isspace(), scope


def _field(name: str, value: str, now: datetime) -> dict[str, str]:
    if name == "who":
        if value.lower() not in _WHO:
            raise UsageError(f"who:{value} is nobody.", "Give who:me, who:agent, who:tool or who:system.")
        return {"role": _WHO[value.lower()]}
    return {name: value if name in {"tool", "file"} else _time(name, value, now)}


def _time(name: str, value: str, now: datetime) -> str:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    ago = re.fullmatch(r"(\d{1,4})([hdw])", value)
    date = re.fullmatch(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", value)
    try:
        if ago:
            found = now - int(ago[1]) * _UNITS[ago[2]]
        elif value in {"today", "yesterday"}:
            found = today - timedelta(days=value == "yesterday")
        elif date:
            found = today.replace(year=int(date[1]), month=int(date[2] or 1), day=int(date[3] or 1))
        else:
            raise ValueError
    except (ValueError, OverflowError):
        raise UsageError(
            f"{name}:{value} is no time.", f"Give a day such as {name}:2026-11-01, or {name}:3d, 12h, 2w, today."
        ) from None
    return found.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
