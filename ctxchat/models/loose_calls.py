"""Repairs malformed tool calls: names with marks around them, arguments that are almost JSON, calls written as text.

Not needed for strict servers. Repairs only what the model meant beyond doubt; everything else is kept unchanged, and the model
is told what is wrong with it. Pure.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from time import monotonic
from typing import Any, NamedTuple, cast

import regex

from ctxchat.core.call_arguments import fields_of

MAX_REPAIRED = 1_000_000
"""Characters of arguments up to which a repair is tried."""

MAX_READING_S = 0.5
"""Seconds that a reply is searched for calls: a malicious text would keep the regular expressions busy for minutes."""

Offered = Mapping[str, Mapping[str, Any]]
"""The tools of a request: their parameter schemas by name."""


class LooseCall(NamedTuple):
    """A tool call that was written as text."""

    name: str
    arguments: str


def offered_in(arguments: Mapping[str, Any]) -> Offered:
    """The tools in a request's arguments, which have litellm's form."""
    functions = (tool.get("function") or {} for tool in arguments.get("tools") or ())
    return {function["name"]: function.get("parameters") or {} for function in functions}


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_AROUND = re.compile(
    r"<\|.*|\s*\(.*|:\d+$|^(?:to=)?(?:functions|function|tools|tool|default_api|namespace)[.:/]+|[\"'`]", re.DOTALL
)
"""Matches what models write around a name: marks of gpt-oss (`read_file<|channel|>commentary`), Kimi's number
(`functions.read_file:0`), Gemini's module (`default_api.read_file`), brackets, quotes."""


def true_name(name: str, offered: Collection[str]) -> str:
    """The tool that a name means: the one of this name without the marks around it, or the only one that differs just in case and
    punctuation (`readFile`, `read-file`) or in the MCP server's prefix. The name unchanged where there is none."""
    if name in offered or not offered:
        return name
    bare = name.strip()
    while (shorter := _AROUND.sub("", bare).strip()) != bare:
        bare = shorter
    if bare in offered:
        return bare
    letters = _letters(bare)
    same = [tool for tool in offered if _letters(tool) == letters]
    ends = [tool for tool in offered if _letters(tool.rpartition("__")[2]) == letters and "__" in tool]
    matches = same or ends or [tool for tool in offered if "__" in tool and letters == f"mcp{_letters(tool)}"]
    return matches[0] if letters and len(matches) == 1 else name


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


# ── arguments ───────────────────────────────────────────────────────────────────────────────────────────────────────

_BEFORE = re.compile(r"\A(?:\s|\ufeff|```\w*|<\|[^|]*\|>|json\b|<tool_call>|=)+")
_BEHIND = re.compile(r"(?:\s|```|<\|[^|]*\|>|</?tool_call>|</function>|;)+\Z")
_NOTHING = {"", "null", "None", "undefined"}
_READER = json.JSONDecoder(strict=False)  # allows raw line breaks inside strings, which small models write


def is_whole(arguments: str) -> bool:
    """Whether the arguments are a JSON object without repair; an empty string is not."""
    return bool(arguments.strip()) and fields_of(arguments) is not None


def true_arguments(arguments: str) -> list[str]:
    """The arguments as JSON objects, several where the arguments of several calls were joined; the text unchanged, as the only
    item, where it cannot be repaired."""
    if is_whole(arguments) or not arguments or len(arguments) > MAX_REPAIRED:
        return [arguments]
    text = _BEHIND.sub("", _BEFORE.sub("", arguments.replace("\0", "")))
    if text in _NOTHING:
        return ["{}"]
    objects = list(_objects(text)) or list(_literal(text)) or list(_objects(_as_json(text)))
    not_empty = [fields for fields in objects if fields] or objects[:1]
    repaired = list(dict.fromkeys(json.dumps(fields, ensure_ascii=False) for fields in not_empty))
    return repaired if repaired and all(fields_of(each) is not None for each in repaired) else [arguments]


