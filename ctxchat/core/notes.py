"""Notes: what has changed around a conversation since the model was last told of it, as an entry of the record.

A note stands where it was first sent and stays there, so that every request begins with the one before. What the model was told
of a source is what its newest note in view says, else what the head says. Pure; asks nobody what there is now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from ctxchat.core.head import ContextBlock, Head, ToolSpec
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.tool_share import CALL_TOOL
from ctxchat.core.tooluse import failed

CONTEXT_NOTE = "context:"
"""How the `source` of a note on what stands around a conversation begins; behind it stand the sources it tells of."""

CONTINUE = "continue"
"""The source of a note that asks to go on with a reply that was cut off."""

TOOLS = "tools"
"""The source of what a note says of tools that came or went after the head was sent."""

CONTINUE_REQUEST = (
    "[Your last message was cut off. Go on exactly where it stops, in the middle of a word if need be: "
    "no greeting, no comment, nothing of it again.]"
)
"""How a model is asked to go on with a reply that was cut off."""

MISSING_CALL = (
    "[Your last message ended as if it called a tool, but no call came with it. Call it, or say that you are done.]"
)
"""What a model is told of a call that it announced and did not make."""

MIN_KEPT_SHARE = 0.5
"""Of the lines of a text, the share that must be the same for its change to be told line by line instead of as a whole."""


_GONE = "gone: "
"""Before the name of a tool that is no longer there, in a tools block."""


def context_note(seq: int, at: str, turn: int, text: str, context: Sequence[ContextBlock]) -> Group:
    """The note as a group of the record; `context` is what the model knows by it, whole, for later comparison."""
    message = Message(seq=seq, role="user", content=text, at=at, synthetic=True)
    source = CONTEXT_NOTE + (", ".join(block.source_id for block in context) or CONTINUE)
    return Group(f"g{seq}", "note", (message,), turn, source, tuple(context))


def known_context(head: Head, ledger: Ledger) -> dict[str, str]:
    """What the model was told last, by source: in a note that it still sees, else in the head."""
    known = head.texts_by_source
    for entry in ledger.live():
        if entry.group and entry.group.context:
            known.update((block.source_id, block.text) for block in entry.group.context)
    return known


def without_tool_told(head: Head, ledger: Ledger) -> Head:
    """The head without what a tool of the source's own name has told already, where that stands in view."""
    told = _told_by_tools(ledger, {block.source_id for block in head.context})
    return msgspec.structs.replace(head, context=tuple(b for b in head.context if b.source_id not in told))


def change_note(
    known: Mapping[str, str], now: Iterable[ContextBlock], ledger: Ledger
) -> tuple[str, tuple[ContextBlock, ...]]:
    """What there is to say of the sources that differ now, and what is known of them then; an empty text where nothing does. What
    a tool of the source's own name has told already (the to-do list) is not told again."""
    texts = {block.source_id: block.text for block in now}
    told = _told_by_tools(ledger, {*known, *texts})
    parts: list[str] = []
    news: list[ContextBlock] = []
    for source in dict.fromkeys((*known, *texts)):
        before, text = known.get(source, ""), texts.get(source, "")
        if text == before or source in told:
            continue
        kind, said = ("tools", tools_change(before, text)) if source == TOOLS else difference(before, text)
        parts.append(f'<context source="{source}" change="{kind}">\n{said}\n</context>'.replace("\n\n</", "\n</"))
        news.append(ContextBlock(source, text))
    return "\n".join(parts), tuple(news)


def _told_by_tools(ledger: Ledger, sources: Collection[str]) -> set[str]:
    """The sources whose words stand in view in a call: a tool called like a source writes it, and its newest call that succeeded
    is shown as it was made."""
    newest: dict[str, tuple[str, ToolCall]] = {}
    for group in reversed(ledger.groups_in_force):
        if group.kind != "round":
            continue
        for call, result in reversed(list(zip(group.first.calls, group.messages[1:], strict=False))):
            if call.name in sources and call.name not in newest and not failed(result):
                newest[call.name] = group.id, call
    if not newest:
        return set()
    shown = {entry.group.id: entry.group.first.calls for entry in ledger.live() if entry.group}
    return {name for name, (group, call) in newest.items() if call in shown.get(group, ())}


def difference(before: str, after: str) -> tuple[Literal["new", "gone", "lines", "whole"], str]:
    """How a text changed, for a model: in which way it is told, and the lines that came and went, or the whole where that is
    shorter."""
    if not before:
        return "new", after
    if not after:
        return "gone", ""
    old, new = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    if same < MIN_KEPT_SHARE * max(len(old), len(new)):
        return "whole", after
    lines: list[str] = []
    for kind, start, end, begin, stop in matcher.get_opcodes():
        if kind != "equal":
            lines += [f"- {line}" for line in old[start:end]]
            lines += [f"+ {line}" for line in new[begin:stop]]
    told = "\n".join(lines)
    return ("lines", told) if len(told) < len(after) else ("whole", after)


def tools_block(head: Sequence[ToolSpec], now: Sequence[ToolSpec]) -> ContextBlock:
    """The tools there are now that the head does not have as they are, and those of the head that are gone: one a line."""
    known = {tool.name: tool for tool in head}
    there = {tool.name for tool in now}
    lines = [_GONE + tool.name for tool in head if tool.name not in there]
    lines += [tool.schema for tool in now if known.get(tool.name) != tool]
    return ContextBlock(TOOLS, "\n".join(lines))


def described_tools(head: Head, ledger: Ledger) -> frozenset[str]:
    """The names of the tools that the model was told of whole: in the head, or in a note that it still sees."""
    noted = _by_name(known_context(head, ledger).get(TOOLS, ""))
    return frozenset({*(tool.name for tool in head.tools), *noted})


def tools_change(told: str, now: str) -> str:
    """What a model is told of tools that came or went; empty where nothing did."""
    before, after = _by_name(told), _by_name(now)
    came = [line for name, line in after.items() if line != before.get(name) and line != _GONE + name]
    went = [name for name, line in after.items() if line == _GONE + name != before.get(name)]
    went += [name for name, line in before.items() if name not in after and line != _GONE + name]
    back = [name for name, line in before.items() if name not in after and line == _GONE + name]
    parts = [f"[new tools; call them with {CALL_TOOL}(name, arguments)]", *came] if came else []
    parts += [f"[no longer there: {', '.join(went)}]"] if went else []
    parts += [f"[there again: {', '.join(back)}]"] if back else []
    return "\n".join(parts)


def _by_name(block: str) -> dict[str, str]:
    """The lines of a tools block by the name of their tool."""
    return {
        line.removeprefix(_GONE) if line.startswith(_GONE) else str(msgspec.json.decode(line)["name"]): line
        for line in block.splitlines()
    }
