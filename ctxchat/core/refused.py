"""Finds out from a server's error what in a request it refused: a tool's description, or an image or file; and changes the list
of tools to what the server accepts.

Some servers cannot handle some JSON schemas. A tool that is refused is sent again with its arguments described in words, and if
that is refused as well, left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import msgspec

from ctxchat.core.errors import ModelError
from ctxchat.core.expressions import expression
from ctxchat.core.head import ToolSpec

_SCHEMA = expression(
    r"schema|invalid_function_parameters|function_declarations|\bparameters\b|tools?[.\[/]\d|tool definition|properties",
    re.I,
)
_GRAMMAR = expression(
    r"(?:pars\w+|compil\w+|initiali[sz]\w+|convert\w*|invalid|unsupported).{0,40}\b(?:grammar|json.?schema)"
    r"|grammar\b.{0,80}(?:not supported|unsupported|invalid|error|fail|too (?:large|complex))"
    r"|json.?schema conversion|unrecognized schema|not supported by (?:xgrammar|outlines|guidance)",
    re.I | re.S,
)
"""Matches the errors of servers that compile tools into a grammar and fail to: llama.cpp and programs built on it, vLLM,
SGLang."""

_ELSEWHERE = expression(r"messages?[.\[]\d|thought_signature|tool_call_id|tool_result|tool_use", re.I)
_PLACE = expression(r"(?:tools?|function_declarations)[.\[/](\d+)(?!.*function_declarations[.\[/]\d)", re.I | re.DOTALL)
_DECLARED = expression(r"function_declarations[.\[/](\d+)", re.I)
_MEDIA = expression(
    r"image|图[片像]|picture|vision|multi.?modal|input_audio|audio|document|\bpdf\b|media.?type|attachment|file_data|\bfile\b",
    re.I,
)
_PICTURE = expression(r"\bimages?\b|图[片像]|\bpictures?\b", re.I)
MAX_WORDS_CHARS = 1_000
"""Characters of a description with a schema in it: some providers take 1,024."""

_ANY_ARGUMENTS: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": True}
_REFUSED = frozenset({400, 404, 415, 422, 500, 501})


def blamed_tool(problem: ModelError, names: Sequence[str]) -> str:
    """The name of the tool whose description the server refused, of the `names` that were sent; empty where the error blames
    none."""
    if not blames_tools(problem):
        return ""
    words = f"{problem.code} {problem.body or problem.text}"
    named = [name for name in names if re.search(rf"['\"`]{re.escape(name)}['\"`\\]", words)]
    named = named or [name for name in names if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", words)]
    if len(named) == 1:
        return named[0]
    place = _DECLARED.search(words) or _PLACE.search(words)
    return names[int(place[1])] if place and int(place[1]) < len(names) else ""


def blames_tools(problem: ModelError) -> bool:
    """True where a request may have been refused for the description of a tool, whether the error names the tool or not."""
    words = f"{problem.code} {problem.body or problem.text}"
    about = _SCHEMA.search(words) or refuses_grammar(words)
    return bool(problem.kind == "bad_request" and about and not _ELSEWHERE.search(words))


def refuses_grammar(words: str) -> bool:
    """True for an error that a server could not compile a grammar: the same request would fail again, whatever its status
    says."""
    return bool(_GRAMMAR.search(words))


def accepted_tools(
    tools: Sequence[ToolSpec], refused: Collection[str], reduced: Collection[str]
) -> tuple[ToolSpec, ...]:
    """The tools that a server accepts: those named in `refused` left out, those in `reduced` with their arguments in words."""
    left = (tool for tool in tools if tool.name not in refused)
    return tuple(in_words(tool) if tool.name in reduced else tool for tool in left)


def in_words(tool: ToolSpec) -> ToolSpec:
    """The tool with a schema that accepts any object, and with its arguments in the description: the whole schema where that is
    short, else only the names."""
    if tool.parameters == _ANY_ARGUMENTS:
        return tool
    said = f"{tool.description}\n\nArguments, by this JSON Schema: {msgspec.json.encode(tool.parameters).decode()}"
    if len(said) > MAX_WORDS_CHARS:
        found, needed = tool.parameters.get("properties"), tool.parameters.get("required")
        names = ", ".join(cast("Mapping[str, Any]", found)) if isinstance(found, Mapping) else ""
        must = ", ".join(map(str, cast("list[Any]", needed))) if isinstance(needed, list) else ""
        said = f"{tool.description}\n\nArguments: {names or 'none'}; needed: {must or 'none'}."
    return msgspec.structs.replace(tool, description=said.strip(), parameters=dict(_ANY_ARGUMENTS))


def blames_media(problem: ModelError) -> bool:
    """True where a request with images or files may have been refused for them. Ask only about requests that hold some."""
    status = problem.status or 400
    words = f"{problem.code} {problem.body or problem.text}"
    if problem.kind == "content_filter":  # else what was said is meant
        return bool(_PICTURE.search(words))
    fine = problem.kind in {"bad_request", "not_found", "server"} and status in _REFUSED
    return fine and bool(_MEDIA.search(words))
