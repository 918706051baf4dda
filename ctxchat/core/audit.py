"""What compactions kept and lost of a session, and which of the names that later calls needed were still in view. Pure: the
record in, figures out; asks no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.facts import Memory, collect, kept_facts
from ctxchat.core.head import Head
from ctxchat.core.journal import Changed, Record, SessionState, fold
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.record import Fact, FactCount
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.tooluse import Use, use_of
from ctxchat.core.view import View, compile

MAX_CALLS = 20
"""Calls after a compaction whose names are looked for in what it left; the group that reaches it is finished."""

MAX_ARGUMENT_CHARS = 4_000
"""Characters of an argument in which names are looked for."""

_PATH = re.compile(
    r"(?<![\w./~-])(?:~?/|\.{1,2}/)?(?:[\w@.-]+/)+[\w@.-]+|(?<![\w./-])[\w-]+\.(?:py|ts|tsx|js|md|json|toml|rs|go|c|h|sh|ya?ml)\b"
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|<<.*", re.DOTALL)
"""In a command: patterns, programs and texts, which name no file that is needed."""

_SYMBOL = re.compile(
    r"\b(?:[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Za-z]\w*_\w+|[A-Z][A-Z0-9]{3,})\b"
)
_FOLDED_PATHS = re.compile(r"([\w./~@+:-]+/)\{([^{}\n]*)\}")
"""How a summary names several files of one folder."""

NameKind = Literal["path", "symbol"]


class NeededName(msgspec.Struct, frozen=True):
    """A name that a call used, which was known before the compaction and which nobody had said since. `message` is the id of the
    message with the call, `in_view` says that the compaction had left it there, `read_again` that the call read a file anew."""

    kind: NameKind
    name: str
    message: str = ""
    in_view: bool = False
    read_again: bool = False


class CompactionAudit(msgspec.Struct, frozen=True):
    """One compaction: the facts of what it took out of view, those of them that were lost, and the names that the next `calls`
    calls needed."""

    change: Change
    facts: FactCount
    lost: tuple[Fact, ...]
    needed: tuple[NeededName, ...]
    calls: int


def audits(records: Iterable[Record], memory: Memory) -> tuple[CompactionAudit, ...]:
    """Each compaction of a journal as it was when it was made, also one that was undone since. Slow: off the event loop."""
    made: dict[str, tuple[Change, Ledger, Ledger]] = {}
    state, since = SessionState(), list[Record]()
    for record in records:
        since.append(record)
        if isinstance(record, Changed) and record.change.kind == "compaction":
            before = fold(since[:-1], state)
            state, since = fold(since[-1:], before), []
            if any(change.id == record.change.id for change in state.ledger.changes):
                made.setdefault(record.change.id, (record.change, before.ledger, state.ledger))
    groups = fold(since, state).ledger.groups
    return tuple(
        _audit(change, before, after, groups[len(before.groups) :], memory) for change, before, after in made.values()
    )


def _audit(change: Change, before: Ledger, after: Ledger, later: Sequence[Group], memory: Memory) -> CompactionAudit:
    view = compile(after, Head(), TokenCounter())
    covered = [before.group(name) for edit in change.edits for name in edit.covers]
    staying = before.staying(group.id for group in covered)
    evidence = collect(covered, None, memory, per_kind=None, staying=staying)
    facts, lost = kept_facts(evidence, view, change, before, memory)
    needed, calls = needed_names(before.groups, later)
    text = view_text(view)
    named = tuple(msgspec.structs.replace(name, in_view=is_in(text, name)) for name in needed)
    return CompactionAudit(change, facts, lost, named, calls)


def needed_names(known: Sequence[Group], later: Sequence[Group]) -> tuple[list[NeededName], int]:
    """The names that the next calls need of what was known, each once, and how many calls that were."""
    before = "\n".join(_words(m) for group in known for m in group.messages)
    said, calls = "", 0
    found: dict[tuple[str, str], NeededName] = {}
    for group in later:
        for message in group.messages:
            said += f"\n{message.text}" if message.role == "user" else ""
            for call in message.calls:
                calls += 1
                for name in names_of(call):
                    again = use_of(call) == Use("read", name.name)
                    if (earlier := found.get((name.kind, name.name))) and (earlier.read_again or not again):
                        continue
                    if is_in(before, name) and not is_in(said, name):
                        seen = msgspec.structs.replace(name, message=message.id, read_again=again)
                        found[name.kind, name.name] = seen
            said += f"\n{message.text}" if message.role == "tool" else ""  # no longer needed from before
        if calls >= MAX_CALLS:
            break
    return list(found.values()), calls


def names_of(call: ToolCall) -> Iterator[NeededName]:
    """What one call names: the files it is about or its command names, and symbols in its command, its pattern or its edit."""
    fields = {
        name: value[:MAX_ARGUMENT_CHARS]
        for name, value in (fields_of(call.arguments) or {}).items()
        if isinstance(value, str)
    }
    for name in ("path", "file_path", "filePath", "command"):
        for match in _PATH.finditer(_QUOTED.sub(" ", fields.get(name, ""))):
            if not match.group().startswith("/dev/"):
                yield NeededName("path", match.group().rstrip(".").removeprefix("./"))
    for name, value in fields.items():
        for match in _SYMBOL.finditer(_PATH.sub(" ", value) if name != "content" else ""):
            yield NeededName("symbol", match.group())


def is_in(text: str, name: NeededName) -> bool:
    """A text has this name as a word of its own."""
    return name.name in text and re.search(rf"(?<!\w){re.escape(name.name)}(?!\w)", text) is not None


def view_text(view: View) -> str:
    """All that a view says, with files that stand there folded into one line each by themselves."""
    text = "\n".join(_words(item.message) for item in view.items)
    return "\n".join(
        [text, *(folder + name for folder, names in _FOLDED_PATHS.findall(text) for name in names.split(", "))]
    )


def _words(message: Message) -> str:
    return "\n".join([message.text, *(call.arguments for call in message.calls)])
