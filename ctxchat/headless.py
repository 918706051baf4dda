"""Runs a turn without a screen: writes the answer to standard output and the rest to standard error, or every event as a JSON
line.

Reads the same events as the interface; knows no terminal beyond the two streams it is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TextIO

import msgspec

from ctxchat.agent.session import Session
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    Failed,
    FilesChanged,
    Notice,
    Retry,
    Stamped,
    Steered,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from ctxchat.core.file_changes import files_words
from ctxchat.core.messages import Part, Text
from ctxchat.core.quantities import count, short
from ctxchat.core.record import CompactionRecord
from ctxchat.core.sanitize import clean, harmless, harmless_json
from ctxchat.core.secrets import marks_in
from ctxchat.tools.mentions import MentionRules, look_all, part_of

UNSEEN = "this model is shown no images, only its name goes along"
OTHERS = "Or ask another: --model NAME (`ctxchat models` lists them), --model offline for the offline assistant."
_AS_IT_WAS = (TurnStarted, Steered, ToolStarted, ApprovalRequested)
"""Events whose texts were not masked on their way into the session."""

EXIT = {"done": 0, "cancelled": 130, "error": 1, "max_rounds": 1}


async def along(
    session: Session, text: str, workspace: Path, tell: Callable[[str], None], agreed: Sequence[str] = ()
) -> tuple[Part, ...]:
    """The attachments of a message: the files that `text` mentions by `@path`, and those the person `agreed` to. `tell` is called
    with a line for each file that is not attached, or is masked. Raises StorageError."""
    parts: list[Part] = []
    rules = MentionRules(
        lambda access_request: session.permissions.judge("read_file", access_request).verdict, agreed=tuple(agreed)
    )
    for named in await asyncio.to_thread(look_all, session.mentioning(text), workspace, rules=rules):
        part = await part_of(named, session.attachments.save, session.attachments.mask)
        if part:
            parts.append(part)
        if isinstance(part, Text) and (marks := marks_in(part.words)):
            tell(f"! {clean(named.name)}: {count(len(marks), 'secret')} masked")
        if not part or (named.kind == "image" and not session.attachments.seen):
            tell(f"! {clean(named.name)}: {clean(named.why) or UNSEEN}")
    return tuple(parts)


async def run(
    session: Session,
    text: str,
    attachments: Sequence[Part] = (),
    *,
    as_json: bool,
    out: TextIO,
    err: TextIO,
    raw: bool = False,
) -> int:
    """Send one message, report events until its turn ends, and return the exit code. A cancel ends the turn first. `raw`: the
    answer exactly as the model wrote it, with control characters that would move or hide something in a terminal."""
    mask = session.attachments.mask
    reader = _JsonLines(out, mask) if as_json else _Words(out, err, mask, raw=raw)
    code = EXIT["error"]
    async with aclosing(session.send(text, attachments)) as events:
        async for stamped in events:
            stamped = _with_flags(stamped)
            reader.write_event(stamped)
            if isinstance(stamped.event, TurnFinished):
                code = EXIT[stamped.event.status]
    return code


def _with_flags(stamped: Stamped) -> Stamped:
    """The event; where the model could not be reached, with a hint at the command line's options for another model."""
    event = stamped.event
    if not (isinstance(event, Failed) and event.kind == "connection"):
        return stamped
    return msgspec.structs.replace(stamped, event=msgspec.structs.replace(event, hint=f"{event.hint} {OTHERS}".strip()))


def without_secrets(event: Event, mask: Callable[[str], str]) -> Event:
    """The event as shown outside the person's own screen: with secrets masked in the person's message, in the arguments of calls
    and in requests for approval."""
    if not isinstance(event, _AS_IT_WAS):
        return event
    return msgspec.json.decode(mask(msgspec.json.encode(event).decode()), type=type(event))


class _JsonLines:
    """Writes events as JSON, one a line, with secrets masked."""

    def __init__(self, out: TextIO, mask: Callable[[str], str]) -> None:
        self._out, self._mask = out, mask

    def write_event(self, stamped: Stamped) -> None:
        event = without_secrets(stamped.event, self._mask)
        self._out.write(harmless_json(msgspec.structs.replace(stamped, event=event).json().decode()) + "\n")
        self._out.flush()


class _Words:
    """Writes the answer for a person or a pipe, and a line on standard error for each other event."""

    def __init__(self, out: TextIO, err: TextIO, mask: Callable[[str], str], *, raw: bool) -> None:
        self._out, self._err, self._mask, self._raw = out, err, mask, raw
        self._names: dict[str, str] = {}
        self._open_line = False

    def write_event(self, stamped: Stamped) -> None:
        event = stamped.event
        if isinstance(event, TextDelta):
            self._out.write(event.text if self._raw else harmless(event.text))  # a pipe may end in a terminal
            self._out.flush()
            self._open_line = not event.text.endswith("\n")
        elif isinstance(event, TurnFinished):
            self._end_line()
        elif line := self._narrated(event):
            self._end_line()
            self._err.write(clean(line) + "\n")
            self._err.flush()

    def _end_line(self) -> None:
        if self._open_line:
            self._out.write("\n")
            self._out.flush()
            self._open_line = False

    def _narrated(self, event: Event) -> str:
        match event:
            case ToolStarted():
                arguments = event.arguments
                texts = [arguments] if isinstance(arguments, str) else arguments.values()
                words = " ".join(text for text in texts if isinstance(text, str))
                self._names[event.call_id] = " ".join(self._mask(f"{event.name} {words}").split())[:100]
                return ""
            case ToolFinished():
                name = self._names.pop(event.call_id, event.name)
                mark = "·" if event.status == "ok" else f"! {event.status}:"
                return f"{mark} {name}  ({event.seconds:.1f} s, {short(event.tokens)} tokens)"
            case FilesChanged(changes=changes):
                return f"· {files_words(changes)}"
            case ApprovalResolved(verdict="deny"):
                return ""
            case CompactionRecord():
                return f"· compaction {event.outcome}: {event.detail}"
            case Retry():
                return f"! {event.cause.rstrip('.')} — trying again in {event.after_seconds:.0f} s"
            case Notice():
                return f"! {event.text}"
            case Failed():
                return f"error: {event.text} {event.hint}".rstrip()
            case _:
                return ""
