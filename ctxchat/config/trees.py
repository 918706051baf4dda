"""Plain nested tables, as TOML gives them: laid over each other, looked into, cut. Trees in, trees out."""

from __future__ import annotations

from typing import Any

from ctxchat.config.problems import KeyPath

Tree = dict[str, Any]


def overlay(below: Tree, above: Tree) -> Tree:
    """Both trees in one; what is above wins, table by table."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def without(tree: Tree, path: KeyPath) -> Tree:
    """The tree without one place; an element of an array goes whole. Unchanged when the place is not there."""
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
    """What stands at a place of a tree of tables; None when nothing does."""
    for part in path:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def nested(path: KeyPath, value: Any) -> Tree:
    """A tree with one value in it."""
    for part in reversed(path):
        value = {part: value}
    return value
