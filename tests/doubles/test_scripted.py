"""The scripted model does what ModelPort promises, to the letter of its script."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from ctxchat.core.errors import ModelError
from ctxchat.core.events import ReasoningDelta, TextDelta, Usage
from ctxchat.core.grouping import single
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.ports import CallPiece, ModelPiece, ModelPort, ModelRequest, ReplyEnd
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import View, compile
from tests.doubles.scripted import ScriptedModel, calls, fails, hangs, says


def view(text: str = "hello") -> View:
    ledger = Ledger().append(single("user", Message(seq=1, role="user", content=text), 1))
    return compile(ledger, Head(system="Be brief."), TokenCounter())


async def play(model: ModelPort, request: ModelRequest) -> list[ModelPiece]:
    return [piece async for piece in model.stream(request)]


async def test_words_arrive_in_pieces_and_add_up() -> None:
    model = ScriptedModel([says("two  spaces and\na line", reasoning="let me see")])
    pieces = await play(model, ModelRequest(view()))
    assert "".join(p.text for p in pieces if isinstance(p, TextDelta)) == "two  spaces and\na line"
    assert "".join(p.text for p in pieces if isinstance(p, ReasoningDelta)) == "let me see"
    end = pieces[-1]
    assert isinstance(end, ReplyEnd) and end.finish == "stop"
    assert end.usage and end.usage.prompt == view().raw and end.usage.completion > 0


async def test_calls_get_ids_that_never_repeat() -> None:
    wanted = calls(("read_file", {"path": "a.py"}), ("grep", '{"pattern": "x'))
    model = ScriptedModel([wanted, wanted])
    ids: list[str] = []
    for _ in range(2):
        pieces = await play(model, ModelRequest(view()))
        end = pieces[-1]
        assert isinstance(end, ReplyEnd) and end.finish == "tool_calls"
        assert [c.arguments for c in end.calls] == ['{"path":"a.py"}', '{"pattern": "x']
        assert [p.name for p in pieces if isinstance(p, CallPiece)] == ["read_file", "grep"]
        ids += [c.id for c in end.calls]
    assert len(set(ids)) == 4


async def test_usage_is_what_the_script_says() -> None:
    told = Usage(prompt=7, completion=3)
    model = ScriptedModel([says("a", usage=told), says("b", usage=None)])
    ends = [(await play(model, ModelRequest(view())))[-1] for _ in range(2)]
    assert [e.usage for e in ends if isinstance(e, ReplyEnd)] == [told, None]


async def test_an_error_comes_after_what_was_said_before_it() -> None:
    model = ScriptedModel([fails(ModelError("gone", kind="connection"), after="half an")])
    seen: list[str] = []
    with pytest.raises(ModelError, match="gone") as caught:
        async for piece in model.stream(ModelRequest(view())):
            assert isinstance(piece, TextDelta)
            seen.append(piece.text)
    assert "".join(seen) == "half an" and caught.value.transient


async def test_requests_are_kept_and_the_end_of_the_script_is_an_error() -> None:
    model = ScriptedModel([lambda request: says(f"{request.max_output} at most")])
    pieces = await play(model, ModelRequest(view("first"), max_output=9))
    assert "".join(p.text for p in pieces if isinstance(p, TextDelta)) == "9 at most"
    with pytest.raises(ModelError, match="call 2"):
        await play(model, ModelRequest(view("second")))
    assert [v.items[-1].message.text for v in model.views] == ["first", "second"]


async def test_a_hanging_reply_ends_with_its_cancel() -> None:
    model = ScriptedModel([hangs("so far"), says("x")])
    started = asyncio.Event()

    async def read() -> None:
        async with aclosing(model.stream(ModelRequest(view()))) as stream:
            async for piece in stream:
                if piece == TextDelta("far"):
                    started.set()

    task = asyncio.create_task(read())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.cut_short == 1
    await play(model, ModelRequest(view()))
    assert model.cut_short == 1
