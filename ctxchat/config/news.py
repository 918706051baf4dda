"""What an edit of the settings did, in words for a person: `compression_trigger 0.75 → 0.8`. Values in, sentences out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ctxchat.config.effective import Loaded, changes
from ctxchat.config.option_table import find_option
from ctxchat.config.schema import Settings
from ctxchat.config.schema.option import NOW
from ctxchat.config.toml_positions import literal, parse_key

MAX_VALUE_CHARS = 24
"""Characters a value may take in such a sentence."""


class News(msgspec.Struct, frozen=True):
    """What changed: what counts `now`, and `later` what does with the next session or start (which is said)."""

    now: tuple[str, ...] = ()
    later: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.now or self.later)

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it, a line each."""
        return (*self.now, *self.later)


def compare_settings(before: Loaded, after: Loaded) -> News:
    """The difference between two readings."""
    now: list[str] = []
    later: list[str] = []
    for key, was, is_ in changes(before.settings, after.settings):
        if key.startswith("keys."):
            continue  # what came of the wishes is told below
        line = (
            _come_or_gone(key, before.settings, after.settings)
            or f"{key.removeprefix('context.')} {_describe_change(was, is_)}"
        )
        if (counts := _counts(key)) == NOW:
            now.append(line)
        else:
            later.append(f"{line}, {counts}")
    old, new = before.keys.keys, after.keys.keys
    now += [
        f"keys.{name} {_describe_change(list(old[name]), list(new[name]))}" for name in new if old[name] != new[name]
    ]
    return News(tuple(dict.fromkeys(now)), tuple(dict.fromkeys(later)))


def _come_or_gone(key: str, before: Settings, after: Settings) -> str:
    """One line for an agent, a server or a model that is new or no longer there; empty for a change in one that stays."""
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
    if _tables(was) or _tables(is_):
        old, new = (_hook_names(side) for side in (was, is_))
        if len(old) != len(new) or old == new:
            return f"{len(old)} → {len(new)}" if len(old) != len(new) else "edited"
        return f"{', '.join(sorted(set(old) - set(new)))} → {', '.join(sorted(set(new) - set(old)))}"
    return f"{_short(was)} → {_short(is_)}"


def _tables(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(v, dict) for v in value)


def _hook_names(value: Any) -> list[str]:
    """Hooks by name, or by what they do and when."""
    return list(_names(value)) if isinstance(value, list | tuple) else []


def _names(value: Iterable[Any]) -> Iterator[str]:
    for each in value:
        yield each.get("name") or f"{each.get('action')} at {each.get('event')}"


def _short(value: object) -> str:
    if value is None or value == []:
        return "–"
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) and value else literal(value)
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
