"""What a server refused of a request, by its own words: a tool, or what goes along with messages; and what of the tools it is
sent from then on. Pure."""

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
"""How servers that make a grammar of the tools say that they cannot: llama.cpp and what is built on it, vLLM, SGLang."""

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
    """The tool, of those that were sent, whose description a server refused; empty where it blames none of them."""
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
    """A server may have refused a request for how its tools are described, whether it names one or not."""
    words = f"{problem.code} {problem.body or problem.text}"
    about = _SCHEMA.search(words) or refuses_grammar(words)
    return bool(problem.kind == "bad_request" and about and not _ELSEWHERE.search(words))


def refuses_grammar(words: str) -> bool:
    """A server could make no grammar of what it was sent: the same request fails again, whatever the status says."""
    return bool(_GRAMMAR.search(words))


def accepted_tools(
    tools: Sequence[ToolSpec], refused: Collection[str], reduced: Collection[str]
) -> tuple[ToolSpec, ...]:
    """The tools as a model's server takes them: without the refused ones, the arguments of the reduced ones in words."""
    left = (tool for tool in tools if tool.name not in refused)
    return tuple(in_words(tool) if tool.name in reduced else tool for tool in left)


def in_words(tool: ToolSpec) -> ToolSpec:
    """A tool that takes any object: what its arguments are stands in its description, whole where that stays short."""
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
    """A server refused a request for an image, a file or the like in it; of one that holds none this says nothing."""
    status = problem.status or 400
    words = f"{problem.code} {problem.body or problem.text}"
    if problem.kind == "content_filter":  # else what was said is meant
        return bool(_PICTURE.search(words))
    fine = problem.kind in {"bad_request", "not_found", "server"} and status in _REFUSED
    return fine and bool(_MEDIA.search(words))
