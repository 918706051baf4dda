"""Converts JSON schemas of tools into one normal form that all model providers accept.

A schema is foreign data: any part of it may be invalid. Equal schemas always give equal results, so that the beginning of
requests stays the same for the providers' caches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

Schema = dict[str, Any]

MAX_DEPTH = 20
"""Levels of nesting that are kept; deeper schemas become empty ones, which allow anything."""

MAX_NODES = 2_000
"""Schemas within one tool's schema, after references are expanded; further ones become empty, which allows anything."""

MAX_KEY_LENGTH = 64
"""Longest name of an argument, in characters, that every provider accepts."""

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_ALIASES = {
    "int": "integer",
    "float": "number",
    "double": "number",
    "str": "string",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
    "map": "object",
}
"""Names of types from programming languages that people write instead of JSON's."""

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_OF_OBJECTS = ("properties", "required", "additionalProperties")
_LARGEST = 2**63
"""Larger limits are left out, since providers cannot read such numbers."""

_LARGEST_COUNT = 2**31 - 1
_PYTHON_ONLY = re.compile(r"\(\?(?![:=!]|<[=!])|\\[AZz]|[*+?}]\+")
"""Syntax of Python's regular expressions that JavaScript does not have."""

_PLAIN_KEY = re.compile(rf"[a-zA-Z0-9_.-]{{1,{MAX_KEY_LENGTH}}}")


class ToolSchema(msgspec.Struct, frozen=True):
    """A schema in the normal form, and the `choices` that it cannot express: sets of arguments, one of which must be given."""

    schema: Schema
    choices: tuple[tuple[str, ...], ...] = ()


def normal(schema: Mapping[str, Any]) -> ToolSchema:
    """A tool's schema in the normal form: an object at the root, no references, no `oneOf` or `allOf`, no alternatives at the
    root, arrays with `items`, known types only, and only existing arguments in `required`. Keywords that only restrict values may
    be dropped: the tool checks its arguments itself. A schema in this form is unchanged."""
    walk = _Walk(schema)
    whole = walk.node(schema, 0)
    branches = [branch for branch in _dicts(whole.get("anyOf")) if _object(branch)]
    properties = _properties(whole)
    for branch in branches:
        properties |= {name: one for name, one in _properties(branch).items() if name not in properties}
    needed = [_names(branch.get("required")) for branch in branches]
    everywhere = [name for name in needed[0] if all(name in names for names in needed)] if needed else []
    required = [n for n in dict.fromkeys((*_names(whole.get("required")), *everywhere)) if n in properties]
    root: Schema = {"type": "object", "properties": properties}
    if required:
        root["required"] = required
    if "additionalProperties" in whole and not branches:
        root["additionalProperties"] = whole["additionalProperties"]
    left = [tuple(name for name in names if name not in required and name in properties) for names in needed]
    choices = tuple(dict.fromkeys(left)) if len(left) > 1 and all(left) else ()
    return ToolSchema(root, choices if len(choices) > 1 else ())


def plain_keys(schema: Schema) -> tuple[Schema, dict[str, str]]:
    """The schema with names of arguments that providers accept, at every level (`$filter` becomes `_filter`), and the old name of
    each new one."""
    names = list(dict.fromkeys(_keys(schema)))
    odd = [name for name in names if not _PLAIN_KEY.fullmatch(name)]
    renamed: dict[str, str] = {}
    taken = set(names)
    for name in odd:
        plain = re.sub(r"[^a-zA-Z0-9_.-]+", "_", name)[:MAX_KEY_LENGTH] or "_"
        new, number = plain, 1
        while new in taken:
            number += 1
            new = f"{plain[: MAX_KEY_LENGTH - len(str(number)) - 1]}_{number}"
        taken.add(new)
        renamed[new] = name
    return (_with_keys(schema, {old: new for new, old in renamed.items()}), renamed) if renamed else (schema, {})


