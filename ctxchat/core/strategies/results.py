"""Tool results, and arguments of calls, made short: which may be, what a line for one costs, and the step that puts the lines in
place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from ctxchat.core.ledger import Entry
from ctxchat.core.messages import Message
from ctxchat.core.strategies.arguments import arguments_file, short_calls
from ctxchat.core.strategies.base import Spill, Step
from ctxchat.core.strategies.planning import Basis, Shortened, shrink_step

MAX_RECENT_SHARE = 1 / 8
"""Of the limit, what one result may take that stays for being recent."""

KEPT_ARGUMENT_CHARS = 240
"""Characters that each long text among a call's arguments keeps."""

Short = Callable[[Entry, int, Message], tuple[str, tuple[Spill, ...]] | None]
"""Entry, place of the message in its group, the result; the text to show instead and what to save first, or None to leave it."""


def shorten(
    name: str, basis: Basis, entries: Iterable[Entry], short: Short, needed: int, arguments: int | None = None
) -> Step | None:
    """A step that replaces results by shorter texts where that frees tokens, and with `arguments` a call's arguments that take
    more tokens than that, until `needed` tokens are free; what was shortened before is left alone."""
    return shrink_step(name, basis, _shortened(basis, entries, short, arguments), needed)


def _shortened(basis: Basis, entries: Iterable[Entry], short: Short, arguments: int | None) -> Iterator[Shortened]:
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
    """The names under which a message's text and its calls' arguments are saved."""
    yield f"tool-results/{message.id}.txt"
    yield from (arguments_file(message, place) for place in range(1, len(message.calls) + 1))


def spill_of(message: Message, tokens: int) -> tuple[str, tuple[Spill, ...]]:
    """The pointer line to a message's full text, and what to save for it: nothing where its own file exists already, because
    it was clipped on arrival and the file holds more than the message does."""
    name = f"tool-results/{message.id}.txt"
    pointer = f"full text: {name}, {tokens} tokens"
    if name in message.text[-200:]:
        return message.text.rstrip().rsplit("\n", 1)[-1].strip("[]"), ()
    return pointer, (Spill(name, message.text),)
