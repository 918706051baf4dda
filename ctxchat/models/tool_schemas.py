"""Tools as a family of models takes them: the normal form of their schemas, and what some want beyond it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ctxchat.core.openai import Wire, wire_tools
from ctxchat.core.tool_schemas import Schema, normal
from ctxchat.core.view import ToolSpec
from ctxchat.models.dialects import GEMINI, LOCAL, Dialect

_GEMINI_FORMATS = {"date-time", "enum"}
_GEMINI_WORDS = frozenset(
    (
        *("type", "description", "enum", "format", "items", "properties", "required", "anyOf", "nullable"),
        *("minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern"),
    )
)
"""What Gemini's own form of a schema knows (ai.google.dev/api/caching, Schema); other words are refused."""

_ANYTHING = [{"type": kind} for kind in ("string", "number", "boolean", "object")]


def tools_for(dialect: Dialect, tools: Sequence[ToolSpec]) -> list[Wire]:
    """The tools in OpenAI's form, their schemas as this family takes them. Always the same for the same tools."""
    change = {GEMINI.name: _gemini, LOCAL.name: _grammar}.get(dialect.name)
    wired = wire_tools(tools)
    for tool in wired:
        function = cast("Wire", tool["function"])
        schema = normal(function["parameters"]).schema
        function["parameters"] = _walked(schema, change) if change else schema
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


def _grammar(node: Schema, root: bool) -> Schema:
    """For servers that make a grammar of it (llama.cpp, and what is built on it): they know no part without a type, and a pattern
    from its beginning to its end only, in simple words."""
    pattern = str(node.get("pattern", "^$"))
    if not (pattern.startswith("^") and pattern.endswith("$")) or "(?" in pattern or "\\b" in pattern:
        node.pop("pattern")
    if not node.keys() & {"type", "enum", "anyOf"}:
        node["anyOf"] = _ANYTHING
    return node


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
        node = {**left[0], **about} if len(left) == 1 else {**about, "anyOf": left}
    if values := cast("list[object]", node.get("enum") or []):
        if any(value is None for value in values):
            node["nullable"] = True
        words = [value for value in values if isinstance(value, str) and value]
        if words and node.get("type", "string") == "string":
            node |= {"type": "string", "enum": words}
        else:
            del node["enum"]
            named = ", ".join(str(value) for value in values)
            node["description"] = f"{node.get('description', '')} One of {named}.".strip()
    if node.get("format") not in _GEMINI_FORMATS:
        node.pop("format", None)
    if not node.keys() & {"type", "anyOf"}:
        node["type"] = "string"
    if node.get("type") == "object" and not node.get("properties") and not root:
        node.pop("properties", None)
    return {key: value for key, value in node.items() if key in _GEMINI_WORDS}
