"""What each provider takes as the schema of a tool's arguments, as validators: by its documents, and by what it was seen to
refuse. Each fails with what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft202012Validator

Schema = dict[str, Any]
Rule = Callable[[Schema], None]

_AT_THE_ROOT = {"oneOf", "anyOf", "allOf", "enum", "not", "$ref"}


def parts(schema: Schema, path: str = "parameters") -> Iterator[tuple[str, Schema]]:
    """Every schema in it, with where it is: names of arguments are no words of a schema."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(inner, f"{path}.properties[{name}]")
    for number, inner in enumerate(schema.get("anyOf", ())):
        yield from parts(inner, f"{path}.any_of[{number}]")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], f"{path}.{key}")


def kinds(part: Schema) -> set[str]:
    """Its types."""
    return {part["type"]} if isinstance(part.get("type"), str) else set(part.get("type", ()))


def json_schema(schema: Schema) -> None:
    """JSON Schema draft 2020-12, which Anthropic and OpenAI hold a tool against, with an object at its root."""
    Draft202012Validator.check_schema(schema)
    assert schema.get("type") == "object" and not schema.keys() & _AT_THE_ROOT
    for path, part in parts(schema):
        assert "array" not in kinds(part) or "items" in part, f"array schema missing items at {path}"
        assert "$ref" not in part


def anthropic(schema: Schema) -> None:
    """platform.claude.com: "Tool use", `input_schema`."""
    json_schema(schema)
    for path, part in parts(schema):
        for name in part.get("properties", {}):
            assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name), f"{path}: property keys should match pattern"


def gemini(schema: Schema) -> None:
    """ai.google.dev: the API reference, "Schema", in protocol buffers: one type, words known, each beside its own type."""
    only = {"properties": "OBJECT", "required": "OBJECT", "items": "ARRAY", "enum": "STRING"}
    known = {*only, "type", "format", "description", "nullable", "minItems", "maxItems", "minLength", "maxLength"}
    for path, part in parts(schema):
        assert part.keys() <= known | {"anyOf", "minimum", "maximum", "pattern"}, f"{path}: cannot find field"
        if "anyOf" in part:
            assert part.keys() <= {"anyOf", "description", "nullable"}, f"{path}: any_of must be the only field set"
            continue
        kind = str(part["type"]).upper()
        assert kind in {"OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN"}, f"{path}.type: invalid value"
        for word, wanted in only.items():
            assert word not in part or kind == wanted, f"{path}.{word}: only allowed for {wanted} type"
        assert kind != "ARRAY" or part.get("items"), f"{path}.items: missing field"
        assert part.get("properties", {"a": 1}), f"{path}.properties: should be non-empty for OBJECT type"
        assert set(part.get("required", ())) <= part.get("properties", {}).keys(), f"{path}.required: not defined"
        assert all(value and isinstance(value, str) for value in part.get("enum", ()))
        assert kind != "STRING" or part.get("format", "enum") in {"enum", "date-time"}, f"{path}.format"


def moonshot(schema: Schema) -> None:
    """platform.moonshot.ai: a flavour of JSON Schema, in which every part has a type, or alternatives and none."""
    json_schema(schema)
    for path, part in parts(schema):
        assert ("type" in part) != ("anyOf" in part), f"at path {path}: type is not defined, or beside anyOf"


def grammar(schema: Schema) -> None:
    """llama.cpp: json_schema_to_grammar. No schema without a type, patterns whole and simple, repetitions below 2,000."""
    json_schema(schema)
    for path, part in parts(schema):
        assert part.keys() & {"type", "anyOf", "enum"}, f"{path}: unrecognized schema"
        pattern = part.get("pattern", "^$")
        assert pattern.startswith("^") and pattern.endswith("$") and "(?" not in pattern, f"{path}: pattern"
        for least, most in (("minLength", "maxLength"), ("minItems", "maxItems")):
            assert part.get(least, 0) <= part.get(most, 1_999) < 2_000, f"{path}: repetition exceeds sane defaults"


TOOL_RULES: dict[str, Rule] = {
    "anthropic": anthropic,
    "openai": json_schema,
    "responses": json_schema,
    "mistral": json_schema,
    "gemini": gemini,
    "local": grammar,
    "deepseek": moonshot,
    "thinks-aloud": moonshot,
    "openrouter": moonshot,
    "hosted": moonshot,
}
"""By the name of the dialect that asks for it."""