def _objects(text: str, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text that consists only of objects and separators; nothing where it contains anything else. An object
    encoded in a JSON string, or alone in a list, counts too."""
    position, objects = 0, list[dict[str, Any]]()
    while position < len(text):
        try:
            value, position = _READER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        if isinstance(value, str) and depth < 3:
            inner = list(_objects(value.strip(), depth + 1))
            value = inner[0] if len(inner) == 1 else value
        if isinstance(value, list) and len(cast("list[Any]", value)) == 1:
            value = cast("list[Any]", value)[0]
        if not isinstance(value, dict):
            return
        objects.append(cast("dict[str, Any]", value))
        separator = re.compile(r"[\s,;]*").match(text, position)
        position = separator.end() if separator else position
        if text[position:].strip("}] \n") == "":  # surplus closing brackets at the end
            break
    yield from objects


_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<name>[A-Za-z_$][\w$-]*)"""
    r"""|(?P<number>-?\d[\d.eE+-]*)|(?P<sign>[{}\[\]:,])|(?P<space>\s+)""",
    re.DOTALL,
)
_WORDS = {"true": "true", "True": "true", "false": "false", "False": "false"} | dict.fromkeys(
    ("null", "None", "undefined"), "null"
)
_CLOSERS = {"{": "}", "[": "]"}


def _as_json(text: str) -> str:
    """Convert JSON5 as models write it (unquoted keys, single quotes, comments, trailing commas) to JSON, and close brackets left
    open at the end; empty where it contains anything else, or an unclosed string."""
    if not text.startswith("{") or len(text) > 100_000:
        return ""
    parts: list[str] = []
    open_: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return ""
        position, token = match.end(), match.group()
        if match["text"]:
            parts.append(json.dumps(ast.literal_eval(token)) if token[0] == "'" else token)
        elif match["name"]:
            is_key = text[position:].lstrip().startswith(":")
            if not is_key and token not in _WORDS:
                return ""
            parts.append(json.dumps(token) if is_key else _WORDS[token])
        elif match["sign"]:
            if token in "}]":
                if not open_ or _CLOSERS[open_.pop()] != token:
                    return ""
                if parts[-1] == ",":
                    parts.pop()
            elif token in "{[":
                open_.append(token)
            parts.append(token)
        elif match["number"]:
            parts.append(token)
    if parts[-1] == ",":
        parts.pop()
    return "".join((*parts, *(_CLOSERS[bracket] for bracket in reversed(open_))))


