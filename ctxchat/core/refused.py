"""What a server refused of a request, by its own words: a tool by name, or what goes along with messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxchat.core.errors import ModelError
from ctxchat.core.expressions import expression

_SCHEMA = expression(
    r"schema|invalid_function_parameters|function_declarations|\bparameters\b|tools?[.\[/]\d|tool definition|properties",
    re.I,
)
_ELSEWHERE = expression(r"messages?[.\[]\d|thought_signature|tool_call_id|tool_result|tool_use", re.I)
_PLACE = expression(r"(?:tools?|function_declarations)[.\[/](\d+)(?!.*function_declarations[.\[/]\d)", re.I | re.DOTALL)
_DECLARED = expression(r"function_declarations[.\[/](\d+)", re.I)
_MEDIA = expression(
    r"image|图[片像]|picture|vision|multi.?modal|input_audio|audio|document|\bpdf\b|media.?type|attachment|file_data|\bfile\b",
    re.I,
)
_PICTURE = expression(r"\bimages?\b|图[片像]|\bpictures?\b", re.I)
_REFUSED = frozenset({400, 404, 415, 422, 500, 501})


def blamed_tool(problem: ModelError, names: Sequence[str]) -> str:
    """The tool, of those that were sent, whose description a server refused; empty where it blames none of them."""
    words = f"{problem.code} {problem.body or problem.text}"
    if problem.kind != "bad_request" or not _SCHEMA.search(words) or _ELSEWHERE.search(words):
        return ""
    named = [name for name in names if re.search(rf"['\"`]{re.escape(name)}['\"`\\]", words)]
    named = named or [name for name in names if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", words)]
    if len(named) == 1:
        return named[0]
    place = _DECLARED.search(words) or _PLACE.search(words)
    return names[int(place[1])] if place and int(place[1]) < len(names) else ""


def blames_media(problem: ModelError) -> bool:
    """A server refused a request for an image, a file or the like in it; of one that holds none this says nothing."""
    status = problem.status or 400
    words = f"{problem.code} {problem.body or problem.text}"
    if problem.kind == "content_filter":  # else what was said is meant
        return bool(_PICTURE.search(words))
    fine = problem.kind in {"bad_request", "not_found", "server"} and status in _REFUSED
    return fine and bool(_MEDIA.search(words))
