"""Compiles the view: exactly what the next request sends to a model, and how many tokens each part has. Nothing reaches a model
but through it.

Gauge, X-ray, headless events, tests and the request itself read the same View, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from ctxchat.core.calibration import Mix, total
from ctxchat.core.call_arguments import plain_name
from ctxchat.core.compilers import Compiler, all_sections
from ctxchat.core.head import ContextBlock, Head, ToolSpec
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import BROKEN_OFF, GroupKind, Message, Role, Text
from ctxchat.core.notes import CONTEXT_NOTE
from ctxchat.core.sections import SECTIONS, SectionName, section_of
from ctxchat.core.tokens import TokenCounter


class Item(msgspec.Struct, frozen=True, gc=False):
    """One message of a view. `tokens` is our raw count, `mix` the same by kind of text. `group` and `change` are the ids of the
    group and the change it comes from, empty for what is no part of the record; `source` says where inserted text comes from."""

    message: Message
    section: SectionName
    tokens: int
    kind: GroupKind
    turn: int = 0
    group: str = ""
    change: str = ""
    source: str = ""
    pinned: bool = False
    mix: Mix = Mix()

    @property
    def kinds(self) -> Mix:
        """Our count by kind of text; all counted as words where a transform has changed `tokens`."""
        return self.mix if self.mix.raw == self.tokens else Mix(self.tokens)


Transform = Callable[[tuple[Item, ...]], tuple[Item, ...]]
"""Changes the items of one request. Strategies change what is shown from now on."""


class View(msgspec.Struct, frozen=True, dict=True):
    """A request with its token counts. `raw` is the sum of our counts, tools included; `changes` is the number of changes in
    force."""

    items: tuple[Item, ...]
    tools: tuple[ToolSpec, ...]
    tool_tokens: tuple[int, ...]
    raw: int
    changes: int
    mix: Mix = Mix()

    @property
    def kinds(self) -> Mix:
        """Our count by kind of text; all counted as words where the kinds are unknown."""
        return self.mix if self.mix.raw == self.raw else Mix(self.raw)

    def kinds_of_prefix(self, length: int) -> Mix:
        """Our count by kind of the first `length` messages, the tools counting as the first."""
        return total((Mix(tools=sum(self.tool_tokens)), *(item.kinds for item in self.items[: length - 1])))

    def weights(self) -> dict[SectionName, int]:
        """Raw tokens by section; `reserved`, `free` and `draft` are 0 here."""
        totals: dict[SectionName, int] = dict.fromkeys(SECTIONS, 0)
        for item in self.items:
            totals[item.section] += item.tokens
        totals["tools"] = sum(self.tool_tokens)
        return totals

    def mixes(self) -> dict[SectionName, Mix]:
        """As `weights`, by kind."""
        return dict(self._mixes)

    @cached_property
    def _mixes(self) -> dict[SectionName, Mix]:
        """The tokens of each section by kind of text."""
        found: dict[SectionName, list[Mix]] = {name: [] for name in SECTIONS}
        for item in self.items:
            found[item.section].append(item.kinds)
        found["tools"].append(Mix(tools=sum(self.tool_tokens)))
        return {name: total(mixes) for name, mixes in found.items()}

    def followed_by(self, messages: Sequence[Message], count: Callable[[str], int]) -> View:
        """The view with these messages at the end, for one request; they belong to no turn. `count` gives the tokens of a
        text."""
        more = tuple(
            Item(message, "user", count(message.text), "user")
            if message.role == "user"
            else Item(message, "assistant", count(message.text), "reply")
            for message in messages
        )
        return msgspec.structs.replace(
            self, items=(*self.items, *more), raw=self.raw + sum(item.tokens for item in more)
        )

    @property
    def turn(self) -> int:
        """The turn of the last message that belongs to one."""
        return max((item.turn for item in self.items), default=0)


def compile(
    ledger: Ledger,
    head: Head,
    counter: TokenCounter,
    compiler: Compiler = all_sections,
    transforms: Sequence[Transform] = (),
    *,
    keep_reasoning: bool = False,
    note: str = "",
    every_request: Sequence[ContextBlock] = (),
) -> View:
    """The view of a ledger: the head, the live entries, and last the `note` that the next message would bring and the blocks of
    `every_request`, which are written anew for each request.

    The system prompt and the messages of the current turn are included whatever the compiler leaves out. `keep_reasoning`: the
    model wants its reasoning back. `transforms` change the items of this view only.
    """
    entries = _with_current(compiler(ledger), ledger)
    system = "\n\n".join([head.system, *_instructions(entries, ledger)]).strip()
    first = [_block_item(system, "system", "system", "", counter)] if system else []
    first += [_block_item(b.attributed, "memory", "system", b.source_id, counter) for b in head.memory if b.text]
    first += [_block_item(b.attributed, "injected", "user", b.source_id, counter) for b in head.context if b.text]
    sends_reasoning = reasoning_filter(ledger, keep_reasoning)
    body = tuple(item for entry in entries for item in items_of(entry, sends_reasoning, counter))
    body = _marked_as_broken_off(body, counter)
    for transform in transforms:
        body = transform(body)
    last = [_block_item(note, "injected", "user", CONTEXT_NOTE, counter)] if note else []
    last += [_block_item(b.attributed, "injected", "user", b.source_id, counter) for b in every_request if b.text]
    items = (*first, *body, *last)
    tool_tokens = tuple(counter.tool(tool.schema) for tool in head.tools)
    return View(
        items=items,
        tools=head.tools,
        tool_tokens=tool_tokens,
        raw=sum(item.tokens for item in items) + sum(tool_tokens),
        changes=len(ledger.changes),
        mix=total(item.kinds for item in items) + Mix(tools=sum(tool_tokens)),
    )


def _marked_as_broken_off(body: tuple[Item, ...], counter: TokenCounter) -> tuple[Item, ...]:
    """The items with a mark on each reply that was broken off, unless it comes last or the assistant continues right after it."""
    halves = [
        n for n, item in enumerate(body[:-1]) if item.message.interrupted and body[n + 1].message.role != "assistant"
    ]
    if not halves:
        return body
    items = list(body)
    for place in halves:
        message = items[place].message
        if message.text.strip():
            said = message.content
            said = f"{said.rstrip()}\n{BROKEN_OFF}" if isinstance(said, str) else (*said, Text(BROKEN_OFF))
            message = msgspec.structs.replace(message, content=said)
            mix = counter.mix(message)
            items[place] = msgspec.structs.replace(items[place], message=message, tokens=mix.raw, mix=mix)
    return tuple(items)


def _with_current(entries: tuple[Entry, ...], ledger: Ledger) -> tuple[Entry, ...]:
    """The entries with those of the current turn that the compiler left out put back in their order."""
    left = ledger.current
    for entry in reversed(entries):  # the current turn is near the end, if it is there
        if not left:
            break
        left = left.difference(entry.covers)
    if not left:
        return entries
    order = {entry.covers[0]: place for place, entry in enumerate(ledger.live())}
    shown = list(entries)
    for missing in (entry for entry in ledger.live() if not left.isdisjoint(entry.covers)):
        for place, entry in enumerate(shown):
            turn = entry.group.turn if entry.group and entry.group.kind != "summary" else -1
            if turn == ledger.turn and order.get(next(iter(entry.covers), ""), len(order)) > order[missing.covers[0]]:
                shown.insert(place, missing)
                break
        else:
            shown.append(missing)
    return tuple(shown)


def _instructions(entries: Sequence[Entry], ledger: Ledger) -> list[str]:
    """The texts of the system messages at the beginning of an imported session, in the compiler's form where it shows them."""
    shown = {entry.group.id: entry.group for entry in entries if entry.group and entry.group.kind == "system"}
    texts: list[str] = []
    for group in ledger.groups:
        if group.kind == "user":
            break  # later system messages are notes
        if group.kind == "system":
            texts.append(shown.get(group.id, group).first.text)
    return texts


