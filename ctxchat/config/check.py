"""Checks a tree of settings against the schema: unknown keys, invalid and missing values. Reads no file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, get_args

import msgspec

from ctxchat.config.option_table import Shape, allowed, facts, members, shape
from ctxchat.config.problems import ConfigFault, KeyPath, display_value, nearest
from ctxchat.config.schema import HookSettings, Settings, Table, own_names
from ctxchat.config.schema.option import Names

KnownNames = Callable[[str], Collection[str]]
"""A function that gives the names which plug-ins add to a list (`strategies`, `providers`, `transforms`, `tools`). Called only
when a name is not one of ctxchat's own."""


MAX_LISTED_NAMES = 15
"""The longest list of valid names that a problem repeats."""


class _Invalid(Exception):
    """The value is invalid and is left out; its fault is recorded."""


def check_settings(tree: dict[str, Any], known: KnownNames) -> tuple[dict[str, Any], list[ConfigFault]]:
    """The valid part of a settings tree, in plain values, and the faults of the rest."""
    checker = _Checker(known)
    return checker.table(tree, Settings, ()), checker.faults


class _Checker:
    """Checks one tree and collects `faults`."""

    def __init__(self, known: KnownNames) -> None:
        self.faults: list[ConfigFault] = []
        self._known = known

    def _fault(self, at: KeyPath, what: str, allowed: str = "", nearest: str = "") -> _Invalid:
        """Record a fault. Raise the result where the value is to be left out."""
        self.faults.append(ConfigFault(at, what, allowed, nearest))
        return _Invalid()

    def table(self, tree: Any, table: type[Table], at: KeyPath) -> dict[str, Any]:
        """The valid values of a table, with faults recorded for all others. Raises `_Invalid` where it is no table or lacks a
        required value."""
        if not isinstance(tree, dict):
            raise self._fault(at, f"is {display_value(tree)}", "must be a table")
        fields = members(table)
        clean: dict[str, Any] = {}
        for name, value in tree.items():
            if name not in fields:
                self._fault((*at, name), "is unknown", "", nearest(name, fields) or _option_in_table(name, table))
                continue
            try:
                clean[name] = self._checked_value(value, fields[name].type, (*at, name))
            except _Invalid:
                continue
        required = [name for name, field in fields.items() if field.required]
        for name in required:
            if name not in tree:
                self._fault((*at, name), "is missing", allowed(fields[name].type))
        if any(name not in clean for name in required):
            raise _Invalid
        return clean

    def _checked_value(self, value: Any, tp: Any, at: KeyPath) -> Any:
        """The valid value of a type. Raises `_Invalid`, like all methods here, after recording the fault."""
        kind = shape(tp)
        match kind.kind:
            case "table":
                return self.table(value, kind.item, at)
            case "named":
                return self._check_table(value, kind, at)
            case "array":
                return self._array(value, kind, at)
            case "leaf":
                return self._leaf(value, tp, at)

    def _check_table(self, value: Any, kind: Shape, at: KeyPath) -> dict[str, Any]:
        """The valid entries of a table with names of the person's own (models, agents), or with a fixed list of names."""
        if not isinstance(value, dict):
            raise self._fault(at, f"is {display_value(value)}", "must be a table")
        clean: dict[str, Any] = {}
        for name, inner in value.items():
            if kind.words and name not in kind.words:
                self._fault((*at, name), "is unknown", _one_of(kind.words), nearest(name, kind.words))
            elif (right := self._element(inner, kind.item, (*at, name))) is not None:
                clean[name] = right
        return clean

    def _array(self, value: Any, kind: Shape, at: KeyPath) -> list[Any]:
        """The valid items of a list of tables."""
        if not isinstance(value, list):
            raise self._fault(at, f"is {display_value(value)}", "must be a list of tables")
        items = [self._element(inner, kind.item, (*at, i)) for i, inner in enumerate(value)]
        return [item for item in items if item is not None]

    def _element(self, value: Any, tp: Any, at: KeyPath) -> Any:
        """An element of a list or table of tables if all of it is valid, else None: part of a hook could do what nobody asked
        for."""
        before = len(self.faults)
        try:
            right = self._checked_value(value, tp, at)
        except _Invalid:
            return None
        if shape(tp).item is HookSettings:
            self._check_hook(right, at)
        return right if len(self.faults) == before else None

    def _check_hook(self, hook: dict[str, Any], at: KeyPath) -> None:
        need = {"run": "command", "notify": "text", "inject": "text"}.get(hook["action"])
        if need and not hook.get(need, "").strip():
            self._fault((*at, need), f"is missing for the action {hook['action']}", "must be text")

    def _leaf(self, value: Any, tp: Any, at: KeyPath) -> Any:
        """The valid form of a plain value."""
        try:
            right = _as_lists(msgspec.to_builtins(msgspec.convert(value, tp)))
        except (msgspec.ValidationError, OverflowError, RecursionError, TypeError):
            raise self._fault(
                at, f"is {display_value(value)}", f"must be {allowed(tp)}", _near_word(value, tp)
            ) from None
        if names := facts(tp).names:
            self._check_names(right if isinstance(right, list) else [right], names, at)
        return right

    def _check_names(self, words: Collection[str], names: Names, at: KeyPath) -> None:
        """Raise `_Invalid` where a word is not among the names of its kind; records a fault for each."""
        own = own_names(names)
        foreign = [w for w in words if w and w not in own]
        if not foreign:
            return
        every = (*own, *self._known(names))
        wrong = [w for w in foreign if w not in every]
        # without a list of tools nothing can be checked: only the agent knows them
        if not wrong or (names == "tools" and not every):
            return
        right = f"one of {', '.join(every) or 'none'}"
        faults = [
            self._fault(at, f"{display_value(w)} is none of the {names}", right, nearest(w, every)) for w in wrong
        ]
        raise faults[0]


def _option_in_table(name: str, table: type[Table]) -> str:
    """The dotted key of an option of this name in a table below (`context.keep_recent`); empty where there is none."""
    inner = ((field, shape(member.type)) for field, member in members(table).items())
    return next((f"{f}.{name}" for f, kind in inner if kind.kind == "table" and name in members(kind.item)), "")


def _one_of(words: Collection[str]) -> str:
    """The valid words in a sentence, or where to read them when they are too many for a line."""
    if len(words) > MAX_LISTED_NAMES:
        return f"one of the {len(words)} names in the reference (`ctxchat config path` says where)"
    return f"one of {', '.join(words)}"


def _as_lists(value: Any) -> Any:
    """The value with lists in place of tuples, as TOML has them."""
    if isinstance(value, dict):
        return {k: _as_lists(v) for k, v in value.items()}
    return [_as_lists(v) for v in value] if isinstance(value, list | tuple) else value


def _near_word(value: Any, tp: Any) -> str:
    words = [w for w in _allowed_words(tp) if isinstance(w, str)]
    return nearest(value, words) if isinstance(value, str) and words else ""


def _allowed_words(tp: Any) -> list[Any]:
    args = get_args(tp)
    return [w for a in args for w in (_allowed_words(a) if get_args(a) else [a])]
