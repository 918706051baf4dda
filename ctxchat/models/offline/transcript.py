"""What a view tells the assistant: the question, what came along with it, what was done about it, and texts to quote from.

Reads views only. What tools and files said is kept apart from what the user said, and never read as a wish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.expressions import expression
from ctxchat.core.messages import Text, ToolCall
from ctxchat.core.summaries import CLOSING, OPENING, PREFACE
from ctxchat.core.view import Item, View

_DENIED = expression(
    r"\A\W{0,3}(?:the user did not allow|the session is read-only|.{0,200}\bwas not run\b|denied\b)", re.I
)
_FAILED = expression(
    r"""\A\W{0,3}(?:error\b | there\ is\ no\b | cannot\b | could\ not\b | no\ such\b
    | .{0,300}\b(?:failed | not\ found | does\ not\ exist | is\ not\ (?:in|text|a|an|usable))\b)""",
    re.I | re.X,
)
_CONTENT = expression(r"\s*(?:\d{1,8}(?:\t|$)|[^:\n]{1,300}:\d{1,8}:|\S+$)")
"""Matches results that begin with a numbered line, a hit or a lone path: they succeeded, whatever their text says."""

Call = tuple[str, Mapping[str, object]]
"""A tool's name and the arguments for it."""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The assistant's reply: an answer as text, or calls of offered tools with `reasoning` about them."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


class DoneCall(msgspec.Struct, frozen=True):
    """A tool call of this turn and its result."""

    name: str
    arguments: Mapping[str, Any]
    text: str
    round: int

    @property
    def denied(self) -> bool:
        """Whether the call was refused and not run; the text gives the reason."""
        return bool(_DENIED.match(self.text[:400]))

    @property
    def failed(self) -> bool:
        """Whether the call failed, as far as the result's text shows."""
        first = self.text.lstrip("\n").split("\n", 1)[0][:400]
        return self.denied or bool(_FAILED.match(first) and not _CONTENT.match(first))

    def get(self, name: str) -> str:
        """An argument as text; empty where it is missing."""
        value = self.arguments.get(name)
        return value if isinstance(value, str) else "" if value is None else str(value)


class Source(msgspec.Struct, frozen=True):
    """A text of the view that can be quoted: what it is called, its words, and what kind it is."""

    label: str
    text: str
    kind: str


class ReadView(msgspec.Struct, frozen=True):
    """A view, read. `attached` are the files that came with the question, by name. `earlier` are the user's previous messages,
    the last one first. `rounds` counts this turn's model calls with tools, those that a compaction folded included. `offered` are
    the tools that can be called, with their schemas; `next_id` begins the ids of the next calls."""

    question: str
    attached: Mapping[str, str]
    earlier: tuple[str, ...]
    done: tuple[DoneCall, ...]
    rounds: int
    sources: tuple[Source, ...]
    last_reply: str
    offered: Mapping[str, Mapping[str, object]]
    next_id: str

    def named(self, *names: str) -> list[DoneCall]:
        """This turn's calls of these tools."""
        return [d for d in self.done if d.name in names]

    def calls(self, thought: str, *wanted: Call) -> Reply | None:
        """These calls, each once, of the tools that were offered and of what their schemas know; None where none is left."""
        fitting = ((name, self._fitting(name, given)) for name, given in wanted if name in self.offered)
        texts = ((name, msgspec.json.encode(given).decode()) for name, given in fitting if given is not None)
        made = [ToolCall(f"{self.next_id}-{i}", *call) for i, call in enumerate(dict.fromkeys(texts), 1)]
        return Reply(calls=tuple(made), reasoning=thought) if made else None

    def _fitting(self, name: str, given: Mapping[str, object]) -> Mapping[str, object] | None:
        """The arguments that the tool's schema has; None where a required one is missing."""
        known, required = (self.offered[name].get(word) for word in ("properties", "required"))
        kept = {k: v for k, v in given.items() if not isinstance(known, dict) or k in known}
        return kept if not isinstance(required, list | tuple) or set(required) <= kept.keys() else None


def read_view(view: View) -> ReadView:
    """The view as the assistant understands it. Never raises."""
    asked = [i for i, item in enumerate(view.items) if item.kind == "user" and item.message.role == "user"]
    at = asked[-1] if asked else len(view.items)
    turn = view.items[at].turn if asked else -1
    done = _done_calls(view.items[at:])
    folded = any(item.kind == "summary" and turn > 0 and item.turn == turn for item in view.items)
    replies = [item for item in view.items[:at] if item.message.role == "assistant" and not item.message.calls]
    beside = bool(asked) and not view.items[at].turn  # a question beside the conversation, for which nothing is called
    return ReadView(
        question=_user_text(view.items[at]) if asked else "",
        attached=_attached(view.items[at]) if asked else {},
        earlier=tuple(_user_text(view.items[i]) for i in reversed(asked[:-1])),
        done=done,
        rounds=max((d.round for d in done), default=0) + (2 if folded else 0),
        sources=tuple(_sources(view.items, at)),
        last_reply=replies[-1].message.text if replies else "",
        offered={} if beside else {spec.name: spec.parameters for spec in view.tools},
        next_id=f"o{max((item.message.seq for item in view.items), default=0)}",
    )


def _user_text(item: Item) -> str:
    """What the user typed: the first text of a message with attachments."""
    content = item.message.content
    if isinstance(content, str):
        return _sound(content)
    return next((_sound(p.text) for p in content if isinstance(p, Text) and not p.name), "")


def _attached(item: Item) -> dict[str, str]:
    content = item.message.content
    return (
        {} if isinstance(content, str) else {p.name: _sound(p.text) for p in content if isinstance(p, Text) and p.name}
    )


def _sound(text: str) -> str:
    """Without lone surrogates, which no JSON can carry into a call."""
    return text.encode("utf-8", "replace").decode()


def _done_calls(items: tuple[Item, ...]) -> tuple[DoneCall, ...]:
    done: list[DoneCall] = []
    waiting: list[tuple[str, str, dict[str, Any], int]] = []
    number = 0
    for item in items:
        message = item.message
        number += bool(message.calls)
        waiting += [(c.id, c.name, fields_of(c.arguments) or {}, number) for c in message.calls]
        if message.role == "tool":
            match = next((w for w in waiting if w[0] == message.call_id), None)
            if match:
                waiting.remove(match)
                done.append(DoneCall(match[1], match[2], _sound(message.text), match[3]))
    return tuple(done)


def _sources(items: tuple[Item, ...], at: int) -> list[Source]:
    found: list[Source] = []
    for place, item in enumerate(items):
        message = item.message
        if item.kind == "summary":
            text = message.text
            for wrapping in (OPENING, PREFACE, CLOSING):
                text = text.replace(wrapping, "")
            found.append(Source("the summary of this conversation", text, "summary"))
        elif item.section == "memory":
            text = re.sub(r"\A<context source=\"[^\"]*\">\n|\n</context>\Z", "", message.text)
            found.append(Source(item.source or "memory", text, "memory"))
        elif item.kind == "note" and item.source.startswith("restore:"):
            found.append(Source(f"restored message {item.source.removeprefix('restore:')}", message.text, "restored"))
        elif item.kind == "user" and place != at:
            found.append(Source(f"your message {message.id}", _user_text(item), "user"))
        elif item.kind == "reply" and place < at:
            found.append(Source(f"my answer {message.id}", message.text, "reply"))
    return found
