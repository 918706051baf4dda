"""Memos: short named texts that the agent writes for itself, and that survive every compaction word for word until the agent or
the person replaces or removes them.

A memo is stored only where it was written: in the agent's tool call, or in the note by which the person changed it. Which memos
hold is computed from the record (all messages ever), so that undo and rewind are exact. A compaction that hides a memo repeats it
in its summary.
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
"""The name of the tool that writes a memo; its arguments are `name` and `text`, and an empty text removes the memo."""

MAX_NAME_CHARS, MAX_TEXT_CHARS, MAX_TOTAL_CHARS = 40, 1_000, 6_000
"""Limits in characters: for a name, for the text of one memo, and for all memos of a session with their names."""

OPENING = "Your memos, word for word. One of the same name further down holds instead:"
"""The line above the memos in a summary."""

_CHANGED = '[The person changed your memo "{name}". From now on it says:]'
_REMOVED = '[The person removed your memo "{name}".]'


class Memo(msgspec.Struct, frozen=True):
    """A memo. `message` is the id of the message that wrote it (`m12`), `group` the id of that message's group; `by_person`: the
    person wrote the text."""

    name: str
    text: str
    message: str
    group: str
    by_person: bool = False


def memos_of(ledger: Ledger) -> dict[str, Memo]:
    """The memos that hold, by name, the one written last at the end."""
    memos: dict[str, Memo] = {}
    hidden = ledger.hidden_notes
    for group in ledger.groups_in_force:
        if group.id in hidden:
            continue
        for memo in _written_in(group):
            memos.pop(memo.name, None)
            if memo.text:
                memos[memo.name] = memo
    return memos


def memos_to_carry(ledger: Ledger, fold: Collection[str]) -> tuple[Memo, ...]:
    """The memos that the summary of the groups `fold` must repeat: those that hold and stand in no group that stays in view."""
    folded = frozenset(fold)
    staying = (e.group for e in ledger.live() if e.group and e.group.kind != "summary" and folded.isdisjoint(e.covers))
    in_view = {memo.name: memo.text for group in staying for memo in _written_in(group)}
    return tuple(memo for memo in memos_of(ledger).values() if in_view.get(memo.name) != memo.text)


def memos_text(memos: Sequence[Memo]) -> str:
    """Memos as the text that stands in a summary; empty where there are none."""
    lines = [f"- {memo.name}: {memo.text}" for memo in memos]
    return "\n".join([OPENING, *lines]) if lines else ""


def memo_note(seq: int, at: str, turn: int, name: str, text: str) -> Group:
    """The note (a message from the program) that tells the agent that the person changed a memo; an empty text removes it. `seq`
    is the note's number in the record, `at` its time."""
    words = f"{_CHANGED.format(name=name)}\n{text}" if text else _REMOVED.format(name=name)
    return Group(f"g{seq}", "note", (Message(seq, "user", words, at=at),), turn, f"{MEMO_NOTE}{name}")


def checked_memo(name: str, text: str, kept: Mapping[str, str]) -> tuple[str, str]:
    """The name and text of a new memo as they will be stored. `kept` are the texts of the memos there are, by name. Raises
    ToolError where a limit is passed, the name is empty, or a memo is to be removed that does not exist."""
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
    """True for a call that writes or removes a memo."""
    return _name_and_text(call) is not None


def _name_and_text(call: ToolCall) -> tuple[str, str] | None:
    """The name and text that a call of the memo tool gives, directly or through `call_tool`; None for any other call."""
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
    """The memos that a group writes, in order; one with an empty text removes that memo. Calls that failed write none."""
    if group.kind == "note" and group.source.startswith(MEMO_NOTE):
        text = group.first.text.partition("\n")[2]
        yield Memo(group.source.removeprefix(MEMO_NOTE), text, group.first.id, group.id, True)
    if group.kind != "round":
        return
    results = {m.call_id: m for m in group.messages[1:]}
    for call in group.first.calls:
        result = results.get(call.id)
        if result is None or result.synthetic or failed(result) or refused(result):
            continue
        if written := _name_and_text(call):
            yield Memo(*written, group.first.id, group.id)
