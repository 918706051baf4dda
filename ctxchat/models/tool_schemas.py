"""Converts tools to the form that a family of models accepts: schemas in our normal form (`core.tool_schemas`), and changed
further for families that accept only a part of that."""

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
"""The keywords of Gemini's own schema format (ai.google.dev/api/caching, Schema); others are refused."""

_GEMINI_BY_TYPE = {
    "object": {"properties", "required"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"enum", "format", "pattern", "minLength", "maxLength"},
    "number": {"minimum", "maximum"},
    "integer": {"minimum", "maximum"},
}
"""Keywords that Gemini accepts only together with one type."""

_FREE = (OPENAI, RESPONSES, ANTHROPIC, MISTRAL)
"""Families that accept the normal form unchanged."""

_NO_GRAMMAR = re.compile(r"\(\?|\\[bBpPuUxX0-9kK]")
"""Matches what llama.cpp does not support in a pattern."""

_MAX_REPEATED = 500
"""The most repetitions that a schema may allow. llama.cpp refuses grammars with 2,000, counting repetitions inside of
repetitions."""

_ANYTHING = [{"type": kind} for kind in ("string", "number", "boolean", "object")]


def tools_for(dialect: Dialect, tools: Sequence[ToolSpec]) -> list[Wire]:
    """The tools in OpenAI's format with schemas that this family accepts; always the same for the same tools."""
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
    """The schema after `change` was applied to all its parts, the innermost first. `change` takes a part, which it may modify,
    and whether it is the root."""
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
    """A part of a schema with a type, which some servers require of each (Kimi's, for one): where it has none, it may be
    anything."""
    if not node.keys() & {"type", "anyOf"}:
        node["anyOf"] = _ANYTHING
    return node


def _grammar(node: Schema, root: bool) -> Schema:
    """A part of a schema for servers that compile it into a grammar (llama.cpp and programs built on it): without patterns they
    do not support, which are those that are not anchored at both ends or not simple, and without too many repetitions."""
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
    """A part whose only type is null as a nullable text, since Gemini has no type null. Applied after `_gemini`, which handles
    null as one of several types."""
    return node | {"type": "string", "nullable": True} if node.get("type") == "null" else node


def _gemini(node: Schema, root: bool) -> Schema:
    """A part of a schema in Gemini's format: one type, `null` as the flag `nullable`, only texts in `enum`, and no unknown
    keywords. Choices that are not texts are put into the description."""
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
