"""A session as Markdown for a person to read: the record, the model's view, the flight recorder. Values in, text out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ctxchat.core.events import CompactionFinished
from ctxchat.core.journal import SessionState
from ctxchat.core.messages import Message
from ctxchat.core.view import Item

_WHO = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool result"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def record(state: SessionState) -> str:
    """Everything that ever happened, message by message, and the compactions in a table."""
    messages = (_message(m, m.id) for m in state.ledger.messages() if not m.synthetic)
    return clean("\n\n".join([_title(state), *messages, *flight(state)]) + "\n")


def view(state: SessionState, items: Iterable[Item]) -> str:
    """What the model is sent, message by message."""
    messages = (_message(i.message, f"{i.section}, ~{i.tokens} tokens") for i in items)
    return clean("\n\n".join([_title(state), *messages]) + "\n")


def flight_recorder(state: SessionState) -> str:
    """The fill at the end of each turn and every pass with its figures. Secrets are still in it."""
    fills = ", ".join(str(fill) for fill in state.fills) or "none yet"
    parts = [
        _title(state),
        f"Tokens used at the end of each turn: {fills}",
        f"Cost: ${state.cost_usd:.4f}",
        *flight(state),
    ]
    return clean("\n\n".join(parts) + "\n")


def flight(state: SessionState) -> list[str]:
    """The passes as a table, nothing where there were none."""
    if not state.passes:
        return []
    head = [
        "| id | reason | strategy | outcome | before | after | messages | seconds | cost | detail |",
        "|" + "---|" * 10,
    ]
    return ["## Compactions", "\n".join([*head, *_rows(state.passes)])]


def clean(text: str) -> str:
    """The text without what could move a cursor or cannot be written."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _rows(passes: Sequence[CompactionFinished]) -> Iterator[str]:
    for p in passes:
        cells = (p.id, p.reason, p.strategy, p.outcome, p.before.used, p.after.used, p.folded_messages)
        cells = (*cells, f"{p.seconds:.1f}", f"${p.cost_usd:.4f}", p.detail)
        yield "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _title(state: SessionState) -> str:
    return "# " + (" ".join(state.title.split()) or "Conversation")


def _message(message: Message, place: str) -> str:
    mark = ", interrupted" if message.interrupted else ""
    of = f" of `{message.name or message.call_id}`" if message.role == "tool" else ""
    parts = [f"## {_WHO[message.role]}{of} ({place}{mark})"]
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
