"""Whether each part of a settings tree is right: unknown keys, wrong values, missing ones. Values in, values and faults out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, get_args

import msgspec

from ctxchat.config.options import Shape, allowed, facts, members, shape
from ctxchat.config.problems import ConfigFault, KeyPath, nearest, shown
from ctxchat.config.schema import HookSettings, Settings, Table, own_names
from ctxchat.config.schema.option import Names

KnownNames = Callable[[str], Collection[str]]
"""The words of an open list (`strategies`, `providers`, `transforms`, `tools`) besides our own; asked only when needed."""


MOST_WORDS = 15
"""Names that are listed where one is unknown."""


class _Wrong(Exception):
    """The value cannot stay."""


def check(tree: dict[str, Any], known: KnownNames) -> tuple[dict[str, Any], list[ConfigFault]]:
    """The right part of a settings tree, in plain values, and everything that is wrong with the rest."""
    faults: list[ConfigFault] = []
    return _table(tree, Settings, (), faults, known), faults


def _table(tree: Any, table: type[Table], at: KeyPath, faults: list[ConfigFault], known: KnownNames) -> dict[str, Any]:
    if not isinstance(tree, dict):
        faults.append(ConfigFault(at, f"is {shown(tree)}", "must be a table"))
        raise _Wrong
    fields = members(table)
    clean: dict[str, Any] = {}
    for name, value in tree.items():
        if name not in fields:
            faults.append(ConfigFault((*at, name), "is unknown", "", nearest(name, fields) or _below(name, table)))
            continue
        try:
            clean[name] = _value(value, fields[name].type, (*at, name), faults, known)
        except _Wrong:
            continue
    if missing := [n for n, field in fields.items() if field.required and n not in tree]:
        faults.extend(ConfigFault((*at, name), "is missing", allowed(fields[name].type)) for name in missing)
    if any(field.required and n not in clean for n, field in fields.items()):
        raise _Wrong
    return clean


def _below(name: str, table: type[Table]) -> str:
    """Where an option of this name is, one table further down (`context.keep_recent`); empty where it is not."""
    inner = ((field, shape(member.type)) for field, member in members(table).items())
    return next((f"{f}.{name}" for f, kind in inner if kind.kind == "table" and name in members(kind.item)), "")


def _one_of(words: Collection[str]) -> str:
    """The right words, or where to read them when they are too many for a line."""
    if len(words) > MOST_WORDS:
        return f"one of the {len(words)} names in the reference (`ctxchat config path` says where)"
    return f"one of {', '.join(words)}"


def _value(value: Any, tp: Any, at: KeyPath, faults: list[ConfigFault], known: KnownNames) -> Any:
    kind = shape(tp)
    match kind.kind:
        case "table":
            return _table(value, kind.item, at, faults, known)
        case "named":
            return _named(value, kind, at, faults, known)
        case "array":
            return _array(value, kind, at, faults, known)
        case "leaf":
            return _leaf(value, tp, at, faults, known)


def _named(value: Any, kind: Shape, at: KeyPath, faults: list[ConfigFault], known: KnownNames) -> dict[str, Any]:
    if not isinstance(value, dict):
        faults.append(ConfigFault(at, f"is {shown(value)}", "must be a table"))
        raise _Wrong
    clean: dict[str, Any] = {}
    for name, inner in value.items():
        if kind.words and name not in kind.words:
            faults.append(ConfigFault((*at, name), "is unknown", _one_of(kind.words), nearest(name, kind.words)))
            continue
        if (right := _whole(inner, kind.item, (*at, name), faults, known)) is not None:
            clean[name] = right
    return clean


def _array(value: Any, kind: Shape, at: KeyPath, faults: list[ConfigFault], known: KnownNames) -> list[Any]:
    if not isinstance(value, list):
        faults.append(ConfigFault(at, f"is {shown(value)}", "must be a list of tables"))
        raise _Wrong
    items = [_whole(inner, kind.item, (*at, i), faults, known) for i, inner in enumerate(value)]
    return [item for item in items if item is not None]


def _whole(value: Any, tp: Any, at: KeyPath, faults: list[ConfigFault], known: KnownNames) -> Any:
    """The element if all of it is right, else None: half a hook would do something nobody asked for."""
    before = len(faults)
    try:
        right = _value(value, tp, at, faults, known)
    except _Wrong:
        return None
    if shape(tp).item is HookSettings:
        _check_hook(right, at, faults)
    return right if len(faults) == before else None


def _check_hook(hook: dict[str, Any], at: KeyPath, faults: list[ConfigFault]) -> None:
    need = {"run": "command", "notify": "text", "inject": "text"}.get(hook["action"])
    if need and not hook.get(need, "").strip():
        faults.append(ConfigFault((*at, need), f"is missing for the action {hook['action']}", "must be text"))


def _leaf(value: Any, tp: Any, at: KeyPath, faults: list[ConfigFault], known: KnownNames) -> Any:
    try:
        right = _plain(msgspec.to_builtins(msgspec.convert(value, tp)))
    except (msgspec.ValidationError, OverflowError, RecursionError, TypeError):
        faults.append(ConfigFault(at, f"is {shown(value)}", f"must be {allowed(tp)}", _near_word(value, tp)))
        raise _Wrong from None
    if names := facts(tp).names:
        _check_names(right if isinstance(right, list) else [right], names, at, faults, known)
    return right


def _plain(value: Any) -> Any:
    """Lists where msgspec leaves tuples, as TOML gives them."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _near_word(value: Any, tp: Any) -> str:
    words = [w for w in _words(tp) if isinstance(w, str)]
    return nearest(value, words) if isinstance(value, str) and words else ""


def _words(tp: Any) -> list[Any]:
    args = get_args(tp)
    return [w for a in args for w in (_words(a) if get_args(a) else [a])]


def _check_names(
    words: Collection[str], names: Names, at: KeyPath, faults: list[ConfigFault], known: KnownNames
) -> None:
    own = own_names(names)
    foreign = [w for w in words if w and w not in own]
    if not foreign:
        return
    every = (*own, *known(names))
    wrong = [w for w in foreign if w not in every]
    if not every and names == "tools":  # tools are known to the agent only
        return
    if wrong:
        near = nearest(wrong[0], every)
        faults.append(
            ConfigFault(at, f"{shown(wrong[0])} is none of the {names}", f"one of {', '.join(every) or 'none'}", near)
        )
        raise _Wrong
