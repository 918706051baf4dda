"""A second, lenient reading of calls: names with marks on them, arguments that are nearly JSON, calls written as text.

Strict servers never need it. What it reads is what the model meant beyond doubt; all else stays as it came, and the model is told
what is wrong with it. Pure.
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
"""Characters of arguments that are looked at twice."""

MAX_READING_S = 0.5
"""Seconds that a reply is searched for calls: a text made for it would keep the expressions busy for minutes."""

Offered = Mapping[str, Mapping[str, Any]]
"""The tools of a request: the schema of each by its name."""


class LooseCall(NamedTuple):
    """A call that was read out of a text."""

    name: str
    arguments: str


def offered_in(arguments: Mapping[str, Any]) -> Offered:
    """The tools of a request in litellm's form."""
    functions = (tool.get("function") or {} for tool in arguments.get("tools") or ())
    return {function["name"]: function.get("parameters") or {} for function in functions}


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_AROUND = re.compile(
    r"<\|.*|\s*\(.*|:\d+$|^(?:to=)?(?:functions|function|tools|tool|default_api|namespace)[.:/]+|[\"'`]", re.DOTALL
)
"""What models write around a name: marks of gpt-oss (`read_file<|channel|>commentary`), Kimi's number (`functions.read_file:0`),
Gemini's module (`default_api.read_file`), brackets, quotes."""


def true_name(name: str, offered: Collection[str]) -> str:
    """The tool that is meant: of this name without what stands around it, or the only one that differs in capitals and
    signs (`readFile`, `read-file`), or in the server before its name. Itself where that is none."""
    if name in offered or not offered:
        return name
    bare = name.strip()
    while (shorter := _AROUND.sub("", bare).strip()) != bare:
        bare = shorter
    if bare in offered:
        return bare
    wanted = _letters(bare)
    same = [tool for tool in offered if _letters(tool) == wanted]
    ends = [tool for tool in offered if _letters(tool.rpartition("__")[2]) == wanted and "__" in tool]
    found = same or ends or [tool for tool in offered if "__" in tool and wanted == f"mcp{_letters(tool)}"]
    return found[0] if wanted and len(found) == 1 else name


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


# ── arguments ───────────────────────────────────────────────────────────────────────────────────────────────────────

_BEFORE = re.compile(r"\A(?:\s|\ufeff|```\w*|<\|[^|]*\|>|json\b|<tool_call>|=)+")
_BEHIND = re.compile(r"(?:\s|```|<\|[^|]*\|>|</?tool_call>|</function>|;)+\Z")
_NOTHING = {"", "null", "None", "undefined"}
_READER = json.JSONDecoder(strict=False)  # raw line breaks inside texts, as small models write them


def is_whole(arguments: str) -> bool:
    """They are a JSON object as they stand, and not one of nothing."""
    return bool(arguments.strip()) and fields_of(arguments) is not None


def true_arguments(arguments: str) -> list[str]:
    """The arguments of each call in this text as JSON objects, several where calls were glued into one; the text itself, alone,
    where it cannot be read."""
    if is_whole(arguments) or not arguments or len(arguments) > MAX_REPAIRED:
        return [arguments]
    text = _BEHIND.sub("", _BEFORE.sub("", arguments.replace("\0", "")))
    if text in _NOTHING:
        return ["{}"]
    found = list(_objects(text)) or list(_literal(text)) or list(_objects(_as_json(text)))
    full = [fields for fields in found if fields] or found[:1]
    written = list(dict.fromkeys(json.dumps(fields, ensure_ascii=False) for fields in full))
    return written if written and all(fields_of(one) is not None for one in written) else [arguments]


