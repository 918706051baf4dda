"""The values a conversation is made of: messages, tool calls, parts, the groups that must stay together, and
what goes along with a message as figures for a line each.

Knows nothing of files, clocks, providers or screens. Every value is frozen and JSON-ready; frozen ones hold no cycles, so
`gc=False` spares the collector walking a long record while somebody types.
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
"""What holds a group together.

`system`: instructions that came with an imported conversation, always first in a view. `user`: what a person said.
`reply`: an answer without calls. `round`: one assistant message, its reasoning, its calls and all their results.
`note`: something ctxchat put in (a quotation, a hook's note). `stray`: a result whose call is nowhere; kept in the
record and shown as a quotation, so no view holds an orphan. `summary`: what stands for compacted groups.
"""


class Text(msgspec.Struct, frozen=True, tag="text", omit_defaults=True, gc=False):
    """A piece of text among other parts. One with a `name` came along as a file or a paste; models see it between fences."""

    text: str
    name: str = ""

    @property
    def words(self) -> str:
        """As a model reads it."""
        if not self.name:
            return self.text
        fence = "```"
        while fence in self.text:
            fence += "`"
        return f"{fence}{' '.join(self.name.split())}\n{self.text.rstrip()}\n{fence}"


ATTACHED = "attachments"
"""The folder of a session where images lie."""


class Image(msgspec.Struct, frozen=True, tag="image", omit_defaults=True, gc=False):
    """An image by address, by data URL, or by its path in the session's folder (`attachments/…`). `width` and `height` in
    pixels, 0 where unknown; `name` as a person knows it."""

    url: str
    width: int = 0
    height: int = 0
    name: str = ""

    @property
    def stored(self) -> bool:
        """It lies in the session's folder."""
        return self.url.startswith(f"{ATTACHED}/")

    @property
    def words(self) -> str:
        """What stands for it where it cannot be shown."""
        size = f"{self.width}×{self.height}" if self.width and self.height else ""
        return f"[{' '.join(['image', *self.name.split(), *size.split()])}]"


class Opaque(msgspec.Struct, frozen=True, tag="other", gc=False):
    """A part ctxchat carries without reading it (audio, a PDF, a provider's own block), as its JSON text."""

    kind: str
    json: str


Part = Text | Image | Opaque


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A call as the model wrote it. `arguments` is its JSON text, kept even where it is broken."""

    id: str
    name: str
    arguments: str


ReplyForm = Literal["messages", "responses", "chat", "signature"]
"""Whose form a received reply has: Anthropic's messages, OpenAI's responses, or chat completions; or nothing but what its text is
signed with (Gemini)."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A reply as its provider sent it, to be sent back so. `model` wrote it (litellm's name); `blocks` is JSON text: the blocks
    or items in their order, signatures, encrypted thoughts and phases included; in the chat form an object of the fields that
    held thoughts, null for the thoughts as they were read; of a signature a list of them."""

    form: ReplyForm
    model: str
    blocks: str


class Reasoning(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the model thought. `received` is the whole reply with its thoughts as they came; without the reasoning it goes, too.
    Older records have `blocks` instead: the signed thoughts alone, as JSON text."""

    text: str
    blocks: str = ""
    received: Received | None = None

    @property
    def signature(self) -> Reasoning | None:
        """What of it goes to a model that is sent no thoughts: what its own text is signed with."""
        return Reasoning("", received=self.received) if self.received and self.received.form == "signature" else None


BROKEN_OFF = "[cut off here]"
"""Behind a reply that was interrupted, for whoever reads it as the last word on something."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One message of the record.

    `seq` is its place in the record of its session, from 1. `call_id` is set on role `tool`. `original` is the
    JSON text of an imported message where this form would not give it back equal. `synthetic` marks what was made
    at the door to close an unanswered call: models see it, exports of the record leave it out. `interrupted` marks a
    reply that was cut off; its text is what had arrived. `failed` marks the result of a call that came to nothing, or of a
    command that ended badly, whatever its words are; where an imported one has it, the other agent kept it as an error.
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
        """The name people and scripts use for it: `m12`."""
        return f"m{self.seq}"

    @property
    def text(self) -> str:
        """The words of it: its text parts in order, images and opaque parts as placeholders."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(_part_text(part) for part in self.content)

    @property
    def empty(self) -> bool:
        """True when there is nothing a model could be sent."""
        if self.calls:
            return False
        if isinstance(self.content, str):
            return not self.content.strip()
        return all(isinstance(part, Text) and not part.text.strip() for part in self.content)


class Group(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Messages that stay together in every view, in the order a model must see them.

    `turn` counts turns from 1; what comes before the first belongs to turn 0, a message sent while one runs belongs to it.
    `source` says who made a note or a summary (`restore:m12`, `hook:tests`, a compaction's id). `context` is what a note tells of
    the surroundings, whole; its message says only what has changed.
    """

    id: str
    kind: GroupKind
    messages: tuple[Message, ...]
    turn: int = 0
    source: str = ""
    context: tuple[ContextBlock, ...] = ()

    @property
    def first(self) -> Message:
        """The message the group begins with."""
        return self.messages[0]


def _part_text(part: Part) -> str:
    match part:
        case Text() | Image():
            return part.words
        case Opaque(kind=kind):
            return f"[{kind}]"


OWN_COMMAND = "$ "
"""How the name of what went along begins where it is the output of a command of the person's own."""


class Attached(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of them. Pixels are 0 where they are not known, tokens where it is not in the view. `ended` says of the output of a
    person's command how that ended."""

    name: str
    kind: Literal["image", "text", "other"]
    tokens: int = 0
    width: int = 0
    height: int = 0
    lines: int = 0
    ended: str = ""


def spoken(message: Message) -> str:
    """The words of a message without what came along with it."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part.text for part in message.content if isinstance(part, Text) and not part.name)


_PROGRAM = re.compile(
    r"<(system-reminder|command-[\w-]+|local-command-[\w-]+|bash-[\w-]+|task-notification|user-prompt-submit-hook)>.*?</\1>"
    r"|^Caveat: The messages below [^\n]*$|^\[Request interrupted by user[^\]\n]*\]|^\[Image: source: [^\]\n]*\]"
    r"|\A/[a-z][\w-]*\s*\Z",
    re.DOTALL | re.MULTILINE,
)
"""What programs put into a person's message, and a command to one: nothing the person says to the agent."""


_COMMAND = re.compile(
    r"\s*<command-message>[^<]*</command-message>\s*<command-name>([^<]*)</command-name>(?:\s*<command-args>(.*?)</command-args>)?",
    re.DOTALL,
)
"""How Claude Code writes down a command that asks something of the model: its name and what stood behind it."""


def own_words(message: Message) -> str:
    """What a person said themselves: the words of a message without what came along, and without what programs put there."""
    asked, rest = _command_in(spoken(message))
    return f"{asked}\n{_PROGRAM.sub('', rest).strip()}".strip()


def readable_words(message: Message) -> str:
    """All words of a message as people read them: a command that another agent wrote down in tags stands as it was typed."""
    asked, rest = _command_in(text := spoken(message))
    return f"{asked}\n{rest.strip()}".strip() if asked else text


def _command_in(text: str) -> tuple[str, str]:
    """The command that a text begins with, as it was typed, and what stands behind it; no command: the text."""
    command = _COMMAND.match(text)
    if command is None:
        return "", text
    return f"{command[1].strip()} {(command[2] or '').strip()}".strip(), text[command.end() :]


def attached(parts: str | Sequence[Part], tokens: Sequence[int] = ()) -> tuple[Attached, ...]:
    """Those among the parts of a message; `tokens` are those of its parts, in their order, where they are known."""
    if isinstance(parts, str):
        return ()
    weights = [*tokens, *([0] * (len(parts) - len(tokens)))]
    lines = (_attached_part(part, weight) for part, weight in zip(parts, weights, strict=True))
    return tuple(line for line in lines if line)


def _attached_part(part: Part, tokens: int) -> Attached | None:
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
