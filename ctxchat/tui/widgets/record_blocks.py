"""From the record to widgets: what stands in the transcript for a group or a compaction that is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.widget import Widget

from ctxchat.core.attachments import attached, spoken
from ctxchat.core.events import ToolFinished
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.tui.reading.history import Shown
from ctxchat.tui.reading.tool_words import decoded, ending
from ctxchat.tui.widgets.blocks import NoticeBlock, QuoteBlock, UserBlock
from ctxchat.tui.widgets.compaction_mark import CompactionMark
from ctxchat.tui.widgets.reply import ReplyBlock, ThinkingBlock
from ctxchat.tui.widgets.tool_block import ToolBlock

Tokens = Mapping[int | tuple[int, int], int]
"""Tokens of the messages in the view, by their place in the record; of their parts, by that and their place in the message."""


def widgets_for(shown: Shown, tokens: Tokens) -> list[Widget]:
    """The widgets of one item, top to bottom."""
    if shown.change and shown.change.kind == "rewind":
        return [
            NoticeBlock(
                "info", "Rewound to here: what was said after it is in the record, and no longer in the window."
            )
        ]
    if shown.change:
        return [CompactionMark(shown.change, shown.facts_back)]
    group = shown.group
    if group is None:
        return []
    if group.kind == "user":
        message = group.first
        weights = [tokens.get((message.seq, place), 0) for place in range(len(message.content))]
        return [UserBlock(spoken(message), message.at, attached=attached(message.content, weights))]
    if group.kind in {"reply", "round"}:
        return _round(group, tokens, shown.files)
    return [QuoteBlock(group)]


def _round(group: Group, tokens: Tokens, files: Mapping[str, str]) -> list[Widget]:
    message = group.first
    widgets: list[Widget] = []
    if message.reasoning and message.reasoning.text.strip():
        widgets.append(ThinkingBlock(message.reasoning.text))
    if message.text.strip() or message.interrupted:
        widgets.append(ReplyBlock(message.text, interrupted=message.interrupted))
    results = [m for m in group.messages[1:] if m.role == "tool"]
    for place, call in enumerate(message.calls):
        result = results[place] if place < len(results) else None
        finished = _finished(call, result, tokens)
        widgets.append(ToolBlock(call.id, call.name, decoded(call.arguments), finished, files.get(call.id, "")))
    return widgets


def weigh(shown: Shown, widgets: Sequence[Widget], tokens: Tokens) -> None:
    """The calls of an item that stands there say what their results weigh now."""
    blocks = [w for w in widgets if isinstance(w, ToolBlock)]
    results = [m for m in shown.group.messages if m.role == "tool"] if blocks and shown.group else []
    for block, result in zip(blocks, results, strict=False):
        block.weigh(tokens.get(result.seq, 0))


def _finished(call: ToolCall, result: Message | None, tokens: Tokens) -> ToolFinished:
    """The record keeps what the model saw; how long it took was only on screen."""
    status, code = ending(call, result)
    text, weight = (result.text, tokens.get(result.seq, 0)) if result else ("", 0)
    return ToolFinished(call.id, call.name, status, text, weight, 0.0, exit_code=code)