def reasoning_filter(ledger: Ledger, keep_reasoning: bool) -> Callable[[int], bool]:
    """A function that says whether the reasoning of the message with a number is sent back; `keep_reasoning`: the model wants
    it."""
    return ledger.sends_thoughts_of if keep_reasoning else lambda seq: False


def items_of(entry: Entry, sends_reasoning: Callable[[int], bool], counter: TokenCounter) -> list[Item]:
    """The items of an entry: its messages in the form for a model, with their token counts, empty ones left out.
    `sends_reasoning` says whether the reasoning of the message with a number is sent."""
    group = entry.group
    if group is None or group.kind == "system":
        return []
    items: list[Item] = []
    for message in group.messages:
        shown = shape(message, group.kind)
        if shown.reasoning and not sends_reasoning(message.seq):
            shown = msgspec.structs.replace(shown, reasoning=shown.reasoning.signature)
        if shown.empty:
            continue
        mix = counter.mix(shown)
        items.append(
            Item(
                message=shown,
                section=section_of(message, entry),
                tokens=mix.raw,
                mix=mix,
                kind=group.kind,
                turn=group.turn,
                group=group.id,
                change=entry.change,
                source=group.source,
                pinned=entry.pinned,
            )
        )
    return items


def shape(message: Message, kind: GroupKind) -> Message:
    """The message in the form for a model: strays and system notes become marked quotations by the user, results are never empty,
    and tools have names that providers accept, also in old and imported calls."""
    if kind == "stray":
        who = message.name or message.call_id or "a tool"
        text = f"[a result of {who} whose call is not in this conversation]\n{message.text}"
        return Message(seq=message.seq, role="user", content=text, at=message.at)
    if kind == "note" and message.role == "system":
        return Message(seq=message.seq, role="user", content=f"[instruction]\n{message.text}", at=message.at)
    replace = msgspec.structs.replace
    if message.role == "tool":
        content, name = "[no output]" if message.empty else message.content, message.name and plain_name(message.name)
        return (
            message
            if (content, name) == (message.content, message.name)
            else replace(message, content=content, name=name)
        )
    if any(call.name != plain_name(call.name) for call in message.calls):
        return replace(message, calls=tuple(replace(call, name=plain_name(call.name)) for call in message.calls))
    return message


