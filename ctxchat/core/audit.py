"""Audits the compactions of a session: which exact facts each kept and lost, and which of the names (paths, symbols) that later
tool calls used were still in view after it. `ctxchat audit` shows it. Pure; asks no model.
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
"""The number of calls after a compaction whose names are looked for in what it left; a group that reaches it is taken whole."""

MAX_ARGUMENT_CHARS = 4_000
"""The beginning of an argument, in characters, in which names are looked for."""

_PATH = re.compile(
    r"(?<![\w./~-])(?:~?/|\.{1,2}/)?(?:[\w@.-]+/)+[\w@.-]+|(?<![\w./-])[\w-]+\.(?:py|ts|tsx|js|md|json|toml|rs|go|c|h|sh|ya?ml)\b"
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|<<.*", re.DOTALL)
"""Matches quoted texts and here-documents in a command, which are patterns, scripts and texts and name no file that is needed."""

_SYMBOL = re.compile(
    r"\b(?:[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Za-z]\w*_\w+|[A-Z][A-Z0-9]{3,})\b"
)
_FOLDED_PATHS = re.compile(r"([\w./~@+:-]+/)\{([^{}\n]*)\}")
"""Matches several files of one folder as a summary writes them: `src/{a.py, b.py}`."""

NameKind = Literal["path", "symbol"]


class NeededName(msgspec.Struct, frozen=True):
    """A name that a call after a compaction used, that occurred before the compaction, and that had not been mentioned since.

    `message` is the id of the message with the call. `in_view`: the view after the compaction still had the name. `read_again`:
    the call read the file of that name again.
    """

    kind: NameKind
    name: str
    message: str = ""
    in_view: bool = False
    read_again: bool = False


class CompactionAudit(msgspec.Struct, frozen=True):
    """The audit of one compaction: how many facts were in what it took out of view and how many were kept, the `lost` ones, and
    the names that the next `calls` calls needed."""

    change: Change
    facts: FactCount
    lost: tuple[Fact, ...]
    needed: tuple[NeededName, ...]
    calls: int


def audits(records: Iterable[Record], memory: Memory) -> tuple[CompactionAudit, ...]:
    """The audits of all compactions in a journal, each as it was when it was made, those included that were undone since. Slow,
    so call it off the event loop."""
    made: dict[str, tuple[Change, Ledger, Ledger]] = {}  # by id, with the ledgers before and after
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
    """The audit of one compaction, from the ledgers before and after it, and the groups that came later."""
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
    """The names in the groups `known` that the calls in the `later` groups needed, each once, and how many calls these were."""
    before = "\n".join(_all_text(m) for group in known for m in group.messages)
    mentioned, calls = "", 0
    found: dict[tuple[str, str], NeededName] = {}
    for group in later:
        for message in group.messages:
            mentioned += f"\n{message.text}" if message.role == "user" else ""
            for call in message.calls:
                calls += 1
                for name in names_of(call):
                    again = use_of(call) == Use("read", name.name)
                    if (earlier := found.get((name.kind, name.name))) and (earlier.read_again or not again):
                        continue
                    if is_in(before, name) and not is_in(mentioned, name):
                        found[name.kind, name.name] = msgspec.structs.replace(
                            name, message=message.id, read_again=again
                        )
            # what a result mentions is known from there, and no longer from before the compaction
            mentioned += f"\n{message.text}" if message.role == "tool" else ""
        if calls >= MAX_CALLS:
            break
    return list(found.values()), calls


def names_of(call: ToolCall) -> Iterator[NeededName]:
    """The names in a call: the files that it or its command is about, and symbols in its arguments, except the content of a new
    file."""
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
    """True where a text has this name as a whole word."""
    return name.name in text and re.search(rf"(?<!\w){re.escape(name.name)}(?!\w)", text) is not None


def view_text(view: View) -> str:
    """All text in a view, with each of several files that a summary writes as `src/{a.py, b.py}` added with its own path."""
    text = "\n".join(_all_text(item.message) for item in view.items)
    return "\n".join(
        [text, *(folder + name for folder, names in _FOLDED_PATHS.findall(text) for name in names.split(", "))]
    )


def _all_text(message: Message) -> str:
    """The text of a message and the arguments of its calls."""
    return "\n".join([message.text, *(call.arguments for call in message.calls)])
