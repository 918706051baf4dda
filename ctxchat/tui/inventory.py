"""What is in the window, row by row, in the order it is sent and in the gauge's own tokens. Pure; knows no widget."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ctxchat.core.figures import Figures
from ctxchat.core.messages import ToolCall
from ctxchat.core.sections import SECTIONS, SectionName
from ctxchat.core.tokens import apportion
from ctxchat.core.view import Item, View
from ctxchat.tui.text import one_line
from ctxchat.tui.tool_words import decoded, key_argument

WIDEST = 160
"""Characters of a row's own words that are kept."""


class Row(msgspec.Struct, frozen=True):
    """One thing the window holds. `number` is its place from 1; rows of a section add up to what the gauge shows for it.

    `group` is empty for what no verb can touch (system prompt, tools, memory); `cached` where the server said it had it.
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


def inventory(view: View, figures: Figures) -> tuple[Row, ...]:
    """The rows of a view: tools first, as providers place them, then message by message.

    What the figures hold beyond the view (a draft, a reply that is arriving) belongs to no row yet.
    """
    calls: dict[str, ToolCall] = {}
    rows = [
        Row(0, "tools", "tool", one_line(f"{tool.name}  {tool.description}", WIDEST), "tools", tokens)
        for tool, tokens in zip(view.tools, view.tool_tokens, strict=True)
    ]
    for item in view.items:
        rows.append(_row(item, calls))
        calls.update((call.id, call) for call in item.message.calls)
    return _placed(_scaled(rows, view, figures), figures.cached)


def largest(rows: Sequence[Row], count: int) -> list[Row]:
    """The rows that hold most, the biggest first; the newest of equals."""
    return sorted(rows, key=lambda row: (-row.tokens, -row.number))[:count]


def _scaled(rows: list[Row], view: View, figures: Figures) -> list[Row]:
    """Raw counts made the gauge's: each section's tokens spread over its rows."""
    scaled = list(rows)
    for name in {row.section for row in rows}:
        places = [i for i, row in enumerate(rows) if row.section == name]
        held = _settled(view, figures) if name == "assistant" else figures.tokens(name)
        for i, tokens in zip(places, apportion(held, [rows[i].tokens for i in places]), strict=True):
            scaled[i] = msgspec.structs.replace(rows[i], tokens=tokens)
    return scaled


def _settled(view: View, figures: Figures) -> int:
    """Tokens of the answers that are whole: a reply that is still arriving is in the gauge's figure but in no row."""
    raw, shown = view.weights()["assistant"], figures.tokens("assistant")
    rest_raw, rest_shown = view.raw - raw, figures.used - figures.tokens("draft") - shown
    if rest_raw <= 0:
        return shown
    expected = round(raw * rest_shown / rest_raw)
    return expected if shown > expected + len(SECTIONS) else shown


def _placed(rows: Sequence[Row], cached: int) -> tuple[Row, ...]:
    placed: list[Row] = []
    running = 0
    for number, row in enumerate(rows, 1):
        running += row.tokens
        placed.append(msgspec.structs.replace(row, number=number, running=running, cached=0 < running <= cached))
    return tuple(placed)


def _row(item: Item, calls: dict[str, ToolCall]) -> Row:
    kind, what, source = _words(item, calls)
    return Row(0, item.section, kind, what, source, item.tokens, item.turn, 0, item.group, item.pinned)


def _words(item: Item, calls: dict[str, ToolCall]) -> tuple[str, str, str]:
    message = item.message
    text = one_line(message.text, WIDEST)
    match item.section:
        case "system" | "memory" | "injected":
            return item.section, text, one_line(item.source, 40)
        case "summary":
            return "summary", text, "compaction"
    if message.role == "tool":
        call = calls.get(message.call_id)
        name = one_line((call.name if call else message.name) or "tool", 40)
        argument = key_argument(decoded(call.arguments)) if call else text
        return "result", f"{name} {argument}".rstrip(), name
    if message.role == "assistant":
        words = [text] if text else []
        words += [f"{one_line(c.name, 40)} {key_argument(decoded(c.arguments))}".rstrip() for c in message.calls]
        return ("call" if message.calls else "answer"), "  ".join(words) or "reasoning", "model"
    if item.kind in ("note", "stray"):
        return "note", text, one_line(item.source or "note", 40)
    return "you", text, "you"