def restored_keys(arguments: object, renamed: Mapping[str, str], *schemas: Schema) -> object:
    """A call's arguments with the tool's own names for them, by `renamed` (old names by new ones).

    `schemas` are the alternative schemas of these arguments, with the new names. Keys that they do not name are free keys of the
    caller and stay; without any schema every new name is replaced."""
    known = {name for one in _open(schemas) for name in _properties(one)} or ({} if any(schemas) else renamed)
    if isinstance(arguments, dict):
        fields = cast("dict[str, object]", arguments)
        return {
            renamed.get(name, name) if name in known else name: restored_keys(value, renamed, *_below(schemas, name))
            for name, value in fields.items()
        }
    if isinstance(arguments, list):
        items = [_mapping(one["items"]) for one in _open(schemas) if "items" in one]
        return [restored_keys(value, renamed, *items) for value in cast("list[Any]", arguments)]
    return arguments


def _open(schemas: Iterable[Schema]) -> Iterator[Schema]:
    """The schemas and, after each, its alternatives."""
    for one in schemas:
        yield one
        yield from _open(_dicts(one.get("anyOf")))


def _below(schemas: Sequence[Schema], name: str) -> list[Schema]:
    """The alternative schemas for the value of an argument."""
    found = [_mapping(_properties(one)[name]) for one in _open(schemas) if name in _properties(one)]
    return found or [_mapping(one["additionalProperties"]) for one in _open(schemas) if "additionalProperties" in one]


class _Walk:
    """One conversion of a schema; `root` is where references are looked up."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_NODES

    def node(self, given: object, depth: int, inside: frozenset[str] = frozenset(), *, branch: bool = False) -> Schema:
        """The normal form of one schema within the tool's; empty where it is none. `inside` are the references that led here;
        `branch`: it is an alternative at the root, so the properties it requires may be defined there."""
        self._left -= 1
        node = _mapping(given)
        if not node or depth > MAX_DEPTH or self._left < 0:
            return {}
        while isinstance(place := node.get("$ref"), str):
            about = {k: v for k, v in node.items() if k != "$ref"}
            if place in inside:  # a recursive schema
                return self.node(about, depth, inside, branch=branch)
            inside |= {place}
            node = {**self._resolve(place), **about}
        return self._plain_node(node, depth, inside, free=branch or depth == 0)

    def _plain_node(self, node: Mapping[str, Any], depth: int, inside: frozenset[str], *, free: bool) -> Schema:
        """The normal form of a schema without references: its own keywords, merged with those of `allOf` and with its
        alternatives."""
        plain = _annotated(node) | _bounded(node) | self._typed(node, depth, inside, free=free)
        for part in _list(node.get("allOf")):
            plain = _both(plain, self.node(part, depth + 1, inside, branch=free))
        given = (branch for key in ("anyOf", "oneOf") for branch in _list(node.get(key)))
        branches = [self.node(branch, depth + 1, inside, branch=free) for branch in given]
        if branches and {} not in branches and "anyOf" not in plain:  # an empty alternative allows anything
            branches = _distinct(branches)
            plain = _both(plain, branches[0]) if len(branches) == 1 else {**plain, "anyOf": branches}
        return plain if free else _with_branches_alone(plain)

    def _typed(self, node: Mapping[str, Any], depth: int, inside: frozenset[str], *, free: bool) -> Schema:
        """The normal form of a schema without references and alternatives: its types, with the keywords of each."""
        kinds = _kinds(node)
        plain: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
        if "object" in kinds or (free and not kinds):
            plain |= self._fields(node, depth, inside, free=free)
        if "array" in kinds:
            plain["items"] = self._items(node, depth, inside)
        values = _list(node.get("enum")) or ([node["const"]] if "const" in node else [])
        if values := _distinct(v for v in values if v is not None or not kinds or "null" in kinds):
            plain["enum"] = values
            named = list(dict.fromkeys(map(_kind_of, values)))
            plain.setdefault("type", named[0] if len(named) == 1 else named)
            if "array" in named and not kinds:
                plain["items"] = {}
        return plain

    def _fields(self, node: Mapping[str, Any], depth: int, inside: frozenset[str], *, free: bool) -> Schema:
        """The normal form of an object's keywords. `free`: names may be required that are not among its properties."""
        named = _mapping(node.get("properties"))
        fields: Schema = {}
        if possible := {str(name): one for name, one in named.items() if one is not False}:
            fields["properties"] = {name: self.node(one, depth + 1, inside) for name, one in possible.items()}
        older = [name for name, one in named.items() if _mapping(one).get("required") is True]
        names = dict.fromkeys(
            (*_names(node.get("required")), *older)
        )  # the oldest drafts put `required: true` into the property
        if required := [n for n in names if n in _properties(fields) or (free and n not in named)]:
            fields["required"] = required
        more: object = node.get("additionalProperties")
        if patterns := [*_mapping(node.get("patternProperties")).values()]:  # for names that are not in `properties`
            more = _mapping(patterns[0]) or True if len(patterns) == 1 and more is False else True
        if isinstance(more, bool):
            fields["additionalProperties"] = more
        elif isinstance(more, dict):
            fields["additionalProperties"] = self.node(cast("object", more), depth + 1, inside)
        return fields

    def _items(self, node: Mapping[str, Any], depth: int, inside: frozenset[str]) -> Schema:
        """The schema of an array's items. Where the array defines them position by position, any of those schemas."""
        every = [node["items"]] if isinstance(node.get("items"), dict) else _list(node.get("items"))
        places = [*_list(node.get("prefixItems")), *every]
        kinds = _distinct([self.node(one, depth + 1, inside) for one in places])
        if not kinds or {} in kinds:
            return {}
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}

    def _resolve(self, place: str) -> Mapping[str, Any]:
        """The schema that a reference points to; empty where it points to nothing, or outside of this document."""
        found: object = self._root if place.startswith("#") else None
        for step in place.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            several = _list(found)
            found = several[int(name)] if name in map(str, range(len(several))) else _mapping(found).get(name)
        return _mapping(found)


