"""Requests for tests of models: views made from plain messages, and what a model streamed, gathered."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

from ctxchat.core.events import ReasoningDelta, TextDelta
from ctxchat.core.messages import Message, Reasoning, ToolCall
from ctxchat.core.ports import CallPiece, ModelPort, ModelRequest, ReplyEnd
from ctxchat.core.view import Item, ToolSpec, View

READ_FILE = ToolSpec(
    "read_file",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def view_of(*messages: Message, tools: tuple[ToolSpec, ...] = (READ_FILE,), injected: int = 0) -> View:
    """A view of these messages, the last `injected` of them put in by the frame."""
    items = tuple(
        Item(
            message=message,
            section="injected" if place >= len(messages) - injected else "user",
            tokens=1,
            kind="user",
            group="" if place >= len(messages) - injected else f"g{place}",
        )
        for place, message in enumerate(messages)
    )
    return View(items, tools, tuple(1 for _ in tools), len(items), 0)


def asks(*texts: str, **more: int) -> ModelRequest:
    """A request with a system prompt and user messages."""
    messages = [Message(0, "system", "Be brief."), *(Message(i, "user", text) for i, text in enumerate(texts, 1))]
    return ModelRequest(view_of(*messages), **more)


def after_a_call(blocks: str = "", injected: str = "") -> ModelRequest:
    """A request in the middle of a round: question, call, result."""
    thought = Reasoning("I must look.", blocks)
    messages = [
        Message(0, "system", "Be brief."),
        Message(1, "user", "What is in a.txt?"),
        Message(2, "assistant", "", (ToolCall("call_1", "read_file", '{"path": "a.txt"}'),), reasoning=thought),
        Message(3, "tool", "forty-two", call_id="call_1", name="read_file"),
    ]
    if injected:
        messages.append(Message(0, "user", injected))
    return ModelRequest(view_of(*messages, injected=int(bool(injected))))


@dataclass
class Heard:
    """What a model streamed, and how it ended."""

    text: str = ""
    reasoning: str = ""
    fragments: list[CallPiece] = field(default_factory=list)
    end: ReplyEnd | None = None
    pieces: int = 0


async def listen(model: ModelPort, request: ModelRequest, heard: Heard | None = None) -> Heard:
    """Everything of one reply; `heard` keeps what came before an error."""
    heard = heard or Heard()
    async with aclosing(model.stream(request)) as pieces:  # pyright: ignore[reportArgumentType]
        async for piece in pieces:
            heard.pieces += 1
            match piece:
                case TextDelta(text=text):
                    heard.text += text
                case ReasoningDelta(text=text):
                    heard.reasoning += text
                case CallPiece():
                    heard.fragments.append(piece)
                case ReplyEnd():
                    heard.end = piece
    return heard
