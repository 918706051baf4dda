"""The offline assistant as a model: it streams, counts, can be cancelled, and refuses what its window cannot hold."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.core.events import ReasoningDelta, TextDelta
from ctxchat.core.grouping import single
from ctxchat.core.head import Head, ToolSpec
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.ports import ModelPiece, ModelPort, ModelRequest, ReplyEnd
from ctxchat.core.tokens import TokenCounter, rough_count
from ctxchat.core.view import View, compile
from ctxchat.models.offline.assistant import OfflineAssistant, decide


def view(question: str, *tools: str) -> View:
    ledger = Ledger().append(single("user", Message(seq=1, role="user", content=question), 1))
    return compile(ledger, Head(system="x", tools=tuple(ToolSpec(t, t, {}) for t in tools)), TokenCounter())


async def play(model: ModelPort, request: ModelRequest) -> list[ModelPiece]:
    return [piece async for piece in model.stream(request)]


async def test_an_answer_streams_in_small_pieces_with_its_count() -> None:
    asked = view("help")
    pieces = await play(OfflineAssistant(delay=0), ModelRequest(asked))
    texts = [p.text for p in pieces if isinstance(p, TextDelta)]
    end = pieces[-1]
    assert len(texts) > 10 and "".join(texts) == decide(asked).text
    assert isinstance(end, ReplyEnd) and end.finish == "stop" and end.usage
    assert end.usage.prompt == asked.raw and not end.usage.estimated
    assert end.usage.completion == rough_count("".join(texts))


async def test_calls_come_whole_with_thoughts_before_them() -> None:
    pieces = await play(OfflineAssistant(delay=0), ModelRequest(view("where is the lamp set?", "grep")))
    end = pieces[-1]
    assert isinstance(end, ReplyEnd) and end.finish == "tool_calls" and [c.name for c in end.calls] == ["grep"]
    assert "lamp" in "".join(p.text for p in pieces if isinstance(p, ReasoningDelta))


async def test_a_long_answer_does_not_take_many_pieces() -> None:
    asked = view("x" * 3 + " " + "penguin " * 2_000)
    assert len(await play(OfflineAssistant(delay=0), ModelRequest(asked))) < 310


async def test_the_output_limit_cuts_and_says_so() -> None:
    pieces = await play(OfflineAssistant(delay=0), ModelRequest(view("help"), max_output=20))
    text = "".join(p.text for p in pieces if isinstance(p, TextDelta))
    end = pieces[-1]
    assert isinstance(end, ReplyEnd) and end.finish == "length" and 0 < rough_count(text) <= 20


async def test_what_does_not_fit_is_refused_as_a_server_would() -> None:
    model = OfflineAssistant(window=Window(500, "loaded"))
    assert (await model.window()).tokens == 500
    with pytest.raises(ModelError) as caught:
        await play(model, ModelRequest(view("word " * 1_000)))
    assert caught.value.kind == "overflow" and "maximum context length is 500 tokens" in caught.value.body


async def test_a_cancel_ends_it_between_two_pieces() -> None:
    seen: list[ModelPiece] = []
    begun = asyncio.Event()

    async def read() -> None:
        async with aclosing(OfflineAssistant(delay=60).stream(ModelRequest(view("help")))) as stream:
            async for piece in stream:
                seen.append(piece)
                begun.set()

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(seen) == 1