def _annotated(node: Mapping[str, Any]) -> Schema:
    """The description, format, default and pattern of a schema, as far as they are valid."""
    plain: Schema = {k: _whole_text(v) for k in ("description", "format") if isinstance(v := node.get(k), str) and v}
    if isinstance(default := node.get("default"), str | int | float | bool) and _distinct([default]):
        plain["default"] = default
    if isinstance(pattern := node.get("pattern"), str) and _compiles(pattern):
        plain["pattern"] = pattern
    return plain


def _bounded(node: Mapping[str, Any]) -> Schema:
    """The limits of a schema, in the present form; older drafts have `exclusiveMinimum: true` beside `minimum`."""
    plain: Schema = {}
    for name in _NUMBERS:
        value = node.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST:
            plain[name] = value
    for name in ("Minimum", "Maximum"):
        if node.get(f"exclusive{name}") is True and name.lower() in plain:
            plain[f"exclusive{name}"] = plain.pop(name.lower())
    if plain.get("multipleOf", 1) <= 0:
        del plain["multipleOf"]
    for name in _COUNTS:
        if isinstance(value := node.get(name), int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT:
            plain[name] = value
    if node.get("uniqueItems") is True:
        plain["uniqueItems"] = True
    return plain


def _kinds(node: Mapping[str, Any]) -> list[str]:
    """The types that a schema allows, given or implied by its keywords."""
    given = node.get("type")
    named = [str(kind).lower() for kind in (_list(cast("object", given)) or [given])]
    kinds = [kind for kind in dict.fromkeys(_ALIASES.get(kind, kind) for kind in named) if kind in _TYPES]
    if not kinds and isinstance(node.get("properties"), dict):
        kinds = ["object"]
    elif not kinds and (isinstance(node.get("items"), dict | list) or isinstance(node.get("prefixItems"), list)):
        kinds = ["array"]
    return [*kinds, "null"] if kinds and node.get("nullable") is True and "null" not in kinds else kinds


def _with_branches_alone(plain: Schema) -> Schema:
    """The schema without keywords beside `anyOf`, which some providers refuse: they are merged into each alternative. For objects
    the alternatives become one object with the properties of all; for arrays and maps they are dropped."""
    branches = _dicts(plain.get("anyOf"))
    shared = {key: value for key, value in plain.items() if key not in {"anyOf", "description", "default"}}
    if not branches or not shared:
        return plain
    alone = {key: value for key, value in plain.items() if key not in {"anyOf", *shared}}
    if "properties" in shared:
        properties = _properties(shared)
        for branch in branches:
            properties = {**_properties(branch), **properties}
        united = alone | shared | {"properties": properties}
        united.pop("additionalProperties", None)  # it was meant for the properties of one alternative only
        return united
    if "items" in shared or "additionalProperties" in shared:
        return alone | shared
    return alone | {"anyOf": _distinct(_both(branch, shared) for branch in branches)}


def _whole_text(text: str) -> str:
    """The text with unpaired surrogates replaced, which cannot be sent."""
    return text.encode("utf-8", "replace").decode()


def _kind_of(value: object) -> str:
    """The JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    kinds = ((str, "string"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object"))
    return next((kind for one, kind in kinds if isinstance(value, one)), "null")


def _both(first: Schema, second: Schema) -> Schema:
    """Two schemas merged; where they contradict, the first one counts."""
    merged = {**second, **first}
    if "properties" in first and "properties" in second:
        merged["properties"] = {**_properties(second), **_properties(first)}
    if "required" in first and "required" in second:
        merged["required"] = list(dict.fromkeys((*_names(first["required"]), *_names(second["required"]))))
    if "properties" in merged and "type" not in first:
        merged["type"] = second.get("type", "object")
    if merged.get("type") == "object" and "additionalProperties" in merged:
        merged.pop("additionalProperties")  # it was meant for the properties of one of the two only
    kinds = _list(merged.get("type")) or [merged.get("type", "object")]
    if "array" in kinds:
        merged.setdefault("items", {})
    gone = (*(() if "array" in kinds else ("items",)), *(() if "object" in kinds else _OF_OBJECTS))
    return {key: value for key, value in merged.items() if key not in gone}


def _object(schema: Schema) -> bool:
    return schema.get("type", "object") == "object"


def _properties(schema: Mapping[str, Any]) -> Schema:
    return _mapping(schema.get("properties"))


def _mapping(value: object) -> Schema:
    return cast("Schema", value) if isinstance(value, dict) else {}


def _keys(schema: object) -> Iterator[str]:
    """The names of all arguments in a schema, at every level."""
    if not isinstance(schema, dict):
        return
    node = cast("Schema", schema)
    for name, inner in _properties(node).items():
        yield name
        yield from _keys(inner)
    for inner in (*_list(node.get("anyOf")), node.get("items"), node.get("additionalProperties")):
        yield from _keys(inner)


def _with_keys(schema: object, names: Mapping[str, str]) -> Schema:
    """The schema, which is in the normal form, with its arguments renamed (`names`: old to new)."""
    node = dict(cast("Schema", schema))
    if properties := _properties(node):
        node["properties"] = {names.get(name, name): _with_keys(one, names) for name, one in properties.items()}
    if "required" in node:
        node["required"] = [names.get(name, name) for name in _names(node["required"])]
    if "anyOf" in node:
        node["anyOf"] = [_with_keys(one, names) for one in _list(node["anyOf"])]
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            node[key] = _with_keys(node[key], names)
    return node


def _names(value: object) -> list[str]:
    return [name for name in _list(value) if isinstance(name, str)]


def _dicts(value: object) -> list[Schema]:
    return [cast("Schema", inner) for inner in _list(value) if isinstance(inner, dict)]


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _distinct(values: Iterable[Any]) -> list[Any]:
    """The values without duplicates and without those that JSON cannot represent."""
    found: dict[str, Any] = {}
    for value in values:
        try:
            written = json.dumps(value, sort_keys=True, allow_nan=False)
            msgspec.json.encode(value)  # raises for unpaired surrogates
        except (TypeError, ValueError, OverflowError, RecursionError):
            continue
        found.setdefault(written, value)
    return list(found.values())


def _compiles(pattern: str) -> bool:
    """True when a pattern is valid in Python and uses nothing that JavaScript lacks: either may evaluate it."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return not _PYTHON_ONLY.search(pattern)


def choice_words(choices: Sequence[Sequence[str]]) -> str:
    """A sentence that says which sets of arguments are alternatives, one of which must be given; empty for none."""
    return f"Needs {' or '.join(' and '.join(names) for names in choices)}." if choices else ""
