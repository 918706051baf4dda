"""Notes: messages of the record that tell the model what has changed in its context sources (instructions, files, tools) since
the head was sent.

A note stays where it was first sent, so that every request begins with the one before. What the model knows of a source is what
the newest note in view says of it, else what the head says. Pure: is given the present texts, and reads no source itself.
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
"""Prefix of the `source` of such a note; the ids of the context sources it tells of follow."""

CONTINUE = "continue"
"""The source of a note that asks to go on with a reply that was cut off."""

TOOLS = "tools"
"""The source id under which a note lists tools that were added or removed after the head was sent."""

CONTINUE_REQUEST = (
    "[Your last message was cut off. Go on exactly where it stops, in the middle of a word if need be: "
    "no greeting, no comment, nothing of it again.]"
)
"""The text that asks a model to go on with a reply that was cut off."""

MISSING_CALL = (
    "[Your last message ended as if it called a tool, but no call came with it. Call it, or say that you are done.]"
)
"""The text for a model that announced a call and did not make one."""

MIN_KEPT_SHARE = 0.5
"""The share of a text's lines that must be the same for its change to be told line by line instead of as a whole."""

_GONE = "gone: "
"""The beginning of a line of a tools block (see `tools_block`) that names a tool which no longer exists."""


def context_note(seq: int, at: str, turn: int, text: str, context: Sequence[ContextBlock]) -> Group:
    """A note as a group of the record. `context` holds the whole present text of each source it tells of, for later
    comparison."""
    message = Message(seq=seq, role="user", content=text, at=at, synthetic=True)
    source = CONTEXT_NOTE + (", ".join(block.source_id for block in context) or CONTINUE)
    return Group(f"g{seq}", "note", (message,), turn, source, tuple(context))


def known_context(head: Head, ledger: Ledger) -> dict[str, str]:
    """The text that the model was last told of each source, by source id: by a note that it still sees, else by the head."""
    known = head.texts_by_source
    for entry in ledger.live():
        if entry.group and entry.group.context:
            known.update((block.source_id, block.text) for block in entry.group.context)
    return known


def without_tool_told(head: Head, ledger: Ledger) -> Head:
    """The head without the sources that a tool call in view shows already (the to-do list is shown by the tool that writes
    it)."""
    shown = _shown_by_tools(ledger, {block.source_id for block in head.context})
    return msgspec.structs.replace(head, context=tuple(b for b in head.context if b.source_id not in shown))


def change_note(
    known: Mapping[str, str], now: Iterable[ContextBlock], ledger: Ledger
) -> tuple[str, tuple[ContextBlock, ...]]:
    """The text of a note on the sources whose text `now` differs from what is `known`, and the present text of those sources;
    both empty where none differs. A source that a tool call in view shows already (the to-do list) is left out."""
    texts = {block.source_id: block.text for block in now}
    shown = _shown_by_tools(ledger, {*known, *texts})
    parts: list[str] = []
    changed: list[ContextBlock] = []
    for source in dict.fromkeys((*known, *texts)):
        before, text = known.get(source, ""), texts.get(source, "")
        if text == before or source in shown:
            continue
        kind, change = ("tools", tools_change(before, text)) if source == TOOLS else difference(before, text)
        parts.append(f'<context source="{source}" change="{kind}">\n{change}\n</context>'.replace("\n\n</", "\n</"))
        changed.append(ContextBlock(source, text))
    return "\n".join(parts), tuple(changed)


def _shown_by_tools(ledger: Ledger, sources: Collection[str]) -> set[str]:
    """The sources whose present text a tool call in view shows: a tool of the same name writes the source, and its newest
    successful call is in view unchanged."""
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
    """How a text changed, for a model: the form (`new`, `gone`, `lines`, `whole`), and the added and removed lines, or the whole
    new text where that is shorter."""
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
    by_lines = "\n".join(lines)
    return ("lines", by_lines) if len(by_lines) < len(after) else ("whole", after)


def tools_block(head: Sequence[ToolSpec], now: Sequence[ToolSpec]) -> ContextBlock:
    """The differences between the tools of the head and those of now, one a line: the schema of each new or changed tool, and
    `gone: NAME` for each removed one."""
    in_head = {tool.name: tool for tool in head}
    present = {tool.name for tool in now}
    lines = [_GONE + tool.name for tool in head if tool.name not in present]
    lines += [tool.schema for tool in now if in_head.get(tool.name) != tool]
    return ContextBlock(TOOLS, "\n".join(lines))


def described_tools(head: Head, ledger: Ledger) -> frozenset[str]:
    """The names of the tools whose schema the model has: in the head, or in a note that it still sees."""
    noted = _by_name(known_context(head, ledger).get(TOOLS, ""))
    return frozenset({*(tool.name for tool in head.tools), *noted})


def tools_change(told: str, now: str) -> str:
    """The text about tools that were added or removed between the tools block that a model was `told` of and the one of `now`;
    empty where none was."""
    before, after = _by_name(told), _by_name(now)
    added = [line for name, line in after.items() if line != before.get(name) and line != _GONE + name]
    removed = [name for name, line in after.items() if line == _GONE + name != before.get(name)]
    removed += [name for name, line in before.items() if name not in after and line != _GONE + name]
    back = [name for name, line in before.items() if name not in after and line == _GONE + name]
    parts = [f"[new tools; call them with {CALL_TOOL}(name, arguments)]", *added] if added else []
    parts += [f"[no longer there: {', '.join(removed)}]"] if removed else []
    parts += [f"[there again: {', '.join(back)}]"] if back else []
    return "\n".join(parts)


def _by_name(block: str) -> dict[str, str]:
    """The lines of a tools block, by the name of the tool."""
    return {
        line.removeprefix(_GONE) if line.startswith(_GONE) else str(msgspec.json.decode(line)["name"]): line
        for line in block.splitlines()
    }
