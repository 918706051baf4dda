"""Schemas of tools from anywhere: whatever they are, what comes out is what every provider takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.tool_schemas import MAX_DEPTH, normal, plain_keys, restored_keys

NAMES = st.sampled_from(["a", "b", "$filter", "with space", "type", "properties", "items", "required", "日本", "$ref"])
KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "items", "prefixItems", "required", "anyOf", "oneOf", "allOf", "not", "if", "then"),
        *("$ref", "$defs", "definitions", "enum", "const", "additionalProperties", "patternProperties", "nullable"),
        *("minimum", "exclusiveMinimum", "multipleOf", "minLength", "pattern", "format", "description", "default"),
        *("$schema", "$id", "title", "x-order", "dependentRequired"),
    ]
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(),
    st.sampled_from(
        ["object", "array", "string", "any", "list", "#", "#/$defs/a", "#/properties/a", "(", "http://x/y"]
    ),
    NAMES,
)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYWORDS, inner, max_size=5),
        st.dictionaries(NAMES, inner, max_size=3),
    ),
    max_leaves=30,
)

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
SCALARS = st.sampled_from([None, "", "a", "ü", "\ud800", 0, 1, -1.5, True, 2**70, float("inf"), [1], {"a": 1}])
LIMITS = st.sampled_from([-1, 0, 1, 3, 2_000, 65_536, 2**40, 2**70, 1.5, -1e308, float("nan"), True, "1"])
PATTERNS = ["^[a-z]+$", "^x{1,9999}$", "(?i)x", r"\d+", "^(?=x)y$", "([", r"^\p{L}$", "(?P<n>x)", r"a\Z"]


def _words(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A schema as a person or a library writes it, with a few words, each with what belongs to it or nearly so."""
    several = st.lists(inner, min_size=1, max_size=3)
    values: dict[str, st.SearchStrategy[Any]] = {
        "type": st.one_of(st.sampled_from([*TYPES, "any", "int"]), st.lists(st.sampled_from(TYPES), max_size=3)),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=2),
        "items": st.one_of(inner, several),
        "prefixItems": several,
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), several),
        **dict.fromkeys(("not", "if", "then", "propertyNames", "contains"), inner),
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/a", "#/$defs/none", "http://x/y"]),
        "$defs": st.dictionaries(st.just("a"), inner, max_size=1),
        "enum": st.lists(SCALARS, max_size=3),
        **dict.fromkeys(("const", "default"), SCALARS),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^x", "["]), inner, max_size=2),
        "format": st.sampled_from(["date-time", "uri", "int32", "no-such"]),
        "pattern": st.sampled_from(PATTERNS),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "multipleOf"), LIMITS),
        "description": st.sampled_from(["what it is", "\ud800"]),
        "nullable": st.booleans(),
    }
    return st.lists(st.one_of([st.tuples(st.just(word), value) for word, value in values.items()]), max_size=5).map(
        dict
    )


WRITTEN: st.SearchStrategy[dict[str, Any]] = _words(st.recursive(st.booleans(), _words, max_leaves=12))
"""Whole schemas of tools, as servers have them."""

KNOWN = {
    *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "description", "default"),
    *("format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
}


def parts(schema: dict[str, Any], depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """Every schema in it, with how deep it lies."""
    yield schema, depth
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for one in inner:
        yield from parts(one, depth + 1)


@given(st.one_of(st.dictionaries(KEYWORDS, SCHEMAS, max_size=6), WRITTEN))
def test_whatever_a_server_says_comes_out_as_providers_take_it(given_schema: dict[str, Any]) -> None:
    schema, renamed = plain_keys(normal(given_schema).schema)
    msgspec.json.encode(schema)
    assert schema["type"] == "object" and isinstance(schema["properties"], dict) and "anyOf" not in schema
    for part, depth in parts(schema):
        assert depth <= MAX_DEPTH + 2 and part.keys() <= KNOWN
        kinds = part.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        assert set(kinds) <= set(TYPES) and len(set(kinds)) == len(kinds)
        assert ("items" in part) == ("array" in kinds)
        assert part.get("enum", [0]) and part.get("anyOf", [0, 0])[1:]
        assert set(part.get("required", [])) <= part.get("properties", {}).keys()
        assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in part.get("properties", {}))
    assert normal(schema).schema == schema, "what is in this form stays as it is"
    arguments = {name: [{name: 1}] for name in schema["properties"]}
    assert restored_keys(arguments, renamed, schema).keys() == {
        renamed.get(name, name) for name in schema["properties"]
    }


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        ({"type": "object", "properties": {"a": {"type": "array"}}}, {"a": {"type": "array", "items": {}}}),
        (
            {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"const": 3}}},
            {"a": {"type": "integer", "enum": [3]}},
        ),
        (
            {"properties": {"a": {"type": "string", "anyOf": [{"format": "uri"}, {"enum": ["x"]}]}}},
            {"a": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "string", "enum": ["x"]}]}},
        ),
        (
            {
                "properties": {
                    "a": {"properties": {"b": {}}, "oneOf": [{"properties": {"c": {}}}, {"properties": {"d": {}}}]}
                }
            },
            {"a": {"type": "object", "properties": {"d": {}, "c": {}, "b": {}}}},
        ),
        (
            {
                "properties": {
                    "a": {"type": "object", "patternProperties": {"^x": {"type": "int"}}, "additionalProperties": False}
                }
            },
            {"a": {"type": "object", "additionalProperties": {"type": "integer"}}},
        ),
        ({"properties": {"a": False, "b": True}, "required": ["a", "b"]}, {"b": {}}),
        (
            {"properties": {"a": {"type": "string", "maxLength": 2**70, "pattern": "(?P<n>x)"}}},
            {"a": {"type": "string"}},
        ),
        (
            {"properties": {"a": {"type": "number", "minimum": -(10**400), "default": float("nan")}}},
            {"a": {"type": "number"}},
        ),
        (
            {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"type": "int"}}},
            {"a": {"type": "integer"}, "b": {"type": "integer"}},
        ),
        ({"properties": {"a": {"$ref": "#"}}}, {"a": {"type": "object", "properties": {"a": {}}}}),
        ({"properties": {"a": {"$ref": "https://elsewhere/x", "description": "x"}}}, {"a": {"description": "x"}}),
        ({"properties": {"a": {"type": ["string", "null"]}}}, {"a": {"type": ["string", "null"]}}),
        ({"properties": {"a": {"type": "string", "nullable": True}}}, {"a": {"type": ["string", "null"]}}),
        (
            {"properties": {"a": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}},
            {"a": {"type": "integer", "exclusiveMinimum": 0}},
        ),
        (
            {"properties": {"a": {"items": [{"type": "string"}, {"type": "number"}]}}},
            {"a": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}},
        ),
        (
            {"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "number"}], "description": "x"}}},
            {"a": {"description": "x", "anyOf": [{"type": "string"}, {"type": "number"}]}},
        ),
        ({"properties": {"p": {"type": "string"}, "type": "object"}}, {"p": {"type": "string"}, "type": {}}),
        ({"properties": {"a": {"type": "string", "pattern": "(["}}}, {"a": {"type": "string"}}),
    ],
)
def test_what_providers_refused_of_real_servers(given_schema: dict[str, Any], expected: dict[str, Any]) -> None:
    found = normal(given_schema).schema
    assert found == {"type": "object", "properties": expected} | ({"required": ["b"]} if "required" in found else {})


