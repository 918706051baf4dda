"""Lists all options from the types of the schema, for checks, screens and documentation. Knows no file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta
from msgspec.structs import FieldInfo, fields

from ctxchat.config.schema import Settings, Table, own_names
from ctxchat.config.schema.option import NOW, SHOWN_STRATEGIES, Counts, Facts


class Shape(msgspec.Struct, frozen=True):
    """The structure of a field. `table` has fixed options (the Table class `item`); `named` has an `item` for each name, of
    `words` only if there are any; `array` is a list of tables `item`; `leaf` is one value."""

    kind: Literal["table", "named", "array", "leaf"]
    item: Any = None
    words: tuple[str, ...] = ()


class Option(msgspec.Struct, frozen=True):
    """One option. `*` in the path stands for a name of the person's choice. `default` is None for no value; a `required` option
    must be set."""

    path: tuple[str, ...]
    type: Any
    default: Any
    facts: Facts
    required: bool = False

    @property
    def key(self) -> str:
        """The dotted key: `context.keep_recent`, `models.*.window`."""
        return ".".join(self.path)

    @property
    def allowed(self) -> str:
        """The values it can have, in words: `a whole number from 1 to 10000`."""
        own = own_names(self.facts.names)
        if not own:
            return allowed(self.type)
        shown, more = own, "one of"
        if self.facts.names == "strategies":
            shown, more = SHOWN_STRATEGIES, "another of the library or of"
        words = _either([*(f'"{word}"' for word in shown), f"{more} a plug-in"])
        return words if bare(self.type) is str else f"a list of {words}"


def facts(tp: Any) -> Facts:
    """The `Facts` in the outermost annotation of a type."""
    facts_of_type = Facts()
    for meta in get_args(tp)[1:] if get_origin(tp) is Annotated else ():
        if isinstance(meta, Meta) and meta.extra:
            facts_of_type = meta.extra["facts"]
    return facts_of_type


@cache
def shape(tp: Any) -> Shape:
    """The structure of a type of the schema."""
    if partial := facts(tp).partial:
        return Shape("table", partial)
    tp = bare(tp)
    if isinstance(tp, type) and issubclass(tp, Table):
        return Shape("table", tp)
    args = get_args(tp)
    if get_origin(tp) is dict:
        words = tuple(get_args(args[0])) if get_origin(args[0]) is Literal else ()
        if words or shape(args[1]).kind == "table":
            return Shape("named", args[1], words)
    if get_origin(tp) is tuple and shape(args[0]).kind == "table":
        return Shape("array", args[0])
    return Shape("leaf", tp)


def bare(tp: Any) -> Any:
    """The type without annotations and without `or None`."""
    while get_origin(tp) is Annotated:
        tp = get_args(tp)[0]
    if get_origin(tp) in (Union, UnionType):
        rest = [a for a in get_args(tp) if a is not NoneType]
        if len(rest) == 1:
            return bare(rest[0])
    return tp


@cache
def members(table: type[Table]) -> dict[str, FieldInfo]:
    """The fields of a table by their name in TOML."""
    return {field.encode_name: field for field in fields(table)}


@cache
def options() -> tuple[Option, ...]:
    """Every option, in the order of the schema; hooks and other lists of tables with their parts as `hooks.*.event`."""
    return tuple(_walk((), Settings, False))


def find_option(path: tuple[str | int, ...]) -> Option | None:
    """The option at a path of a settings tree, None where there is none."""
    return next((o for o in options() if _matches(o.path, path)), None)


def allowed(tp: Any) -> str:
    """The values that a type allows, in words."""
    limits = [m for m in get_args(tp)[1:] if isinstance(m, Meta)] if get_origin(tp) is Annotated else []
    low = next((m.ge for m in limits if m.ge is not None), None)
    high = next((m.le for m in limits if m.le is not None), None)
    while get_origin(tp) is Annotated:
        tp = get_args(tp)[0]
    example = next((m.examples[0] for m in limits if m.examples), None)
    if tp is str and example:
        return f'text such as "{example}"'
    if tp is int or tp is float:
        return ("a whole number" if tp is int else "a number") + _range(low, high)
    if get_origin(tp) is Literal:
        return _either([f'"{word}"' for word in get_args(tp)])
    if get_origin(tp) in (Union, UnionType):
        return _either([allowed(a) for a in get_args(tp) if a is not NoneType])
    if get_origin(tp) is tuple:
        return "a list of tables" if shape(tp).kind == "array" else f"a list of {allowed(get_args(tp)[0])}"
    if get_origin(tp) is dict or (isinstance(tp, type) and issubclass(tp, Table)):
        return "a table"
    return {bool: "true or false", str: "text"}.get(tp, "any value")


def _walk(path: tuple[str, ...], table: type[Table], trust: bool, counts: Counts = NOW) -> Iterator[Option]:
    """All options in a table of the schema and in its inner tables. `trust` and `counts` are inherited from the tables around."""
    for name, field in members(table).items():
        inherited = facts(field.type)
        inherited = msgspec.structs.replace(
            inherited, trust=inherited.trust or trust, counts=inherited.counts if counts == NOW else counts
        )
        kind = shape(field.type)
        here = (*path, name)
        inner = kind.item if kind.kind in ("named", "array") else None
        if kind.kind == "table" and not inherited.partial and kind.item is not table:
            yield from _walk(here, kind.item, inherited.trust, inherited.counts)
        elif inner is not None and shape(inner).kind == "table" and shape(inner).item is not table:
            yield from _walk((*here, "*"), shape(inner).item, inherited.trust, inherited.counts)
        else:
            default = None if field.default is NODEFAULT else field.default
            if field.default_factory is not NODEFAULT:
                default = field.default_factory()
            if kind.kind == "named":
                yield Option((*here, "*"), kind.item, None, inherited)
            else:
                yield Option(here, field.type, default, inherited, field.required)


def _matches(pattern: tuple[str, ...], path: tuple[str | int, ...]) -> bool:
    return len(pattern) == len(path) and all(p in ("*", q) for p, q in zip(pattern, path, strict=True))


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}"
    return f" from {low:,}" if low is not None else ""


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
