"""Describes the changes of an edit of the settings for a person: `compression_trigger 0.75 → 0.8`. Reads no file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from ctxchat.config.effective import Loaded, changes
from ctxchat.config.option_table import find_option
from ctxchat.config.schema import Settings
from ctxchat.config.schema.option import NOW
from ctxchat.config.toml_positions import literal, parse_key

MAX_VALUE_CHARS = 24
"""Characters shown of a value."""


class News(msgspec.Struct, frozen=True):
    """The changes that count `now`, and those that count `later`: from the next session, start or compaction on, as each one
    says."""

    now: tuple[str, ...] = ()
    later: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.now or self.later)

    @property
    def lines(self) -> tuple[str, ...]:
        """All changes, one a line."""
        return (*self.now, *self.later)


WAITS = "with the next compaction"
"""When a change counts that was put off."""


def compare_settings(before: Loaded, after: Loaded, put_off: Collection[str] = ()) -> News:
    """The changes between two loaded settings. Those of the options with the keys `put_off` count with the next compaction."""
    now: list[str] = []
    later: list[str] = []
    for key, was, is_ in changes(before.settings, after.settings):
        if key.startswith("keys."):
            continue  # the keys in force are compared below
        line = (
            _added_or_removed(key, before.settings, after.settings)
            or f"{key.removeprefix('context.')} {_describe_change(was, is_)}"
        )
        if (counts := WAITS if key in put_off else _counts(key)) == NOW:
            now.append(line)
        else:
            later.append(f"{line}, {counts}")
    old, new = before.keys.keys, after.keys.keys
    now += [
        f"keys.{name} {_describe_change(list(old[name]), list(new[name]))}" for name in new if old[name] != new[name]
    ]
    return News(tuple(dict.fromkeys(now)), tuple(dict.fromkeys(later)))


def _added_or_removed(key: str, before: Settings, after: Settings) -> str:
    """A line for an agent, a server or a model that was added or removed; empty for a change within one."""
    table, *rest = parse_key(key)
    if table not in ("agents", "models", "mcp") or not rest:
        return ""
    was, is_ = (rest[0] in getattr(settings, table) for settings in (before, after))
    name = _short(rest[0])
    return "" if was and is_ else f"{table}.{name} is {'new' if is_ else 'gone'}"


def _counts(key: str) -> str:
    parts = parse_key(key)
    option = next((o for n in range(len(parts), 0, -1) if (o := find_option(parts[:n]))), None)
    return option.facts.counts if option else NOW


def _describe_change(was: object, is_: object) -> str:
    """The old and the new value of an option, in words."""
    if _tables(was) or _tables(is_):
        old, new = (_hook_names(side) for side in (was, is_))
        if len(old) != len(new) or old == new:
            return f"{len(old)} → {len(new)}" if len(old) != len(new) else "edited"
        return f"{', '.join(sorted(set(old) - set(new)))} → {', '.join(sorted(set(new) - set(old)))}"
    return f"{_short(was)} → {_short(is_)}"


def _tables(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(v, dict) for v in value)


def _hook_names(value: Any) -> list[str]:
    """The names of hooks, or for one without a name its action and event."""
    return list(_names(value)) if isinstance(value, list | tuple) else []


def _names(value: Iterable[Any]) -> Iterator[str]:
    for each in value:
        yield each.get("name") or f"{each.get('action')} at {each.get('event')}"


def _short(value: object) -> str:
    """A value as a short text for people."""
    if value is None or value == []:
        return "–"
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) and value else literal(value)
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