def test_alternatives_at_the_root_become_one_object_and_are_told() -> None:
    a, b = {"type": "string"}, {"type": "number"}
    both = normal(
        {
            "anyOf": [
                {"properties": {"a": a, "c": a}, "required": ["a", "c"]},
                {"properties": {"b": b, "c": a}, "required": ["b", "c"]},
            ]
        }
    )
    assert both.schema == {"type": "object", "properties": {"a": a, "c": a, "b": b}, "required": ["c"]}
    assert both.choices == (("a",), ("b",))
    at_least_one = {
        "type": "object",
        "properties": {"a": a, "b": b},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    assert normal(at_least_one).schema == {"type": "object", "properties": {"a": a, "b": b}}
    every = normal({"allOf": [{"properties": {"a": a}, "required": ["a"]}, {"properties": {"b": b}}]})
    assert every.schema == {"type": "object", "properties": {"b": b, "a": a}, "required": ["a"]}


def test_references_that_multiply_end() -> None:
    definitions = {f"d{n}": {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "abcd"}} for n in range(30)}
    schema = normal({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}).schema
    assert sum(1 for _ in parts(schema)) < 20_000


def test_names_that_would_be_the_same_stay_apart() -> None:
    schema, renamed = plain_keys(normal({"properties": {"$a": {}, "@a": {}, "_a": {}}, "required": ["@a"]}).schema)
    assert list(schema["properties"]) == ["_a_2", "_a_3", "_a"] and schema["required"] == ["_a_3"]  # type: ignore[arg-type]
    assert restored_keys({"_a": 1, "_a_2": 2, "_a_3": [{"_a_2": 3}]}, renamed, schema) == {
        "_a": 1,
        "$a": 2,
        "@a": [{"$a": 3}],
    }


Sent = Callable[[Mapping[str, str]], Any]
FREE = st.dictionaries(st.sampled_from(["_filter", "$filter", "_a", "a"]), st.integers(), max_size=3)
LEAVES = st.one_of(
    st.integers().map(lambda value: ({"type": "integer"}, value, lambda _: value)),
    FREE.map(lambda value: ({"type": "object"}, value, lambda _: value)),
    FREE.map(lambda value: ({"type": "object", "additionalProperties": {"type": "integer"}}, value, lambda _: value)),
)


def _object(fields: dict[str, tuple[dict[str, Any], Any, Sent]]) -> tuple[dict[str, Any], Any, Sent]:
    schema = {"type": "object", "properties": {name: one[0] for name, one in fields.items()}}
    value = {name: one[1] for name, one in fields.items()}
    return schema, value, lambda names: {names.get(name, name): one[2](names) for name, one in fields.items()}


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What holds such: an object, a list, one of several, a dictionary."""
    named = st.sampled_from(["$filter", "_filter", "a", "@a", "_a", "type", "x" * 70, "日本"])
    return st.one_of(
        st.dictionaries(named, inner, max_size=4).map(_object),
        inner.map(lambda one: ({"type": "array", "items": one[0]}, [one[1]] * 2, lambda names: [one[2](names)] * 2)),
        inner.map(lambda one: ({"anyOf": [{"type": "null"}, one[0]]}, one[1], one[2])),
        inner.map(
            lambda one: (
                {"type": "object", "additionalProperties": one[0]},
                {"_filter": one[1]},
                lambda names: {"_filter": one[2](names)},
            )
        ),
    )


ARGUMENTS = st.dictionaries(
    st.sampled_from(["$filter", "a", "_a", "properties"]),
    st.recursive(LEAVES, _around, max_leaves=6),
    min_size=1,
    max_size=4,
).map(_object)


@given(ARGUMENTS)
def test_what_is_called_reaches_the_server_under_its_own_names(call: tuple[dict[str, Any], Any, Sent]) -> None:
    given_schema, arguments, sent = call
    schema, renamed = plain_keys(normal(given_schema).schema)
    by_the_model = sent({old: new for new, old in renamed.items()})
    assert restored_keys(by_the_model, renamed, schema) == arguments