def _block_item(text: str, section: SectionName, role: Role, source: str, counter: TokenCounter) -> Item:
    """An item for a text that is in no message of the record."""
    message = Message(seq=0, role=role, content=text)
    mix = counter.mix(message)
    kind: GroupKind = "system" if role == "system" else "note"
    return Item(message=message, section=section, tokens=mix.raw, kind=kind, source=source, mix=mix)


def problems(view: View) -> list[str]:
    """Sentences about what a strict provider would refuse in a view; empty when it is valid."""
    found: list[str] = []
    seen_other = False
    open_calls: list[str] = []
    for place, item in enumerate(view.items):
        message = item.message
        if message.role == "system" and seen_other:
            found.append(f"item {place}: a system message after others")
        seen_other = seen_other or message.role != "system"
        if message.role == "tool":
            if message.call_id in open_calls:
                open_calls.remove(message.call_id)
            else:
                found.append(f"item {place}: result {message.call_id} without its call")
        elif open_calls:
            found.append(f"item {place}: calls {open_calls} without results")
            open_calls = []
        open_calls += [call.id for call in message.calls]
        found += [f"item {place}: tool {c.name!r}" for c in message.calls if c.name != plain_name(c.name)]
        if message.empty:
            found.append(f"item {place}: empty content")
    if open_calls:
        found.append(f"end: calls {open_calls} without results")
    return found
