"""From the record to blocks: what stands in the transcript for a group, a compaction or a rewind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxchat.core.events import ToolFinished
from ctxchat.core.messages import Group, Message, ToolCall, attached, readable_words
from ctxchat.core.notes import CONTEXT_NOTE
from ctxchat.core.tooluse import use_of
from ctxchat.presentation.diffs import edit_diff
from ctxchat.presentation.history import REWOUND, Shown, note_words
from ctxchat.presentation.tool_words import decoded, ending
from ctxchat.tui.transcript.blocks import (
    Block,
    CompactionMark,
    NoticeBlock,
    QuoteBlock,
    ReplyBlock,
    ThinkingBlock,
    UserBlock,
)
from ctxchat.tui.transcript.tool_block import ToolBlock

Tokens = Mapping[int | tuple[int, int], int]
"""Tokens of the messages in the view, by their place in the record; of their parts, by that and their place in the message."""


def blocks_for(shown: Shown, tokens: Tokens) -> list[Block]:
    """The blocks of one item, top to bottom."""
    if shown.change and shown.change.kind == "rewind":
        return [NoticeBlock("info", REWOUND)]
    if shown.change:
        return [CompactionMark(shown.change, shown.facts_back)]
    group = shown.group
    if group is None:
        return []
    if group.kind == "user":
        return [
            UserBlock(
                readable_words(group.first),
                group.first.at,
                attached=attached(group.first.content, _parts(group, tokens)),
            )
        ]
    if group.kind in {"reply", "round"}:
        return _round(group, tokens, shown.files)
    if group.source.startswith(CONTEXT_NOTE):
        return [NoticeBlock("info", note_words(group))]
    return [QuoteBlock(group)]


def _round(group: Group, tokens: Tokens, files: Mapping[str, str]) -> list[Block]:
    message = group.first
    blocks: list[Block] = []
    if message.reasoning and message.reasoning.text.strip():
        blocks.append(ThinkingBlock(message.reasoning.text))
    if message.text.strip() or message.interrupted:
        blocks.append(ReplyBlock(message.text, interrupted=message.interrupted))
    results = [m for m in group.messages[1:] if m.role == "tool"]
    for place, call in enumerate(message.calls):
        result = results[place] if place < len(results) else None
        finished = finished_call(call, result, tokens)
        blocks.append(ToolBlock(call.id, call.name, decoded(call.arguments), finished, files.get(call.id, "")))
    return blocks


def set_block_tokens(shown: Shown, blocks: Sequence[Block], tokens: Tokens) -> None:
    """What stands there for an item says what it weighs now: its results, and what went along with it."""
    group = shown.group
    if group is None:
        return
    results = (m for m in group.messages if m.role == "tool")
    for block in blocks:
        if isinstance(block, ToolBlock):
            result = next(results, None)
            block.set_tokens(tokens.get(result.seq, 0) if result else 0)
        elif isinstance(block, UserBlock) and block.attached:
            block.set_attached(attached(group.first.content, _parts(group, tokens)))


def _parts(group: Group, tokens: Tokens) -> list[int]:
    seq = group.first.seq
    return [tokens.get((seq, place), 0) for place in range(len(group.first.content))]


def finished_call(call: ToolCall, result: Message | None, tokens: Tokens) -> ToolFinished:
    """The record keeps what the model saw; how long it took was only on screen, and where in its file an edit was."""
    status, code = ending(call, result)
    diff = edit_diff(decoded(call.arguments)) if status == "ok" and use_of(call).kind == "change" else ""
    text, weight = (result.text, tokens.get(result.seq, 0)) if result else ("", 0)
    return ToolFinished(call.id, call.name, status, text, weight, 0.0, exit_code=code, diff=diff)
