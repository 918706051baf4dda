"""Settings trees laid over each other, and what of one needs a trusted folder. Trees in, trees out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from ctxchat.config.options import facts, members, shape
from ctxchat.config.problems import KeyPath, key_text
from ctxchat.config.schema import Settings, Table
from ctxchat.config.trees import Tree, get, nested, overlay


def merge(below: Tree, above: Tree) -> Tree:
    """Both in one: what is above wins, and is added where the schema says `append`."""
    merged = overlay(below, above)
    for path in _appending():
        lower, upper = get(below, path), get(above, path)
        if lower and upper:
            merged = overlay(merged, nested(path, [*lower, *upper]))
    return merged


def leaves(tree: Tree) -> Iterator[tuple[KeyPath, Any]]:
    """Every option of a right tree that is given, with its value; an array of tables is one value."""
    return _leaves(tree, Settings, ())


def split_trust(tree: Tree) -> tuple[Tree, tuple[str, ...]]:
    """What of a tree counts anywhere, and the dotted keys of what needs a trusted folder."""
    held: list[str] = []
    return _harmless(tree, Settings, (), held), tuple(held)


@cache
def _appending() -> tuple[KeyPath, ...]:
    return tuple(_append_paths(Settings, ()))


def _append_paths(table: type[Table], at: KeyPath) -> Iterator[KeyPath]:
    for name, field in members(table).items():
        if facts(field.type).append:
            yield (*at, name)
        elif shape(field.type).kind == "table" and shape(field.type).item is not table:
            yield from _append_paths(shape(field.type).item, (*at, name))


def _leaves(tree: Tree, tp: Any, at: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    kind = shape(tp)
    for name, value in tree.items():
        inner = members(kind.item)[name].type if kind.kind == "table" else kind.item
        if shape(inner).kind in ("table", "named"):
            yield from _leaves(value, inner, (*at, name))
        else:
            yield (*at, name), value


def _harmless(tree: Tree, table: type[Table], at: KeyPath, held: list[str]) -> Tree:
    kept: Tree = {}
    for name, value in tree.items():
        tp = members(table)[name].type
        if facts(tp).trust:
            held.append(key_text((*at, name)))
        elif shape(tp).kind == "table":
            kept[name] = _harmless(value, shape(tp).item, (*at, name), held)
        else:
            kept[name] = value
    return kept
