"""The values that a conversation is made of: messages with their parts, tool calls, and groups of messages that stay together.

The record is the list of all groups of a session. Knows nothing of files, clocks, providers or screens. All values are frozen and
can be written as JSON. Frozen values cannot form cycles, so `gc=False` saves the garbage collector from going through a long
record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from ctxchat.core.command_end import command_end
from ctxchat.core.head import ContextBlock
from ctxchat.core.quantities import line_count

Role = Literal["system", "user", "assistant", "tool"]

GroupKind = Literal["system", "user", "reply", "round", "note", "stray", "summary"]
"""What a group consists of.

`system`: instructions of an imported conversation, always first in a view. `user`: a message of the person. `reply`: a message of
the model without calls. `round`: a message of the model with its reasoning, its calls and all their results. `note`: a message
that ctxchat wrote (a quotation, a hook's text). `stray`: a result without a call, which models are shown as a quotation, since
providers refuse such results. `summary`: what stands for compacted groups.
"""


class Text(msgspec.Struct, frozen=True, tag="text", omit_defaults=True, gc=False):
    """A text as a part of a message. One with a `name` is an attached file or a pasted text; models are shown it between
    fences."""

    text: str
    name: str = ""

    @property
    def words(self) -> str:
        """The text as a model is sent it."""
        if not self.name:
            return self.text
        fence = "```"
        while fence in self.text:
            fence += "`"
        return f"{fence}{' '.join(self.name.split())}\n{self.text.rstrip()}\n{fence}"


ATTACHED = "attachments"
"""The subfolder of a session's folder that holds its images."""


class Image(msgspec.Struct, frozen=True, tag="image", omit_defaults=True, gc=False):
    """An image as a part of a message. `url` is its address, a data URL, or its path in the session's folder (`attachments/…`).
    `width` and `height` are in pixels, 0 where unknown; `name` is the person's name of it."""

    url: str
    width: int = 0
    height: int = 0
    name: str = ""

    @property
    def stored(self) -> bool:
        """True for an image that is a file in the session's folder."""
        return self.url.startswith(f"{ATTACHED}/")

    @property
    def words(self) -> str:
        """A short text that takes its place where it cannot be shown."""
        size = f"{self.width}×{self.height}" if self.width and self.height else ""
        return f"[{' '.join(['image', *self.name.split(), *size.split()])}]"


class Opaque(msgspec.Struct, frozen=True, tag="other", gc=False):
    """A part that ctxchat keeps without reading it (audio, a PDF, a block of some provider), as JSON text."""

    kind: str
    json: str


Part = Text | Image | Opaque


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A tool call as the model wrote it. `arguments` is JSON text, kept even where it is not valid."""

    id: str
    name: str
    arguments: str


ReplyForm = Literal["messages", "responses", "chat", "signature"]
"""The format of a received reply: Anthropic's Messages, OpenAI's Responses, or chat completions; or only the signature of its
text (Gemini)."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A reply as its provider sent it, kept to be sent back unchanged.

    `model` is litellm's name of the model that wrote it. `blocks` is JSON text that depends on the `form`: the blocks or items in
    order, with signatures and encrypted reasoning; for `chat` an object of the fields that held reasoning, null where that is the
    reasoning's text; for `signature` a list of signatures.
    """

    form: ReplyForm
    model: str
    blocks: str


class Reasoning(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The reasoning of a reply, as text. `received` is the whole reply as it came, reasoning included; it is kept here because it
    is of use only together with the reasoning. Older records have `blocks` instead: only the signed reasoning, as JSON text.
    `tokens` is the server's count of the reasoning, of which `text` may be a summary or nothing; 0 where it tells none."""

    text: str
    blocks: str = ""
    received: Received | None = None
    tokens: int = 0

    @property
    def signature(self) -> Reasoning | None:
        """The part that is sent also where reasoning is not: the signature of the reply's text; None where it has none."""
        return Reasoning("", received=self.received) if self.received and self.received.form == "signature" else None


BROKEN_OFF = "[cut off here]"
"""The mark behind the text of an interrupted reply, so that it is not taken for a complete one."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A message of the record.

    `seq` is its number in the record of its session, from 1. `call_id` is the id of the call that a message of role `tool`
    answers. `at` is a time (ISO 8601). `original` is the JSON text of an imported message, where an export would not be equal to
    it otherwise. `synthetic`: the program wrote it, for a call that was never answered; models are sent it, exports of the record
    leave it out. `interrupted`: a reply that was cut off, with the text that had arrived. `failed`: the result of a call that
    failed or of a command that ended with an error; in an imported session, of one that the other agent stored as an error.
    """

    seq: int
    role: Role
    content: str | tuple[Part, ...] = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    reasoning: Reasoning | None = None
    at: str = ""
    original: str = ""
    synthetic: bool = False
    interrupted: bool = False
    failed: bool = False

    @property
    def id(self) -> str:
        """The id by which people, scripts and models refer to it: `m12`."""
        return f"m{self.seq}"

    @property
    def text(self) -> str:
        """Its text: the text parts in order, with placeholders for images and other parts."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(_part_text(part) for part in self.content)

    @property
    def empty(self) -> bool:
        """True where it has nothing that could be sent to a model."""
        if self.calls:
            return False
        if isinstance(self.content, str):
            return not self.content.strip()
        return all(isinstance(part, Text) and not part.text.strip() for part in self.content)


class Group(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Messages that stay together in every view, in the order that providers require.

    `turn` is the number of its turn, from 1; 0 for what comes before the first. A message that is sent during a turn belongs to
    that turn. `source` tells where a note or a summary comes from (`restore:m12`, `hook:tests`, a compaction's id). `context` are
    the whole texts of the context sources that a note tells of, while its message says only what has changed in them.
    """

    id: str
    kind: GroupKind
    messages: tuple[Message, ...]
    turn: int = 0
    source: str = ""
    context: tuple[ContextBlock, ...] = ()

    @property
    def first(self) -> Message:
        """The first message of the group."""
        return self.messages[0]


def _part_text(part: Part) -> str:
    """A part as text, with a placeholder for what is none."""
    match part:
        case Text() | Image():
            return part.words
        case Opaque(kind=kind):
            return f"[{kind}]"


OWN_COMMAND = "$ "
"""The beginning of an attachment's name where it is the output of a command that the person ran themselves."""


class Attached(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attachment of a message, in figures for a line on a screen. `width` and `height` are in pixels, 0 where unknown;
    `tokens` are 0 where it is not in the view; `lines` are those of a text. `ended` tells how a command of the person's ended, if
    it is its output."""

    name: str
    kind: Literal["image", "text", "other"]
    tokens: int = 0
    width: int = 0
    height: int = 0
    lines: int = 0
    ended: str = ""


def spoken(message: Message) -> str:
    """The text of a message without its attachments."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part.text for part in message.content if isinstance(part, Text) and not part.name)


_PROGRAM = re.compile(
    r"<(system-reminder|command-[\w-]+|local-command-[\w-]+|bash-[\w-]+|task-notification|user-prompt-submit-hook)>.*?</\1>"
    r"|^Caveat: The messages below [^\n]*$|^\[Request interrupted by user[^\]\n]*\]|^\[Image: source: [^\]\n]*\]"
    r"|\A/[a-z][\w-]*\s*\Z",
    re.DOTALL | re.MULTILINE,
)
"""Matches what other agents' programs put into a person's message, and commands to a program; the person did not say that to the
model."""


_COMMAND = re.compile(
    r"\s*<command-message>[^<]*</command-message>\s*<command-name>([^<]*)</command-name>(?:\s*<command-args>(.*?)</command-args>)?",
    re.DOTALL,
)
"""Matches a slash command as Claude Code stores it: its name and its arguments, in tags."""


def own_words(message: Message) -> str:
    """What the person said themselves: the text of a message without attachments and without what programs added."""
    command, after = _command_in(spoken(message))
    return f"{command}\n{_PROGRAM.sub('', after).strip()}".strip()


def readable_words(message: Message) -> str:
    """The text of a message as people read it, without attachments: a command that another agent stored in tags is shown as it
    was typed."""
    command, after = _command_in(text := spoken(message))
    return f"{command}\n{after.strip()}".strip() if command else text


def _command_in(text: str) -> tuple[str, str]:
    """The command in tags that a text begins with, as it was typed (empty for none), and the text behind it."""
    command = _COMMAND.match(text)
    if command is None:
        return "", text
    return f"{command[1].strip()} {(command[2] or '').strip()}".strip(), text[command.end() :]


def attached(parts: str | Sequence[Part], tokens: Sequence[int] = ()) -> tuple[Attached, ...]:
    """The attachments among the parts of a message; `tokens` are those of each part, in order, as far as they are known."""
    if isinstance(parts, str):
        return ()
    weights = [*tokens, *([0] * (len(parts) - len(tokens)))]
    lines = (_attached_part(part, weight) for part, weight in zip(parts, weights, strict=True))
    return tuple(line for line in lines if line)


def _attached_part(part: Part, tokens: int) -> Attached | None:
    """A part as an attachment; None for a plain text."""
    match part:
        case Text(text=text, name=name):
            if not name:
                return None
            ended = command_end(text).words if name.startswith(OWN_COMMAND) else ""
            return Attached(name, "text", tokens, lines=line_count(text), ended=ended)
        case Image(width=width, height=height, name=name):
            return Attached(name or "image", "image", tokens, width, height)
        case _:
            return Attached(part.kind, "other", tokens)
