"""Schemas of tools from anywhere: whatever they are, what comes out is what every provider takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.tool_schemas import MAX_DEPTH, normal, plain_keys, restored_keys

NAMES = st.sampled_from(["a", "b", "$filter", "with space", "type", "properties", "items", "required", "日本"])
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

KNOWN = {
    *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "description", "default"),
    *("format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
}
TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}


def parts(schema: dict[str, Any], depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """Every schema in it, with how deep it lies."""
    yield schema, depth
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for one in inner:
        yield from parts(one, depth + 1)


@given(st.dictionaries(KEYWORDS, SCHEMAS, max_size=6))
def test_whatever_a_server_says_comes_out_as_providers_take_it(given_schema: dict[str, Any]) -> None:
    schema, renamed = plain_keys(normal(given_schema).schema)
    msgspec.json.encode(schema)
    assert schema["type"] == "object" and isinstance(schema["properties"], dict) and "anyOf" not in schema
    for part, depth in parts(schema):
        assert depth <= MAX_DEPTH + 2 and part.keys() <= KNOWN
        kinds = part.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        assert set(kinds) <= TYPES and len(set(kinds)) == len(kinds)
        assert ("items" in part) == ("array" in kinds)
        assert part.get("enum", [0]) and part.get("anyOf", [0, 0])[1:]
        assert set(part.get("required", [])) <= part.get("properties", {}).keys()
        assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in part.get("properties", {}))
    assert normal(schema).schema == schema, "what is in this form stays as it is"
    arguments = {name: [{name: 1}] for name in schema["properties"]}
    assert restored_keys(arguments, renamed).keys() == {renamed.get(name, name) for name in schema["properties"]}


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        ({"type": "object", "properties": {"a": {"type": "array"}}}, {"a": {"type": "array", "items": {}}}),
        ({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"const": 3}}}, {"a": {"enum": [3]}}),
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
    assert normal(given_schema).schema == {"type": "object", "properties": expected}


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
    assert restored_keys({"_a": 1, "_a_2": 2, "_a_3": [{"_a_2": 3}]}, renamed) == {"_a": 1, "$a": 2, "@a": [{"$a": 3}]}
