"""Tools as each family takes them, beyond the normal form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.tool_schemas import normal, plain_keys
from ctxchat.core.view import ToolSpec
from ctxchat.models import dialects
from ctxchat.models.tool_schemas import tools_for
from tests.core.test_tool_schemas import KEYWORDS, SCHEMAS, WRITTEN
from tests.doubles.tool_rules import TOOL_RULES


def schema_for(dialect: dialects.Dialect, schema: dict[str, Any]) -> dict[str, Any]:
    (tool,) = tools_for(dialect, [ToolSpec("t", "", schema)])
    return tool["function"].get("parameters", {"type": "object"})


def of(dialect: dialects.Dialect, **properties: Any) -> dict[str, Any]:
    return schema_for(dialect, {"type": "object", "properties": properties})["properties"]


@pytest.mark.parametrize("name", TOOL_RULES)
@given(schema=st.one_of(st.dictionaries(KEYWORDS, SCHEMAS, max_size=6), WRITTEN))
def test_whatever_a_server_says_every_provider_takes(name: str, schema: dict[str, Any]) -> None:
    sent, _ = plain_keys(normal(schema).schema)
    (dialect,) = (one for one in vars(dialects).values() if isinstance(one, dialects.Dialect) and one.name == name)
    for_it = schema_for(dialect, sent)
    msgspec.json.encode(for_it)
    TOOL_RULES[name](for_it)
    assert for_it.get("properties", {}).keys() == sent["properties"].keys(), "no argument is lost"


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


def test_a_tool_without_arguments_has_no_schema_for_gemini() -> None:
    (tool,) = tools_for(dialects.GEMINI, [ToolSpec("t", "", {"type": "object", "properties": {}})])
    assert "parameters" not in tool["function"]


def test_what_may_only_be_null_is_a_text_for_gemini_unless_it_is_one_of_several() -> None:
    null = {"type": "null"}
    assert of(dialects.GEMINI, a=null, b={"anyOf": [null, {"type": "integer"}]}, c={"const": None}) == {
        "a": {"type": "string", "nullable": True},
        "b": {"type": "integer", "nullable": True},
        "c": {"type": "string", "nullable": True, "description": "One of null."},
    }


def test_patterns_a_grammar_can_be_made_of_stay() -> None:
    kept, gone = {"type": "string", "pattern": "^[a-z]+$"}, {"type": "string", "pattern": "(?=x)y"}
    assert of(dialects.LOCAL, a=kept, b=gone) == {"a": kept, "b": {"type": "string"}}
    assert of(dialects.OPENAI, b=gone) == {"b": gone}
    long, short = {"type": "string", "maxLength": 65_536}, {"type": "string", "maxLength": 40}
    assert of(dialects.LOCAL, a=long, b=short) == {"a": {"type": "string"}, "b": short}
