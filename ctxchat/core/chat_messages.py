"""The messages of a list that a program hands to `core.chat_lists.compact`: reading them, the types of messages that a compaction
puts in place of others, and such lists as JSON text and back.

The messages that stand for others are dicts in OpenAI's form, so a program can send them as they are; what they replaced is kept
in attributes beside.
"""

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
"""The type of the caller's messages: dicts in OpenAI's form, or objects whose `model_dump` gives that form."""

_STORED = "ctxchat"
"""The key of the field that holds a stand-in's attributes in JSON text."""


class StandIn(dict[str, Any]):
    """A message that stands for others. `originals` are the messages it stands for, as the caller gave them; empty for a tool
    result that was added because a call had none."""

    def __init__(self, message: Wire, originals: Iterable[Any]) -> None:
        super().__init__(message)
        self.originals: tuple[Any, ...] = tuple(originals)


class Shortened(StandIn):
    """A tool's result of which only the beginning and the end are left."""


class Continued(msgspec.Struct, frozen=True):
    """The state of a compaction at its end, so that the next one need not start over.

    `ledger` holds the conversation without the system prompt. `record` are the caller's messages by their number, the system
    prompt's first. `shown` is the list that was returned, without the system prompt. `options` hold token counts and facts that
    were found, and `count` is the function that counted, since another one makes them void.
    """

    ledger: Ledger
    record: Sequence[Any]
    shown: Sequence[Any]
    options: PlanOptions
    count: object


class Summary(StandIn):
    """A summary: the user message that stands for the messages that were folded.

    `digest` has its parts as values. `unread` are the indexes in `originals` of messages that no model has read, because code
    alone wrote about them. `json.dumps` loses this type, and the next compaction would then take the summary for something the
    person said; `to_json` keeps it.
    """

    def __init__(self, message: Wire, originals: Iterable[Any], digest: Digest, unread: Iterable[int] = ()) -> None:
        super().__init__(message, originals)
        self.digest = digest
        self.unread = tuple(unread)
        self.continued: Continued | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"continued": None}  # large, and only saves time: a pickled or copied summary works without


def originals(messages: Sequence[MessageT]) -> list[MessageT]:
    """The list with each summary and shortened result replaced by the messages it stands for."""
    whole = [original for m in messages for original in (m.originals if isinstance(m, StandIn) else (m,))]
    return cast("list[MessageT]", whole)


def to_json(messages: Sequence[object]) -> str:
    """The list as JSON text, including the messages that its summaries stand for; `from_json` reads it. Raises ImportProblem."""
    return json.dumps([_stored(message, number) for number, message in enumerate(as_list(messages), 1)])


def from_json(text: str | bytes) -> list[dict[str, Any]]:
    """The list that `to_json` wrote. Raises ImportProblem for any other text."""
    try:
        stored = json.loads(text)
        return [_restored(message) for message in as_list(stored)]
    except (ValueError, TypeError, LookupError, AttributeError) as problem:
        raise ImportProblem(f"this is no list that to_json wrote: {problem}") from problem


def as_list(given: object, what: str = "messages") -> list[Any]:
    """An argument as a list; `what` names it in the error. Raises ImportProblem where it is not a sequence of items."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return list(cast("Iterable[Any]", given))
    raise ImportProblem(f"{what} are a {type(cast(object, given)).__name__}, not a list")


def read_message(given: object, seq: int) -> Message:
    """One of the caller's messages as our value, with the number `seq`. Raises ImportProblem where it is no message."""
    wire = _wire(given, seq)
    try:
        return from_wire(wire, seq)
    except ImportProblem:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError, RecursionError) as problem:
        raise ImportProblem(f"message {seq}: {problem}") from problem


def _wire(given: object, seq: int) -> Mapping[str, Any]:
    """A message as a dict in OpenAI's form. Raises ImportProblem, which names it by its number `seq`."""
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
    """A message as a dict for JSON, with a stand-in's attributes in a field of their own."""
    wire = dict(_wire(given, number))
    if isinstance(given, StandIn):
        kept: Wire = {"originals": [_stored(one, number) for one in given.originals]}
        if isinstance(given, Summary):
            kept |= {"digest": msgspec.to_builtins(given.digest), "unread": list(given.unread)}
        wire[_STORED] = kept
    return wire


def _restored(stored: Wire) -> Wire:
    """The message that `_stored` made this dict of."""
    kept = stored.pop(_STORED, None)
    if kept is None:
        return stored
    if "digest" not in kept:
        return (Shortened if kept["originals"] else StandIn)(stored, kept["originals"])
    return Summary(stored, kept["originals"], msgspec.convert(kept["digest"], Digest), kept["unread"])
