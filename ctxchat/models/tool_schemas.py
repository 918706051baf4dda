"""Tools as a family of models takes them: the normal form of their schemas, and what some want beyond it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ctxchat.core.openai import Wire, wire_tools
from ctxchat.core.tool_schemas import Schema, normal
from ctxchat.core.view import ToolSpec
from ctxchat.models.dialects import ANTHROPIC, GEMINI, LOCAL, MISTRAL, OPENAI, RESPONSES, Dialect

_GEMINI_FORMATS = {"date-time", "enum"}
_GEMINI_WORDS = frozenset(
    (
        *("type", "description", "enum", "format", "items", "properties", "required", "anyOf", "nullable"),
        *("minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern"),
    )
)
"""What Gemini's own form of a schema knows (ai.google.dev/api/caching, Schema); other words are refused."""

_GEMINI_BY_TYPE = {
    "object": {"properties", "required"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"enum", "format", "pattern", "minLength", "maxLength"},
    "number": {"minimum", "maximum"},
    "integer": {"minimum", "maximum"},
}
"""Words that it takes beside one type only."""

_FREE = (OPENAI, RESPONSES, ANTHROPIC, MISTRAL)
"""Families that take the normal form as it is."""

_NO_GRAMMAR = re.compile(r"\(\?|\\[bBpPuUxX0-9kK]")
"""What llama.cpp's reader of patterns does not know."""

_MAX_REPEATED = 500
"""How often a grammar may repeat a part. llama.cpp refuses at 2,000, what is repeated counted with it."""

_ANYTHING = [{"type": kind} for kind in ("string", "number", "boolean", "object")]


def tools_for(dialect: Dialect, tools: Sequence[ToolSpec]) -> list[Wire]:
    """The tools in OpenAI's form, their schemas as this family takes them. Always the same for the same tools."""
    change = {GEMINI.name: _gemini, LOCAL.name: _grammar}.get(dialect.name, _typed)
    change = None if dialect in _FREE else change
    wired = wire_tools(tools)
    for tool in wired:
        function = cast("Wire", tool["function"])
        schema = normal(function["parameters"]).schema
        function["parameters"] = _walked(schema, change) if change else schema
        if change is _gemini:
            function["parameters"] = _walked(function["parameters"], _without_null)
            if not schema["properties"]:
                del function["parameters"]  # an object without properties was refused for years
    return wired


def _walked(schema: Schema, change: Callable[[Schema, bool], Schema], *, root: bool = True) -> Schema:
    """The schema with every part of it changed, the innermost first."""
    node = dict(schema)
    if isinstance(properties := node.get("properties"), Mapping):
        node["properties"] = {name: _walked(one, change, root=False) for name, one in properties.items()}
    if isinstance(branches := node.get("anyOf"), list):
        node["anyOf"] = [_walked(cast("Any", one), change, root=False) for one in branches]
    for key in ("items", "additionalProperties"):
        if isinstance(inner := node.get(key), dict):
            node[key] = _walked(inner, change, root=False)
    return change(node, root)


def _typed(node: Schema, root: bool) -> Schema:
    """For servers that want a type for every part (Kimi, by whatever address): one that says none may be anything."""
    if not node.keys() & {"type", "anyOf"}:
        node["anyOf"] = _ANYTHING
    return node


def _grammar(node: Schema, root: bool) -> Schema:
    """For servers that make a grammar of it (llama.cpp, and what is built on it): they know a pattern from its beginning to its
    end only, in simple words, and no part that is repeated so often that the grammar grows too large."""
    pattern = str(node.get("pattern", "^$"))
    simple = pattern.startswith("^") and pattern.endswith("$") and not _NO_GRAMMAR.search(pattern)
    if not simple or any(int(count) > _MAX_REPEATED for count in re.findall(r"\d+", pattern)):
        node.pop("pattern")
    for least, most in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if not 0 <= node.get(least, 0) <= node.get(most, _MAX_REPEATED) <= _MAX_REPEATED:
            node.pop(least, None)
            node.pop(most, None)
    return _typed(node, root)


def _without_null(node: Schema, root: bool) -> Schema:
    """A part that may only be null, once those are gone that were one of several."""
    return node | {"type": "string", "nullable": True} if node.get("type") == "null" else node


def _gemini(node: Schema, root: bool) -> Schema:
    """One type each, `null` as a flag, choices that are texts, and no word that it does not know."""
    kinds = node.get("type")
    if isinstance(kinds, list):
        named = [kind for kind in kinds if kind != "null"]
        if len(named) < len(kinds):
            node["nullable"] = True
        if len(named) == 1:
            node["type"] = named[0]
        else:
            del node["type"]
            alone = {"description", "nullable"}
            node = {key: value for key, value in node.items() if key in alone}
            node["anyOf"] = [
                {"type": kind, **({"items": {"type": "string"}} if kind == "array" else {})} for kind in named
            ]
    if branches := cast("list[Schema]", node.get("anyOf") or []):
        left = [branch for branch in branches if branch.get("type") != "null"]
        about = {key: node[key] for key in ("description", "nullable") if key in node}
        if len(left) < len(branches):
            about["nullable"] = True
        node = {**left[0], **about} if len(left) == 1 else {**about, **({"anyOf": left} if left else {})}
    if values := cast("list[object]", node.get("enum") or []):
        if any(value is None for value in values):
            node["nullable"] = True
        words = [value for value in values if isinstance(value, str) and value]
        if words and node.get("type", "string") == "string":
            node |= {"type": "string", "enum": words}
        else:
            del node["enum"]
            named = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
            node["description"] = f"{node.get('description', '')} One of {named}.".strip()
    if node.get("format") not in _GEMINI_FORMATS:
        node.pop("format", None)
    if not node.keys() & {"type", "anyOf"}:
        node["type"] = "string"
    if node.get("type") == "object" and not node.get("properties"):
        node.pop("properties", None)
    of_others = set[str]().union(*_GEMINI_BY_TYPE.values()) - _GEMINI_BY_TYPE.get(str(node.get("type")), set())
    return {key: value for key, value in node.items() if key in _GEMINI_WORDS - of_others}
