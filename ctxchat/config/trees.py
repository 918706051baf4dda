"""Merges, reads and cuts trees of settings: nested tables of plain values, as TOML has them. Never changes a tree it is given."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

from ctxchat.config.option_table import facts, members, shape
from ctxchat.config.problems import KeyPath, key_text
from ctxchat.config.schema import Settings, Table


def merge(below: Tree, above: Tree) -> Tree:
    """Both trees in one: values of `above` replace those of `below`, or are appended where the schema says so."""
    merged = overlay(below, above)
    for path in _paths_with("append"):
        lower, upper = get(below, path), get(above, path)
        if lower and upper:
            merged = overlay(merged, nested(path, [*lower, *upper]))
    return merged


def leaves(tree: Tree) -> Iterator[tuple[KeyPath, Any]]:
    """The path and value of every option in a valid tree; an array of tables is one value."""
    return _leaves(tree, Settings, ())


def split_trust(tree: Tree) -> tuple[Tree, tuple[str, ...]]:
    """The part of a tree that counts in any folder, and the dotted keys of the rest, which needs a trusted folder."""
    held: list[str] = []
    return _harmless(tree, Settings, (), held), tuple(held)


def own_only(tree: Tree) -> tuple[KeyPath, ...]:
    """The paths in a valid tree that count in the person's own settings only."""
    return tuple(path for path in _paths_with("own") if get(tree, path) is not None)


@cache
def _paths_with(fact: Literal["append", "own"]) -> tuple[KeyPath, ...]:
    return tuple(_paths_below(Settings, (), fact))


def _paths_below(table: type[Table], at: KeyPath, fact: str) -> Iterator[KeyPath]:
    """The paths of the options below a table that have this property (`fact`, such as `trust`)."""
    for name, field in members(table).items():
        if getattr(facts(field.type), fact):
            yield (*at, name)
        elif shape(field.type).kind == "table" and shape(field.type).item is not table:
            yield from _paths_below(shape(field.type).item, (*at, name), fact)


def _leaves(tree: Tree, tp: Any, at: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """The plain values in a tree, each with its path."""
    kind = shape(tp)
    for name, value in tree.items():
        inner = members(kind.item)[name].type if kind.kind == "table" else kind.item
        if shape(inner).kind in ("table", "named"):
            yield from _leaves(value, inner, (*at, name))
        else:
            yield (*at, name), value


def _harmless(tree: Tree, table: type[Table], at: KeyPath, held: list[str], all_held: bool = False) -> Tree:
    """The part of a tree that needs no trust; the keys of the other part are added to `held`."""
    kept: Tree = {}
    for name, value in tree.items():
        tp = members(table)[name].type
        needs_trust = all_held or facts(tp).trust
        if shape(tp).kind == "table":
            kept[name] = _harmless(value, shape(tp).item, (*at, name), held, needs_trust)
        elif needs_trust:
            held.append(key_text((*at, name)))
        else:
            kept[name] = value
    return kept


Tree = dict[str, Any]


def overlay(below: Tree, above: Tree) -> Tree:
    """Both trees in one: tables are merged, any other value of `above` replaces that of `below`."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def without(tree: Tree, path: KeyPath) -> Tree:
    """The tree without the value at a path; of an array the whole element is removed. Unchanged where there is no such path."""
    if not path or path[0] not in tree:
        return tree
    key = str(path[0])
    value, rest = tree[key], path[1:]
    if rest and isinstance(value, dict):
        return {**tree, key: without(value, rest)}
    if rest and isinstance(value, list) and isinstance(rest[0], int):
        return {**tree, key: [v for i, v in enumerate(value) if i != rest[0]]}
    return {k: v for k, v in tree.items() if k != key}


def get(tree: Any, path: KeyPath) -> Any:
    """The value at a path through tables; None where there is none."""
    for part in path:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def nested(path: KeyPath, value: Any) -> Tree:
    """A tree with a single value, at a path."""
    for part in reversed(path):
        value = {part: value}
    return value