def _objects(text: str, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The JSON objects of which a text consists, nothing else between them than what separates; those inside JSON texts, and the
    only one of a list, as well. None where there is anything else."""
    place, found = 0, list[dict[str, Any]]()
    while place < len(text):
        try:
            value, place = _READER.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        if isinstance(value, str) and depth < 3:
            inner = list(_objects(value.strip(), depth + 1))
            value = inner[0] if len(inner) == 1 else value
        if isinstance(value, list) and len(cast("list[Any]", value)) == 1:
            value = cast("list[Any]", value)[0]
        if not isinstance(value, dict):
            return
        found.append(cast("dict[str, Any]", value))
        behind = re.compile(r"[\s,;]*").match(text, place)
        place = behind.end() if behind else place
        if text[place:].strip("}] \n") == "":  # a bracket too many at the end
            break
    yield from found


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
    """JSON5 as models write it (bare names before a colon, single quotes, comments, commas too many) as JSON, brackets that were
    left open at its end closed; empty where it holds anything else, or a text is left open."""
    if not text.startswith("{") or len(text) > 100_000:
        return ""
    parts: list[str] = []
    open_: list[str] = []
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            return ""
        place, token = found.end(), found.group()
        if found["text"]:
            parts.append(json.dumps(ast.literal_eval(token)) if token[0] == "'" else token)
        elif found["name"]:
            key = text[place:].lstrip().startswith(":")
            if not key and token not in _WORDS:
                return ""
            parts.append(json.dumps(token) if key else _WORDS[token])
        elif found["sign"]:
            if token in "}]":
                if not open_ or _CLOSERS[open_.pop()] != token:
                    return ""
                if parts[-1] == ",":
                    parts.pop()
            elif token in "{[":
                open_.append(token)
            parts.append(token)
        elif found["number"]:
            parts.append(token)
    if parts[-1] == ",":
        parts.pop()
    return "".join((*parts, *(_CLOSERS[bracket] for bracket in reversed(open_))))


def _literal(text: str) -> Iterator[dict[str, Any]]:
    """An object in Python's spelling: single quotes, True, None."""
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
        # Claude's own form, learned from texts; MiniMax, DeepSeek
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
        # ReAct: Action: read_file, then Action Input: {…}, and what the model expects to see next
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
"""What a call written as text begins with."""

_BARE = regex.compile(
    r"\s*(?:```(?:json|tool_call)?\s*)?\[?\s*\{\s*\"(?:name|type|function|tool|parameters|arguments)\"\s*:"
)


def may_be_bare(text: str) -> bool:
    """What a reply begins with may become a call that is nothing but JSON."""
    return bool(_BARE.match(text, partial=True))


def calls_in(text: str, offered: Offered) -> list[LooseCall]:
    """The calls of which a text consists, each to a tool on offer; none where it holds anything else."""
    ends = monotonic() + MAX_READING_S
    for pattern in _CALLS:
        try:
            found = list(pattern.finditer(text, timeout=max(0.001, ends - monotonic())))
        except TimeoutError:
            return []
        between = [text[one.end() : two.start()] for one, two in pairwise(found)]
        if not found or _LEFT_OVER.sub("", "".join((text[: found[0].start()], *between, text[found[-1].end() :]))):
            continue
        calls = [call for one in found for call in _parse_calls(one.groupdict(), offered)]
        if calls and all(call.name in offered for call in calls):
            return calls
    return []


def _parse_calls(parts: Mapping[str, str | None], offered: Offered) -> Iterator[LooseCall]:
    if (given := parts.get("json")) is not None:
        yield from (call for value in _values(given) for call in _of_json(value, offered))
        return
    if (given := parts.get("keyed")) is not None:
        pairs = (
            pair
            for value in _values(given)
            if isinstance(value, dict)
            for pair in cast("dict[str, Any]", value).items()
        )
        yield from (LooseCall(true_name(name, offered), json.dumps(fields)) for name, fields in pairs)
        return
    if (given := parts.get("python")) is not None:
        yield from _of_python(given, offered)
        return
    name = true_name(parts.get("name") or "", offered)
    if (given := parts.get("gemma")) is not None:
        yield LooseCall(name, json.dumps(_of_gemma(given), ensure_ascii=False))
        return
    xml = parts.get("xml")
    if xml is not None and not xml.lstrip().startswith("{"):
        yield LooseCall(name, json.dumps(_of_xml(xml, offered.get(name, {})), ensure_ascii=False))
        return
    for arguments in true_arguments(parts.get("args") or xml or ""):
        yield LooseCall(name, arguments)


def _values(text: str) -> Iterable[Any]:
    try:
        value = _READER.decode(text)
    except (ValueError, RecursionError):
        return list(_objects(text))
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _of_json(value: object, offered: Offered) -> Iterator[LooseCall]:
    """`{"name": …, "arguments": …}`, with `parameters` for the latter, or inside `function`."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    inner = fields.get("function")
    fields = cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields
    name = fields.get("name") or (inner if isinstance(inner, str) else fields.get("tool") or fields.get("tool_name"))
    given = next((fields[key] for key in ("arguments", "parameters", "args", "input") if key in fields), {})
    if isinstance(name, str):
        arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        yield LooseCall(true_name(name, offered), true_arguments(arguments)[0])


def _of_python(text: str, offered: Offered) -> Iterator[LooseCall]:
    """Calls as Python: each an expression, in a list or in `print` or not, its arguments literals by name, or one alone for a
    tool with one parameter. None where anything else stands there."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    found: list[LooseCall] = []
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
            written = json.dumps(fields, ensure_ascii=False)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return
        if None in fields or (node.args and len(fields) == len(node.keywords)):
            return  # `**x`, or arguments that nobody can name
        found.append(LooseCall(tool, written))
    yield from found


_GEMMA_FIELD = regex.compile(r"(?P<key>\w+):(?:<escape>(?P<text>.*?)<escape>|(?P<value>[^,<]*))(?:,|\Z)", regex.DOTALL)


def _of_gemma(text: str) -> dict[str, Any]:
    """`path:<escape>a.txt<escape>,lines:3`."""
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
    """Arguments between tags: texts as they are, all else as JSON where it is."""
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
    """Holds back what may be calls written as text, from where they begin to the end of the reply. Nothing where no tools are on
    offer, nor what stands in a fence."""

    def __init__(self, offered: Offered) -> None:
        self._offered = offered
        self._openers = (*OPENERS, *(f"Action: {name}" for name in offered), *(f"[{name}(" for name in offered))
        self._held = ""
        self._began = False
        self._fences = 0

    def feed(self, text: str) -> str:
        """What of the text so far is none for certain."""
        if not self._offered:
            return text
        self._held += text
        if not self._began and may_be_bare(self._held):
            return ""
        place = self._opened()
        passed, self._held = self._held[:place], self._held[place:]
        self._began = self._began or bool(passed.strip())
        self._fences += passed.count("```")
        return passed

    def calls(self) -> tuple[str, list[LooseCall]]:
        """When the reply is over: the text that was held and is none after all, and the calls."""
        held, self._held = self._held, ""
        calls = calls_in(held, self._offered) if held.strip() else []
        return ("" if calls else held, calls)

    def _opened(self) -> int:
        """Where a call begins, or may begin with what comes; the length of what is held where it does not."""
        places = [place for opener in self._openers if (place := self._held.find(opener)) >= 0]
        places += [len(self._held) - n for opener in self._openers if (n := _overlap(self._held, opener))]
        place = min(places, default=len(self._held))
        fenced = (self._fences + self._held[:place].count("```")) % 2
        return len(self._held) if fenced else place


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of `text` may be the beginning of `mark`."""
    return next((n for n in range(min(len(text), len(mark) - 1), 0, -1) if mark.startswith(text[-n:])), 0)
