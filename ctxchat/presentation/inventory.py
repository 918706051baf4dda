"""Lists the content of the window row by row, in the order it is sent, with the gauge's token counts. Pure; knows no widget."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from heapq import nlargest
from itertools import accumulate

import msgspec

from ctxchat.core import working_set
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.messages import ToolCall, own_words
from ctxchat.core.sections import SECTIONS, SectionName
from ctxchat.core.summaries import OPENING, PREFACE
from ctxchat.core.tokens import apportion
from ctxchat.core.view import Item, ToolSpec, View
from ctxchat.presentation.text import one_line, prose_line
from ctxchat.presentation.tool_words import decoded, key_argument

MAX_ROW_CHARS = 160
"""Characters of a row's text that are kept."""


class Row(msgspec.Struct, frozen=True):
    """One thing the window holds. `number` is its place from 1, `running` the tokens up to and with it, `change` what put it
    there where it is not as it was.

    Rows of a section add up to what the gauge shows for it. `group` is empty for what no verb can touch (system prompt,
    tools, memory); `cached` where the server still holds it. `message` is the number of the message in the record, 0 for none.
    """

    number: int
    section: SectionName
    kind: str
    what: str
    source: str
    tokens: int
    turn: int = 0
    running: int = 0
    group: str = ""
    pinned: bool = False
    cached: bool = False
    change: str = ""
    message: int = 0


def summed(rows: Sequence[Row]) -> list[Row]:
    """The same rows, each with the running sum of tokens."""
    totals = accumulate(row.tokens for row in rows)
    return [msgspec.structs.replace(row, running=total) for row, total in zip(rows, totals, strict=True)]


def inventory(view: View, context_usage: ContextUsage, held: int = 0) -> tuple[Row, ...]:
    """The rows of a view: tools first, as providers place them, then message by message. `held` counts the messages that
    its server still has, tools being the first.

    What the figures hold beyond the view (a draft, a reply that is arriving) belongs to no row yet.
    """
    answered = _answered(view)
    tools = apportion(_section_tokens("tools", view, context_usage), view.tool_tokens)
    rows = [_tool_row(tool, tokens) for tool, tokens in zip(view.tools, tools, strict=True)]
    for place, (item, tokens) in enumerate(zip(view.items, weighed(view, context_usage), strict=True)):
        rows.append(_row(item, answered.get(place), tokens))
    return _placed(rows, held + len(view.tools) - 1 if held else 0)


def weighed(view: View, context_usage: ContextUsage) -> list[int]:
    """The gauge's tokens of each message of a view, as its rows have them."""
    places: dict[SectionName, list[int]] = {}
    for place, item in enumerate(view.items):
        places.setdefault(item.section, []).append(place)
    tokens = [0] * len(view.items)
    for name, at in places.items():
        parts = apportion(_section_tokens(name, view, context_usage), [view.items[i].tokens for i in at])
        for place, part in zip(at, parts, strict=True):
            tokens[place] = part
    return tokens


def offenders(
    view: View, context_usage: ContextUsage, count: int, sections: Collection[SectionName] = SECTIONS
) -> list[Row]:
    """The rows that hold most in these sections, the biggest first. Cheap: looks closely at these few only."""
    raw, answered, tools = view.weights(), _answered(view), len(view.tools)
    weighed = [(n, i) for i, n in enumerate(view.tool_tokens) if "tools" in sections]
    weighed += [(item.tokens, tools + i) for i, item in enumerate(view.items) if item.section in sections]
    found: list[Row] = []
    for tokens, place in nlargest(count, weighed):
        item = view.items[place - tools] if place >= tools else None
        section = item.section if item else "tools"
        tokens = round(tokens * _section_tokens(section, view, context_usage) / max(1, raw[section]))
        row = _row(item, answered.get(place - tools), tokens) if item else _tool_row(view.tools[place], tokens)
        found.append(msgspec.structs.replace(row, number=place + 1))
    return found


