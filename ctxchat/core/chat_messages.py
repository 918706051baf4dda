"""Messages of other programs' lists: how they are read, what stands for some of them, and lists as JSON text and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.openai import ImportProblem, Wire, from_wire
from ctxchat.core.record import Digest
from ctxchat.core.strategies.planning import PlanOptions

MessageT = TypeVar("MessageT")
"""What the caller's messages are: dicts in OpenAI's form, or objects whose `model_dump` gives that form."""

_STORED = "ctxchat"
"""The key under which the JSON of a list keeps what a message stands for."""


class StandIn(dict[str, Any]):
    """A message that stands for others: as JSON one like any other, and known by its type. `originals` are the messages it stands
    for, as they were given; none for the result that was made up for a call which nobody answered."""

    def __init__(self, message: Wire, originals: Iterable[Any]) -> None:
        super().__init__(message)
        self.originals: tuple[Any, ...] = tuple(originals)


class Shortened(StandIn):
    """A tool's result in head and tail."""


class Continued(msgspec.Struct, frozen=True):
    """Where a compaction ended, for the next one to go on from: the ledger without the system prompt, each message as it was
    given (by number, from 1, those of the system prompt first), the list that was given back behind the system prompt, and what
    was counted and found so far, by which counter."""

    ledger: Ledger
    record: Sequence[Any]
    shown: Sequence[Any]
    options: PlanOptions
    count: object


class Summary(StandIn):
    """The user message that stands for messages that were folded.

    `unread` are the places in `originals` of messages that no model has read for the summary: code alone wrote of them. Where the
    type was lost (the list went through `json.dumps`) the next compaction takes it for something the person said: `to_json`
    keeps it.
    """

    def __init__(self, message: Wire, originals: Iterable[Any], digest: Digest, unread: Iterable[int] = ()) -> None:
        super().__init__(message, originals)
        self.digest = digest
        self.unread = tuple(unread)
        self.continued: Continued | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"continued": None}  # a copy is worked out anew where it is needed


def originals(messages: Sequence[MessageT]) -> list[MessageT]:
    """The list with every summary and shortened result taken back: the messages it stands for, in its place."""
    found = [original for m in messages for original in (m.originals if isinstance(m, StandIn) else (m,))]
    return cast("list[MessageT]", found)


def to_json(messages: Sequence[object]) -> str:
    """The list as JSON text, with all that its summaries stand for: `from_json` gives it back. Raises ImportProblem."""
    return json.dumps([_stored(message, number) for number, message in enumerate(as_list(messages), 1)])


def from_json(text: str | bytes) -> list[dict[str, Any]]:
    """The list that `to_json` made this text of, to go on with. Raises ImportProblem."""
    try:
        stored = json.loads(text)
        return [_restored(message) for message in as_list(stored)]
    except (ValueError, TypeError, LookupError, AttributeError) as problem:
        raise ImportProblem(f"this is no list that to_json wrote: {problem}") from problem


def as_list(given: object, what: str = "messages") -> list[Any]:
    """What a caller gave as a list. Raises ImportProblem for what is none."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return list(cast("Iterable[Any]", given))
    raise ImportProblem(f"{what} are a {type(cast(object, given)).__name__}, not a list")


def read_message(given: object, seq: int) -> Message:
    """A message of the caller's. Raises ImportProblem for whatever is none."""
    wire = _wire(given, seq)
    try:
        return from_wire(wire, seq)
    except ImportProblem:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError, RecursionError) as problem:
        raise ImportProblem(f"message {seq}: {problem}") from problem


def _wire(given: object, seq: int) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return cast("Mapping[str, Any]", given)
    dump = getattr(given, "model_dump", None)
    dumped = dump(exclude_none=True) if callable(dump) and not isinstance(given, type) else None
    if not isinstance(dumped, Mapping):
        raise ImportProblem(
            f"message {seq}: {type(given).__name__} is neither a dict nor an object whose model_dump gives one"
        )
    return cast("Mapping[str, Any]", dumped)


def _stored(given: object, number: int) -> Wire:
    wire = dict(_wire(given, number))
    if isinstance(given, StandIn):
        kept: Wire = {"originals": [_stored(one, number) for one in given.originals]}
        if isinstance(given, Summary):
            kept |= {"digest": msgspec.to_builtins(given.digest), "unread": list(given.unread)}
        wire[_STORED] = kept
    return wire


def _restored(stored: Wire) -> Wire:
    kept = stored.pop(_STORED, None)
    if kept is None:
        return stored
    if "digest" not in kept:
        return (Shortened if kept["originals"] else StandIn)(stored, kept["originals"])
    return Summary(stored, kept["originals"], msgspec.convert(kept["digest"], Digest), kept["unread"])
