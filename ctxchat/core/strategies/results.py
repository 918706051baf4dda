"""Shortens tool results, and arguments of calls, to texts that a strategy chooses, with a pointer to the full text on disk. Used
by the strategies `shrink_tool_results` and `drop_superseded`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from ctxchat.core.ledger import Entry
from ctxchat.core.messages import Message
from ctxchat.core.strategies.arguments import arguments_file, short_calls
from ctxchat.core.strategies.base import Spill, Step
from ctxchat.core.strategies.planning import Basis, Shortened, shrink_step

MAX_RECENT_SHARE = 1 / 8
"""The share of the limit that a single result may take and still be kept whole because it is recent."""

KEPT_ARGUMENT_CHARS = 240
"""Characters that each long text among a call's arguments keeps."""

Short = Callable[[Entry, int, Message], tuple[str, tuple[Spill, ...]] | None]
"""A function that shortens a result: takes its entry, its index in the group and its message; returns the text to show instead
and the texts to save first, or None to leave the result as it is."""


def shorten(
    name: str, basis: Basis, entries: Iterable[Entry], short: Short, needed: int, arguments: int | None = None
) -> Step | None:
    """A step that replaces results by the texts that `short` gives, where that frees tokens, until `needed` tokens are free.

    With `arguments`, arguments of calls that take more tokens than that are shortened, too. What was shortened before is left as
    it is. None where nothing is freed.
    """
    return shrink_step(name, basis, _shortened(basis, entries, short, arguments), needed)


def _shortened(basis: Basis, entries: Iterable[Entry], short: Short, arguments: int | None) -> Iterator[Shortened]:
    """The entries in which something could be shortened, with their new messages and the texts to save."""
    for entry in entries:
        if entry.group is None or entry.group.kind not in {"round", "stray"} or not basis.items(entry):
            continue
        messages = list(entry.group.messages)
        saved: list[Spill] = []
        changed = False
        if arguments is not None and messages[0].calls:
            original = basis.originals(entry)[messages[0].seq]
            messages[0], texts = short_calls(
                messages[0], original, arguments, basis.options.counter, KEPT_ARGUMENT_CHARS
            )
            changed = bool(texts)
            saved += texts
        for place, message in enumerate(messages):
            found = short(entry, place, message) if message.role == "tool" else None
            if found is None or not basis.as_it_was(entry, message):
                continue
            fresh = msgspec.structs.replace(message, content=found[0])
            if basis.options.counter.message(fresh) < basis.options.counter.message(message):
                messages[place] = fresh
                changed = True
                saved += found[1]
        if changed:
            yield entry, messages, saved


def saved_as(message: Message) -> Iterator[str]:
    """The names of the files in which a message's text and its calls' arguments would be saved."""
    yield f"tool-results/{message.id}.txt"
    yield from (arguments_file(message, place) for place in range(1, len(message.calls) + 1))


def spill_of(message: Message, tokens: int) -> tuple[str, tuple[Spill, ...]]:
    """A line that points to a message's full text, and the text to save for it. Where the result was cut when it arrived, its
    file exists already and holds more than the message does: then the line is the message's own, and there is nothing to save."""
    name = f"tool-results/{message.id}.txt"
    pointer = f"full text: {name}, {tokens} tokens"
    if name in message.text[-200:]:
        return message.text.rstrip().rsplit("\n", 1)[-1].strip("[]"), ()
    return pointer, (Spill(name, message.text),)
