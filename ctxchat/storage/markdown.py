"""A session as Markdown for a person to read: the record, the model's view, the flight recorder. Values in, text out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff

from ctxchat.core.file_changes import files_words, taken_back
from ctxchat.core.journal import SessionState
from ctxchat.core.messages import Message
from ctxchat.core.quantities import count
from ctxchat.core.sanitize import CONTROL
from ctxchat.core.view import Item

_WHO = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool result"}


def record(state: SessionState) -> str:
    """Everything that ever happened, message by message, and the compactions in a table."""
    notes = {message.seq for group in state.ledger.groups if group.kind == "note" for message in group.messages}
    messages = (_message(m, m.id, note=m.seq in notes) for m in state.ledger.messages() if not m.synthetic)
    return clean("\n\n".join([_title(state), *messages, *_files(state), *flight(state)]) + "\n")


def _files(state: SessionState) -> list[str]:
    """What each turn did to files, nothing where none did anything."""
    gone, lines = taken_back(state.checkpoints), list[str]()
    for made in state.checkpoints:
        what = "taken back later" if made.id in gone else "a person took changes back" if made.undoes else ""
        lines.append(f"- turn {made.turn}: {files_words(made.changes)}{f' ({what})' if what else ''}")
        lines += [f"    - {change.word} {' '.join(change.name.split())}" for change in made.changes]
    return ["## Files", "\n".join(lines)] if lines else []


def view(state: SessionState, items: Iterable[Item]) -> str:
    """What the model is sent, message by message."""
    messages = (_message(i.message, f"{i.section}, ~{i.tokens} tokens", note=i.kind == "note") for i in items)
    return clean("\n\n".join([_title(state), *messages]) + "\n")


def flight_recorder(state: SessionState, facts: Mapping[str, str] | None = None) -> str:
    """The fill at the end of each turn, every compaction with its figures, and how the summary changed from one to the next;
    `facts` are lines for the top. Secrets are still in it."""
    fills = ", ".join(str(fill) for fill in state.fills) or "none yet"
    parts = [
        _title(state),
        "\n".join(f"- {name}: {value}" for name, value in (facts or {}).items()),
        f"Tokens used at the end of each turn: {fills}",
        f"Cost: ${state.cost_usd:.4f}",
        *_cache_breaks(state),
        *flight(state),
        *_differences(state),
    ]
    return clean("\n\n".join(part for part in parts if part) + "\n")


def flight(state: SessionState) -> list[str]:
    """The compactions as a table, nothing where there were none."""
    if not state.compactions:
        return []
    names = "when|id|reason|strategy|model|outcome|before|after|messages|facts|seconds|cost|detail"
    head = ["| " + names.replace("|", " | ") + " |", "|" + "---|" * (names.count("|") + 1)]
    return ["## Compactions", "\n".join([*head, *_rows(state)])]


def _cache_breaks(state: SessionState) -> list[str]:
    """When the server did not read what it might have, and why."""
    if not state.cache_breaks:
        return []
    lines = [f"- {each.at}: {' '.join(each.cause.split()) or 'unexplained'}" for each in state.cache_breaks]
    return ["## Breaks of the cache", "\n".join(lines)]


def _differences(state: SessionState) -> list[str]:
    """Each summary against the one before it, of the compactions in force."""
    parts: list[str] = []
    before = ""
    for change in state.ledger.compactions:
        summary = change.record.summary if change.record else ""
        if summary and before:
            lines = [*unified_diff(before.splitlines(), summary.splitlines(), n=1, lineterm="")][2:]
            parts.append(f"### Summary of {change.id} against the one before\n\n" + _fenced("\n".join(lines), "diff"))
        before = summary or before
    return parts


def clean(text: str) -> str:
    """The text without what could move a cursor, turn the direction of writing or cannot be written."""
    return CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _rows(state: SessionState) -> Iterator[str]:
    undone = {c.id for c in state.undone}
    for one in state.compactions:
        outcome = f"{one.outcome}, undone" if one.id in undone else one.outcome
        if one.back.messages:
            outcome += f", {count(one.back.messages, 'message')} put back"
        cells = (
            *(one.at, one.id, one.reason, one.strategy, one.model, outcome),
            *(one.before.used, one.stands, one.folded_messages),
            f"{one.facts.kept} of {one.facts.found}" if one.facts.found else "",
            f"{one.seconds:.1f}",
            f"${one.cost_usd:.4f}",
            one.detail,
        )
        yield "| " + " | ".join(_cell(str(cell)) for cell in cells) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _title(state: SessionState) -> str:
    return "# " + (" ".join(state.title.split()) or "Conversation")


def _message(message: Message, place: str, *, note: bool = False) -> str:
    mark = ", interrupted" if message.interrupted else ""
    of = f" of `{message.name or message.call_id}`" if message.role == "tool" else ""
    parts = [f"## {'Note' if note else _WHO[message.role]}{of} ({place}{mark})"]
    if message.reasoning and message.reasoning.text:
        parts.append(f"<details><summary>Reasoning</summary>\n\n{_fenced(message.reasoning.text)}\n\n</details>")
    if message.text:
        parts.append(_fenced(message.text) if message.role == "tool" else message.text)
    parts += [f"Call `{call.name}` (`{call.id}`):\n\n{_fenced(call.arguments, 'json')}" for call in message.calls]
    return "\n\n".join(parts)


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