def _literal(text: str) -> Iterator[dict[str, Any]]:
    """The object in a Python dict literal: single quotes, True, None."""
    if not text.startswith("{") or len(text) > 100_000:
        return
    try:
        value = ast.literal_eval(text)
        json.dumps(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return
    if isinstance(value, dict):
        yield cast("dict[str, Any]", value)


# ── calls as text ───────────────────────────────────────────────────────────────────────────────────────────────────

_TOOL_NAME = r"(?P<name>[\w.:/-]+)"
_CALLS = tuple(
    regex.compile(pattern, regex.DOTALL)
    for pattern in (
        # Hermes, Qwen; Llama's python tag; Granite, Phi, LongCat, Nemotron, Jamba
        r"(?:<tool_calls?>|<longcat_tool_call>|<TOOLCALL>|<\|tool_call\|>|<\|python_tag\|>)\s*(?P<json>[\[{].*?[\]}])\s*"
        r"(?:</tool_calls?>|</longcat_tool_call>|</TOOLCALL>|<\|/tool_call\|>|<\|eom_id\|>|(?=<tool_call>)|\Z)",
        # Qwen coder: <function=read_file><parameter=path>a.txt</parameter></function>
        rf"(?:<tool_call>\s*)?<function={_TOOL_NAME}>(?P<xml>.*?)(?:</function>|\Z)(?:\s*</tool_call>)?",
        # GLM: <tool_call>read_file <arg_key>path</arg_key> <arg_value>a.txt</arg_value></tool_call>
        rf"<tool_call>\s*{_TOOL_NAME}\s*(?P<xml>(?:<arg_key>.*?)?)(?:</tool_call>|\Z)",
        # Claude's own form, which other models learned from texts; MiniMax, DeepSeek
        rf"<(?:｜DSML｜)?invoke name=\"{_TOOL_NAME}\">(?P<xml>.*?)</(?:｜DSML｜)?invoke>",
        # DeepSeek: <｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file … {…}<｜tool▁call▁end｜>
        rf"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?{_TOOL_NAME}(?:<｜tool▁sep｜>)?\s*(?:```json\s*)?"
        r"(?P<args>\{.*?\})\s*(?:```)?\s*<｜tool▁call▁end｜>",
        # Kimi: <|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{…}<|tool_call_end|>
        rf"<\|tool_call_begin\|>\s*{_TOOL_NAME}\s*<\|tool_call_argument_begin\|>(?P<args>.*?)<\|tool_call_end\|>",
        # gpt-oss: <|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{…}<|call|>
        rf"(?:<\|start\|>assistant)?<\|channel\|>\w+ to={_TOOL_NAME}\s*(?:<\|constrain\|>\s*json)?\s*"
        r"<\|message\|>(?P<args>.*?)(?:<\|call\|>|\Z)",
        # Mistral: [TOOL_CALLS]read_file[ARGS]{…}, or a list
        rf"\[TOOL_CALLS\]\s*{_TOOL_NAME}\s*(?:\[ARGS\])?\s*(?P<args>\{{.*?\}})\s*(?=\[TOOL_CALLS\]|\Z)",
        r"\[TOOL_CALLS\]\s*(?P<json>\[.*\])\s*\Z",
        # Cohere: <|START_ACTION|>[{"tool_name": …, "parameters": …}]<|END_ACTION|>
        r"<\|START_ACTION\|>\s*(?P<json>[\[{].*?[\]}])\s*(?:<\|END_ACTION\|>|\Z)",
        # Apertus: <|tools_prefix|>[{"read_file": {…}}]<|tools_suffix|>
        r"<\|tools_prefix\|>\s*(?P<keyed>\[.*?\])\s*(?:<\|tools_suffix\|>|\Z)",
        # Gemma: <start_function_call>call:read_file{path:<escape>a.txt<escape>}<end_function_call>
        rf"<start_function_call>\s*call:{_TOOL_NAME}\{{(?P<gemma>.*?)\}}\s*(?:<end_function_call>|\Z)",
        # Gemini, Gemma: ```tool_code print(default_api.read_file(path="a.txt")) ```; Llama 4: [read_file(path="a.txt")]
        r"```tool_code\s*(?P<python>.*?)\s*(?:```|\Z)",
        r"\A\s*(?P<python>\[\w[\w.]*\(.*\)\])\s*\Z",
        # ReAct: Action: read_file, then Action Input: {…}, and the result that the model imagines
        rf"Action:[ \t]*{_TOOL_NAME}[ \t]*\n+[ \t]*Action Input:[ \t]*"
        rf"(?P<args>\{{.*?\}})\s*(?=\n[ \t]*(?:Action|Observation|Thought):|\Z)",
        # nothing but the call as JSON, in a fence or not
        r"\A\s*(?:```(?:json|tool_call)?\s*)?(?P<json>[\[{].*[\]}])\s*(?:```)?\s*\Z",
    )
)
_LEFT_OVER = regex.compile(
    r"\s|Observation:\s*\Z|</?(?:｜DSML｜|minimax:|seed:)?(?:tool_calls?|function_calls|tools)>|<[|｜](?:tool[_▁]calls?(?:_section)?[_▁](?:begin|end)|end|eom_id|im_end|return)[|｜]>"
)
_PARAMETERS = (
    regex.compile(
        r"<(?:｜DSML｜)?parameter(?:=|\s+name=\")(?P<key>[^>\"]+)\"?[^>]*>\n?(?P<value>.*?)\n?</(?:｜DSML｜)?parameter>",
        regex.DOTALL,
    ),
    regex.compile(r"<arg_key>\s*(?P<key>.*?)\s*</arg_key>\s*<arg_value>\n?(?P<value>.*?)\n?</arg_value>", regex.DOTALL),
)

OPENERS = (
    *(
        "<tool_call>",
        "<|tool_call|>",
        "<|python_tag|>",
        "<function=",
        "<function_calls>",
        "<invoke name=",
        "<minimax:tool_call>",
        "<seed:tool_call>",
        "<longcat_tool_call>",
        "<TOOLCALL>",
        "<tool_calls>",
        "<｜DSML｜",
        "[TOOL_CALLS]",
        "<|START_ACTION|>",
        "<|tools_prefix|>",
        "<start_function_call>",
        "```tool_code",
    ),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
    *("<|channel|>commentary to=", "<|start|>assistant<|channel|>commentary to="),
)
"""The beginnings of a call written as text."""

_BARE = regex.compile(
    r"\s*(?:```(?:json|tool_call)?\s*)?\[?\s*\{\s*\"(?:name|type|function|tool|parameters|arguments)\"\s*:"
)


def may_be_bare(text: str) -> bool:
    """Whether the beginning of a reply may continue as a call that consists of JSON only."""
    return bool(_BARE.match(text, partial=True))


def calls_in(text: str, offered: Offered) -> list[LooseCall]:
    """The calls in a text that consists only of calls to offered tools; none where it contains anything else."""
    deadline = monotonic() + MAX_READING_S
    for pattern in _CALLS:
        try:
            matches = list(pattern.finditer(text, timeout=max(0.001, deadline - monotonic())))
        except TimeoutError:
            return []
        between = [text[first.end() : second.start()] for first, second in pairwise(matches)]
        if not matches or _LEFT_OVER.sub(
            "", "".join((text[: matches[0].start()], *between, text[matches[-1].end() :]))
        ):
            continue
        calls = [call for match in matches for call in _parse_calls(match.groupdict(), offered)]
        if calls and all(call.name in offered for call in calls):
            return calls
    return []


def _parse_calls(parts: Mapping[str, str | None], offered: Offered) -> Iterator[LooseCall]:
    """The calls in one match of a pattern in `_CALLS`; `parts` are its named groups."""
    if (text := parts.get("json")) is not None:
        yield from (call for value in _values(text) for call in _of_json(value, offered))
        return
    if (text := parts.get("keyed")) is not None:
        pairs = (
            pair for value in _values(text) if isinstance(value, dict) for pair in cast("dict[str, Any]", value).items()
        )
        yield from (LooseCall(true_name(name, offered), json.dumps(fields)) for name, fields in pairs)
        return
    if (text := parts.get("python")) is not None:
        yield from _of_python(text, offered)
        return
    name = true_name(parts.get("name") or "", offered)
    if (text := parts.get("gemma")) is not None:
        yield LooseCall(name, json.dumps(_of_gemma(text), ensure_ascii=False))
        return
    xml = parts.get("xml")
    if xml is not None and not xml.lstrip().startswith("{"):
        yield LooseCall(name, json.dumps(_of_xml(xml, offered.get(name, {})), ensure_ascii=False))
        return
    for arguments in true_arguments(parts.get("args") or xml or ""):
        yield LooseCall(name, arguments)


def _values(text: str) -> Iterable[Any]:
    """The JSON values in a text: itself, the items of a list, or the objects in it."""
    try:
        value = _READER.decode(text)
    except (ValueError, RecursionError):
        return list(_objects(text))
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _of_json(value: object, offered: Offered) -> Iterator[LooseCall]:
    """The call in `{"name": …, "arguments": …}`, also with `parameters` instead of `arguments`, or inside `function`."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    inner = fields.get("function")
    fields = cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields
    name = fields.get("name") or (inner if isinstance(inner, str) else fields.get("tool") or fields.get("tool_name"))
    given = next((fields[key] for key in ("arguments", "parameters", "args", "input") if key in fields), {})
    if isinstance(name, str):
        arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        yield LooseCall(true_name(name, offered), true_arguments(arguments)[0])


def _of_python(text: str, offered: Offered) -> Iterator[LooseCall]:
    """Calls written as Python expressions, alone, in a list or in `print`. Arguments are literals passed by name, or a single
    positional one for a tool with one parameter. No calls at all where the text contains anything else."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    calls: list[LooseCall] = []
    nodes: list[ast.expr | None] = [line.value if isinstance(line, ast.Expr) else None for line in body]
    while nodes:
        node = nodes.pop(0)
        if isinstance(node, ast.List):
            nodes = [*node.elts, *nodes]
            continue
        if not isinstance(node, ast.Call):
            return
        name = ast.unparse(node.func)
        if name == "print" and len(node.args) == 1 and not node.keywords:
            nodes.insert(0, node.args[0])
            continue
        tool = true_name(name, offered)
        keys = list(offered.get(tool, {}).get("properties") or {})
        try:
            fields = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
            fields |= {keys[0]: ast.literal_eval(node.args[0])} if len(node.args) == 1 and len(keys) == 1 else {}
            arguments = json.dumps(fields, ensure_ascii=False)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return
        if None in fields or (node.args and len(fields) == len(node.keywords)):
            return  # `**x`, or positional arguments of unknown names
        calls.append(LooseCall(tool, arguments))
    yield from calls


_GEMMA_FIELD = regex.compile(r"(?P<key>\w+):(?:<escape>(?P<text>.*?)<escape>|(?P<value>[^,<]*))(?:,|\Z)", regex.DOTALL)


def _of_gemma(text: str) -> dict[str, Any]:
    """The arguments in Gemma's form, such as `path:<escape>a.txt<escape>,lines:3`."""
    fields: dict[str, Any] = {}
    for found in _GEMMA_FIELD.finditer(text):
        value: Any = found["text"]
        if value is None:
            value = found["value"].strip()
            with suppress(ValueError, RecursionError):
                value = _READER.decode(value)
        fields[found["key"]] = value
    return fields


def _of_xml(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in tags: strings unchanged, values of other types parsed as JSON where possible."""
    properties = schema.get("properties") or {}
    fields: dict[str, Any] = {}
    for pattern in _PARAMETERS:
        for found in pattern.finditer(text):
            key, value = found["key"].strip(), found["value"]
            kind = (properties.get(key) or {}).get("type", "string")
            if kind != "string":
                with suppress(ValueError, RecursionError):
                    value = _READER.decode(value.strip())
            fields[key] = value
    return fields


class CallHolder:
    """Holds back text that may be tool calls, from their beginning to the end of the reply. Holds back nothing where no tools are
    offered, nor text in a code fence."""

    def __init__(self, offered: Offered) -> None:
        self._offered = offered
        self._openers = (*OPENERS, *(f"Action: {name}" for name in offered), *(f"[{name}(" for name in offered))
        self._held = ""
        self._began = False
        self._fences = 0

    def feed(self, text: str) -> str:
        """Add text; the part of what is held that is certainly no call."""
        if not self._offered:
            return text
        self._held += text
        if not self._began and may_be_bare(self._held):
            return ""
        start = self._find_start()
        passed, self._held = self._held[:start], self._held[start:]
        self._began = self._began or bool(passed.strip())
        self._fences += passed.count("```")
        return passed

    def calls(self) -> tuple[str, list[LooseCall]]:
        """The calls in the held text, when the reply is over; the text itself, with no calls, where it is none after all."""
        held, self._held = self._held, ""
        calls = calls_in(held, self._offered) if held.strip() else []
        return ("" if calls else held, calls)

    def _find_start(self) -> int:
        """The position in the held text where a call begins, or may begin once more text arrives; its length where none does."""
        starts = [start for opener in self._openers if (start := self._held.find(opener)) >= 0]
        starts += [len(self._held) - n for opener in self._openers if (n := _overlap(self._held, opener))]
        start = min(starts, default=len(self._held))
        fenced = (self._fences + self._held[:start].count("```")) % 2
        return len(self._held) if fenced else start


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of `text` may be the beginning of `mark`."""
    return next((n for n in range(min(len(text), len(mark) - 1), 0, -1) if mark.startswith(text[-n:])), 0)
