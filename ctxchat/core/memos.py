"""Memos: short texts with a name that the agent keeps word for word through every compaction, until they are replaced or removed,
by it or by the person.

A memo stands where it was written: in the agent's call, or in the note by which the person changed it. Which ones hold is folded
from the record, so that an undo and a rewind are exact; only a compaction says them again, in its summary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.errors import ToolError
from ctxchat.core.ledger import MEMO_NOTE, Ledger
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.tool_share import CALL_TOOL
from ctxchat.core.tooluse import failed, refused

MEMO_TOOL = "memo"
"""The tool that writes one: `name` and `text`, an empty text to remove it."""

MAX_NAME_CHARS, MAX_TEXT_CHARS, MAX_TOTAL_CHARS = 40, 1_000, 6_000
"""Characters of a name, of one memo's text, and of all memos of a session with their names."""

OPENING = "Your memos, word for word. One of the same name further down holds instead:"
"""Above the memos in a summary."""

_CHANGED = '[The person changed your memo "{name}". From now on it says:]'
_REMOVED = '[The person removed your memo "{name}".]'


class Memo(msgspec.Struct, frozen=True):
    """A memo that holds. `message` is the id of the message that wrote it (`m12`), `group` that of its group; `by_person`: the
    person's words stand in it."""

    name: str
    text: str
    message: str
    group: str
    by_person: bool = False


def memos_of(ledger: Ledger) -> dict[str, Memo]:
    """The memos that hold, by name, the one written last at the end."""
    found: dict[str, Memo] = {}
    hidden = ledger.hidden_notes
    for group in ledger.groups_in_force:
        if group.id in hidden:
            continue
        for memo in _written_in(group):
            found.pop(memo.name, None)
            if memo.text:
                found[memo.name] = memo
    return found


def memos_to_carry(ledger: Ledger, fold: Collection[str]) -> tuple[Memo, ...]:
    """Those that nothing in view tells word for word once these groups are folded."""
    gone = frozenset(fold)
    shown = (e.group for e in ledger.live() if e.group and e.group.kind != "summary" and gone.isdisjoint(e.covers))
    told = {memo.name: memo.text for group in shown for memo in _written_in(group)}
    return tuple(memo for memo in memos_of(ledger).values() if told.get(memo.name) != memo.text)


def memos_text(memos: Sequence[Memo]) -> str:
    """Memos as a summary says them; empty where there are none."""
    lines = [f"- {memo.name}: {memo.text}" for memo in memos]
    return "\n".join([OPENING, *lines]) if lines else ""


def memo_note(seq: int, at: str, turn: int, name: str, text: str) -> Group:
    """The note by which the person changes a memo; an empty text removes it."""
    words = f"{_CHANGED.format(name=name)}\n{text}" if text else _REMOVED.format(name=name)
    return Group(f"g{seq}", "note", (Message(seq, "user", words, at=at),), turn, f"{MEMO_NOTE}{name}")


def checked_memo(name: str, text: str, kept: Mapping[str, str]) -> tuple[str, str]:
    """Name and text of a memo as they are kept, beside those that are `kept` already. Raises ToolError for what is too long, and
    for a removal of what is not there."""
    name, text = " ".join(name.split()), text.strip()
    if not name:
        raise ToolError("A memo needs a name.")
    if len(name) > MAX_NAME_CHARS:
        raise ToolError(
            f"The name has {len(name)} characters; a memo's has at most {MAX_NAME_CHARS}.", "Say it shorter."
        )
    if not text and name not in kept:
        names = ", ".join(kept) or "none"
        raise ToolError(f"There is no memo {name!r} to remove; there are: {names}.")
    if len(text) > MAX_TEXT_CHARS:
        raise ToolError(
            f"The text has {len(text):,} characters; a memo has at most {MAX_TEXT_CHARS:,}.", "Say it shorter."
        )
    total = len(name) + len(text) + sum(len(n) + len(t) for n, t in kept.items() if n != name)
    if text and total > MAX_TOTAL_CHARS:
        raise ToolError(
            f"With this one all memos would have {total:,} characters; there is room for {MAX_TOTAL_CHARS:,}.",
            "Remove one that no longer matters (its name and an empty text), or say one shorter.",
        )
    return name, text


def is_memo(call: ToolCall) -> bool:
    """The call writes or removes a memo."""
    return _fields(call) is not None


def _fields(call: ToolCall) -> tuple[str, str] | None:
    if call.name not in {MEMO_TOOL, CALL_TOOL}:
        return None
    fields: Mapping[str, object] | None = fields_of(call.arguments)
    if call.name == CALL_TOOL:
        inner = fields.get("arguments") if fields and fields.get("name") == MEMO_TOOL else None
        fields = fields_of(inner if isinstance(inner, str) else msgspec.json.encode(inner).decode())
    match fields:
        case {"name": str(name), "text": str(text)}:
            return " ".join(name.split()), text.strip()
        case {"name": str(name)}:
            return " ".join(name.split()), ""
        case _:
            return None


def _written_in(group: Group) -> Iterator[Memo]:
    """What a group writes: a memo of an empty text removes one."""
    if group.kind == "note" and group.source.startswith(MEMO_NOTE):
        text = group.first.text.partition("\n")[2]
        yield Memo(group.source.removeprefix(MEMO_NOTE), text, group.first.id, group.id, True)
    if group.kind != "round":
        return
    results = {m.call_id: m for m in group.messages[1:]}
    for call in group.first.calls:
        result = results.get(call.id)
        if result is None or result.synthetic or not (fields := _fields(call)) or failed(result) or refused(result):
            continue
        yield Memo(*fields, group.first.id, group.id)