def _answered(view: View) -> dict[int, ToolCall]:
    """For the place of each result, the call it answers: the latest before it with its id."""
    calls: dict[str, ToolCall] = {}
    answered: dict[int, ToolCall] = {}
    for i, item in enumerate(view.items):
        for call in item.message.calls:
            calls[call.id] = call
        if item.message.call_id in calls:
            answered[i] = calls[item.message.call_id]
    return answered


def _section_tokens(section: SectionName, view: View, context_usage: ContextUsage) -> int:
    """Tokens of a section that are in rows: a reply that is still arriving is in the gauge's figure but in no row."""
    shown = context_usage.tokens(section)
    if section != "assistant":
        return shown
    raw = view.weights()["assistant"]
    rest_raw, rest_shown = view.raw - raw, context_usage.used - context_usage.tokens("draft") - shown
    expected = round(raw * rest_shown / rest_raw) if rest_raw > 0 else shown
    return expected if shown > expected + len(SECTIONS) else shown


def _placed(rows: Sequence[Row], held: int) -> tuple[Row, ...]:
    placed: list[Row] = []
    running = 0
    for number, row in enumerate(rows, 1):
        running += row.tokens
        placed.append(msgspec.structs.replace(row, number=number, running=running, cached=number <= held))
    return tuple(placed)


def _tool_row(tool: ToolSpec, tokens: int) -> Row:
    return Row(0, "tools", "tool", one_line(f"{tool.name}: {tool.description}", MAX_ROW_CHARS), "tools", tokens)


def _row(item: Item, call: ToolCall | None, tokens: int) -> Row:
    kind, what, source = _describe_item(item, call)
    return Row(
        number=0,
        section=item.section,
        kind=kind,
        what=what,
        source=source,
        tokens=tokens,
        turn=item.turn,
        group=item.group,
        pinned=item.pinned,
        change=item.change,
        message=item.message.seq,
    )


_FILE = re.compile(r"\n\n([^\n\t:]+?)(?: \([^\n]*\))?:\n")
"""The title of a file among those that stand beside a summary; lines of the file itself begin with a number and a tab."""

_TAG = re.compile(r"\A<context source=[^>]*>\s*|\s*</context>\s*\Z")
"""The tags around injected context, which are for the model; people see its source in a column of its own."""


def _describe_item(item: Item, call: ToolCall | None) -> tuple[str, str, str]:
    """The kind, the text and the source of a row."""
    message = item.message
    text = (prose_line if message.role == "assistant" else one_line)(message.text, MAX_ROW_CHARS)
    match item.section:
        case "system" | "memory" | "injected":
            return item.section, one_line(_TAG.sub("", message.text), MAX_ROW_CHARS), one_line(item.source, 40)
        case "summary":
            body = message.text.removeprefix(OPENING).lstrip().removeprefix(PREFACE)
            return "summary", prose_line(body, MAX_ROW_CHARS), "compaction"
        case _:
            pass
    if message.text.startswith(working_set.OPENING):
        named = one_line(", ".join(_FILE.findall(message.text)), MAX_ROW_CHARS)
        return "files", f"files in work as they are on disk: {named}".removesuffix(": "), "compaction"
    if message.role == "tool":
        name = one_line((call.name if call else message.name) or "tool", 40)
        argument = key_argument(decoded(call.arguments)) if call else text
        return "result", f"{name} {argument}".rstrip(), name
    if message.role == "assistant":
        words = [text] if text else []
        words += [f"{one_line(c.name, 40)} {key_argument(decoded(c.arguments))}".rstrip() for c in message.calls]
        return ("call" if message.calls else "answer"), "  ".join(words) or "reasoning", "model"
    if item.kind in ("note", "stray"):
        return "note", text, one_line(item.source or "note", 40)
    return "you", one_line(own_words(message), MAX_ROW_CHARS) or text, "you"
