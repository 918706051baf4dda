"""Tools as each family takes them, beyond the normal form."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.view import ToolSpec
from ctxchat.models import dialects
from ctxchat.models.tool_schemas import tools_for
from tests.core.test_tool_schemas import KEYWORDS, SCHEMAS, parts


def schema_for(dialect: dialects.Dialect, schema: dict[str, Any]) -> dict[str, Any]:
    (tool,) = tools_for(dialect, [ToolSpec("t", "", schema)])
    return tool["function"]["parameters"]


def of(dialect: dialects.Dialect, **properties: Any) -> dict[str, Any]:
    return schema_for(dialect, {"type": "object", "properties": properties})["properties"]


@given(st.dictionaries(KEYWORDS, SCHEMAS, max_size=6))
def test_gemini_is_sent_nothing_that_its_form_does_not_know(schema: dict[str, Any]) -> None:
    for part, _ in parts(schema_for(dialects.GEMINI, schema)):
        assert (isinstance(part.get("type", ""), str) and part.get("type") != "null") or part == {"type": "null"}
        assert not part.keys() & {"additionalProperties", "exclusiveMinimum", "default", "const", "$ref", "oneOf"}
        assert part.get("type") or part.get("anyOf")
        assert all(isinstance(value, str) for value in part.get("enum", []))
        if "anyOf" in part:
            assert part.keys() <= {"anyOf", "description", "nullable"}


@given(st.dictionaries(KEYWORDS, SCHEMAS, max_size=6))
def test_what_makes_a_grammar_knows_the_type_of_every_part(schema: dict[str, Any]) -> None:
    for part, depth in parts(schema_for(dialects.LOCAL, schema)):
        assert depth == 0 or part.keys() & {"type", "enum", "anyOf"}


def test_what_gemini_wants_otherwise() -> None:
    assert of(dialects.GEMINI, a={"type": ["string", "null"]}) == {"a": {"type": "string", "nullable": True}}
    assert of(dialects.GEMINI, a={"anyOf": [{"type": "integer"}, {"type": "null"}]}) == {
        "a": {"type": "integer", "nullable": True}
    }
    assert of(dialects.GEMINI, a={"type": "integer", "enum": [1, 2]}) == {
        "a": {"type": "integer", "description": "One of 1, 2."}
    }
    assert of(dialects.GEMINI, a={"type": "string", "format": "uri"}, b={}) == {
        "a": {"type": "string"},
        "b": {"type": "string"},
    }


def test_patterns_a_grammar_can_be_made_of_stay() -> None:
    kept, gone = {"type": "string", "pattern": "^[a-z]+$"}, {"type": "string", "pattern": "(?=x)y"}
    assert of(dialects.LOCAL, a=kept, b=gone) == {"a": kept, "b": {"type": "string"}}
    assert of(dialects.OPENAI, b=gone) == {"b": gone}
