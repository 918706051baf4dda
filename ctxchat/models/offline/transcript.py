"""Reads a view for the built-in assistant: the question, the files attached to it, the calls made for it so far, and the texts
that can be quoted.

A view is what a model would be sent. What tools and files say is kept apart from what the user said, so that it is never taken
for a request.
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
"""Matches the beginning of what stands in place of a result where a call was refused."""
_FAILED = expression(
    r"""\A\W{0,3}(?:error\b | there\ is\ no\b | cannot\b | could\ not\b | no\ such\b
    | .{0,300}\b(?:failed | not\ found | does\ not\ exist | is\ not\ (?:in|text|a|an|usable))\b)""",
    re.I | re.X,
)
"""Matches the first line of a result that reports a failure; `_CONTENT` takes some of these back."""
_CONTENT = expression(r"\s*(?:\d{1,8}(?:\t|$)|[^:\n]{1,300}:\d{1,8}:|\S+$)")
"""Matches results that begin with a numbered line of a file, a hit of a search or a lone path: these succeeded, whatever their
text says."""

Call = tuple[str, Mapping[str, object]]
"""A tool call to be made: the tool's name and the arguments."""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The assistant's reply: an answer as text, or calls of offered tools with `reasoning` about them."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


class DoneCall(msgspec.Struct, frozen=True):
    """A tool call of this turn with `text`, its result. `round` says in which of the turn's rounds it was made, from 1."""

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
    """A text that can be quoted. `label` names it for the user; `kind` is `summary`, `memory`, `restored`, `user` or `reply`
    for texts of the view, and `recall` for a result of that tool, which `research` adds."""

    label: str
    text: str
    kind: str


class ReadView(msgspec.Struct, frozen=True):
    """What the assistant knows from a view.

    `question` is what the user typed last, `attached` the texts of the files that came with it, by name. `earlier` are the
    user's previous messages, newest first, and `last_reply` the assistant's newest answer. `done` are the calls of this turn,
    and `rounds` the number of its model calls with tools, plus two where a compaction has taken some out of the view. `sources`
    are the texts to quote from. `offered` are the schemas of the tools that can be called, by name. `next_id` begins the ids of
    the next calls.
    """

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
        """A reply that makes these calls, each once, with `thought` as its reasoning.

        Calls of tools that are not offered or that lack a required argument are left out, and so are arguments that a tool's
        schema does not have. None where no call is left.
        """
        fitted = ((name, self._fit_arguments(name, given)) for name, given in wanted if name in self.offered)
        encoded = ((name, msgspec.json.encode(given).decode()) for name, given in fitted if given is not None)
        calls = [ToolCall(f"{self.next_id}-{i}", *call) for i, call in enumerate(dict.fromkeys(encoded), 1)]
        return Reply(calls=tuple(calls), reasoning=thought) if calls else None

    def _fit_arguments(self, name: str, given: Mapping[str, object]) -> Mapping[str, object] | None:
        """Those of the arguments that the tool's schema has; None where a required one is missing."""
        known, required = (self.offered[name].get(word) for word in ("properties", "required"))
        kept = {k: v for k, v in given.items() if not isinstance(known, dict) or k in known}
        return kept if not isinstance(required, list | tuple) or set(required) <= kept.keys() else None


def read_view(view: View) -> ReadView:
    """The view as the assistant understands it. Never raises."""
    user_items = [i for i, item in enumerate(view.items) if item.kind == "user" and item.message.role == "user"]
    at = user_items[-1] if user_items else len(view.items)  # the index of the question
    turn = view.items[at].turn if user_items else -1
    done = _done_calls(view.items[at:])
    folded = any(item.kind == "summary" and turn > 0 and item.turn == turn for item in view.items)
    replies = [item for item in view.items[:at] if item.message.role == "assistant" and not item.message.calls]
    aside = bool(user_items) and not view.items[at].turn  # a question beside the conversation: answered without tools
    return ReadView(
        question=_user_text(view.items[at]) if user_items else "",
        attached=_attached(view.items[at]) if user_items else {},
        earlier=tuple(_user_text(view.items[i]) for i in reversed(user_items[:-1])),
        done=done,
        # how many rounds a compaction has folded is not known: two, so that the turn comes to its end
        rounds=max((d.round for d in done), default=0) + (2 if folded else 0),
        sources=tuple(_sources(view.items, at)),
        last_reply=replies[-1].message.text if replies else "",
        offered={} if aside else {spec.name: spec.parameters for spec in view.tools},
        next_id=f"o{max((item.message.seq for item in view.items), default=0)}",
    )


def _user_text(item: Item) -> str:
    """What the user typed, without the attachments."""
    content = item.message.content
    if isinstance(content, str):
        return _without_surrogates(content)
    return next((_without_surrogates(p.text) for p in content if isinstance(p, Text) and not p.name), "")


def _attached(item: Item) -> dict[str, str]:
    """The texts of the files attached to a message, by name."""
    content = item.message.content
    if isinstance(content, str):
        return {}
    return {p.name: _without_surrogates(p.text) for p in content if isinstance(p, Text) and p.name}


def _without_surrogates(text: str) -> str:
    """The text with question marks in place of lone surrogates, which a call's arguments cannot hold as JSON."""
    return text.encode("utf-8", "replace").decode()


def _done_calls(items: tuple[Item, ...]) -> tuple[DoneCall, ...]:
    """The calls among these items that have a result, in the order of the results."""
    done: list[DoneCall] = []
    waiting: list[tuple[str, str, dict[str, Any], int]] = []  # call id, tool, arguments, round
    round_number = 0
    for item in items:
        message = item.message
        round_number += bool(message.calls)
        waiting += [(c.id, c.name, fields_of(c.arguments) or {}, round_number) for c in message.calls]
        if message.role == "tool":
            match = next((w for w in waiting if w[0] == message.call_id), None)
            if match:
                waiting.remove(match)
                done.append(DoneCall(match[1], match[2], _without_surrogates(message.text), match[3]))
    return tuple(done)


def _sources(items: tuple[Item, ...], at: int) -> list[Source]:
    """The texts that can be quoted; `at` is the index of the question, which is none of them."""
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
