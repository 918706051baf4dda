"""Makes the blocks that show an item of the record in the transcript: a group, a compaction or a rewind."""

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
"""Tokens of each message in the view by its `seq`, and of each part of a message by `seq` and the index of the part."""


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
                attached=attached(group.first.content, _tokens_of_parts(group, tokens)),
            )
        ]
    if group.kind in {"reply", "round"}:
        return _round(group, tokens, shown.files)
    if group.source.startswith(CONTEXT_NOTE):
        return [NoticeBlock("info", note_words(group))]
    return [QuoteBlock(group)]


def _round(group: Group, tokens: Tokens, files: Mapping[str, str]) -> list[Block]:
    """The blocks of an answer of the model with its calls; `files` says by call id what a call did to files."""
    message = group.first
    blocks: list[Block] = []
    if message.reasoning and message.reasoning.text.strip():
        blocks.append(ThinkingBlock(message.reasoning.text))
    if message.text.strip() or message.interrupted:
        blocks.append(ReplyBlock(message.text, interrupted=message.interrupted))
    results = [m for m in group.messages[1:] if m.role == "tool"]
    for index, call in enumerate(message.calls):
        result = results[index] if index < len(results) else None
        finished = finished_call(call, result, tokens)
        blocks.append(ToolBlock(call.id, call.name, decoded(call.arguments), finished, files.get(call.id, "")))
    return blocks


def set_block_tokens(shown: Shown, blocks: Sequence[Block], tokens: Tokens) -> None:
    """Update the tokens that the blocks of an item show for results of calls and for attachments."""
    group = shown.group
    if group is None:
        return
    results = (m for m in group.messages if m.role == "tool")
    for block in blocks:
        if isinstance(block, ToolBlock):
            result = next(results, None)
            block.set_tokens(tokens.get(result.seq, 0) if result else 0)
        elif isinstance(block, UserBlock) and block.attached:
            block.set_attached(attached(group.first.content, _tokens_of_parts(group, tokens)))


def _tokens_of_parts(group: Group, tokens: Tokens) -> list[int]:
    seq = group.first.seq
    return [tokens.get((seq, index), 0) for index in range(len(group.first.content))]


def finished_call(call: ToolCall, result: Message | None, tokens: Tokens) -> ToolFinished:
    """The end of a call as the record has it. The record keeps only what the model saw: not how long the call took (0 seconds
    here), nor at which lines of a file an edit was."""
    status, code = ending(call, result)
    diff = edit_diff(decoded(call.arguments)) if status == "ok" and use_of(call).kind == "change" else ""
    text, size = (result.text, tokens.get(result.seq, 0)) if result else ("", 0)
    return ToolFinished(call.id, call.name, status, text, size, 0.0, exit_code=code, diff=diff)
