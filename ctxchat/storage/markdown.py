"""Formats a session as Markdown for people: the record, the model's view, the flight recorder. Reads and writes no file."""

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
    """The whole record: every message that was not made for the model alone (`synthetic`), changes to files, and a table of
    compactions."""
    notes = {message.seq for group in state.ledger.groups if group.kind == "note" for message in group.messages}
    messages = (_message(m, m.id, note=m.seq in notes) for m in state.ledger.messages() if not m.synthetic)
    return clean("\n\n".join([_title(state), *messages, *_files(state), *flight(state)]) + "\n")


def _files(state: SessionState) -> list[str]:
    """The part about changes to files in each turn; empty where there were none."""
    undone, lines = taken_back(state.checkpoints), list[str]()
    for checkpoint in state.checkpoints:
        undo = (
            "taken back later" if checkpoint.id in undone else "a person took changes back" if checkpoint.undoes else ""
        )
        lines.append(f"- turn {checkpoint.turn}: {files_words(checkpoint.changes)}{f' ({undo})' if undo else ''}")
        lines += [f"    - {change.word} {' '.join(change.name.split())}" for change in checkpoint.changes]
    return ["## Files", "\n".join(lines)] if lines else []


def view(state: SessionState, items: Iterable[Item]) -> str:
    """The messages that the model is sent."""
    messages = (_message(i.message, f"{i.section}, ~{i.tokens} tokens", note=i.kind == "note") for i in items)
    return clean("\n\n".join([_title(state), *messages]) + "\n")


def flight_recorder(state: SessionState, facts: Mapping[str, str] | None = None) -> str:
    """The flight recorder: the fill at the end of each turn, every compaction with its figures, and the differences between
    successive summaries. `facts` are lines for the top, by name: not the facts of a summary. Secrets are not masked here."""
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
    """The part with a table of compactions; empty where there were none."""
    if not state.compactions:
        return []
    names = "when|id|reason|strategy|model|outcome|before|after|messages|facts|seconds|cost|detail"
    head = ["| " + names.replace("|", " | ") + " |", "|" + "---|" * (names.count("|") + 1)]
    return ["## Compactions", "\n".join([*head, *_rows(state)])]


def _cache_breaks(state: SessionState) -> list[str]:
    """The part about requests for which the server could not use its cache as expected, and why; empty where there were none."""
    if not state.cache_breaks:
        return []
    lines = [f"- {each.at}: {' '.join(each.cause.split()) or 'unexplained'}" for each in state.cache_breaks]
    return ["## Breaks of the cache", "\n".join(lines)]


def _differences(state: SessionState) -> list[str]:
    """The difference between each summary and the one before it, for compactions in force."""
    parts: list[str] = []
    before = ""
    for change in state.ledger.compactions:
        summary = change.record.summary if change.record else ""
        if summary and before:
            lines = [*unified_diff(before.splitlines(), summary.splitlines(), n=1, lineterm="")][2:]  # no file names
            parts.append(f"### Summary of {change.id} against the one before\n\n" + _fenced("\n".join(lines), "diff"))
        before = summary or before
    return parts


def clean(text: str) -> str:
    """The text with control characters replaced that could move the cursor, change the direction of writing or cannot be
    encoded."""
    return CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _rows(state: SessionState) -> Iterator[str]:
    """The rows of the table of compactions."""
    undone = {c.id for c in state.undone}
    for record in state.compactions:
        outcome = f"{record.outcome}, undone" if record.id in undone else record.outcome
        if record.back.messages:
            outcome += f", {count(record.back.messages, 'message')} put back"
        cells = (
            *(record.at, record.id, record.reason, record.strategy, record.model, outcome),
            *(record.before.used, record.stands, record.folded_messages),  # `stands`: tokens after, as of now
            f"{record.facts.kept} of {record.facts.found}" if record.facts.found else "",
            f"{record.seconds:.1f}",
            f"${record.cost_usd:.4f}",
            record.detail,
        )
        yield "| " + " | ".join(_cell(str(cell)) for cell in cells) + " |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").splitlines())


def _title(state: SessionState) -> str:
    return "# " + (" ".join(state.title.split()) or "Conversation")


def _message(message: Message, place: str, *, note: bool = False) -> str:
    """A message as Markdown, below a heading."""
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
