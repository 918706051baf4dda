"""What goes along with a message, through the agent: kept, weighed, read again for each request, told."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from ctxchat.core import openai
from ctxchat.core.budget import Window
from ctxchat.core.errors import StorageError
from ctxchat.core.events import TurnStarted
from ctxchat.core.images import data_url
from ctxchat.core.messages import Image, Message, Text
from tests.agent.desk import Desk
from tests.doubles.images import gif, png
from tests.doubles.scripted import ScriptedModel, says

SHOT = png(1024, 1024)


def desk_of(**model: object) -> tuple[Desk, ScriptedModel]:
    scripted = ScriptedModel([says("a pier"), says("grey")], window=Window(32_000, "configured"), **model)  # type: ignore[arg-type]
    return Desk(scripted), scripted


async def test_an_image_is_kept_told_and_sent_with_every_request() -> None:
    desk, model = desk_of()
    image = await desk.session.attachments.save("shot.png", SHOT)
    assert image == Image("attachments/shot.png", 1024, 1024, "shot.png")
    async with aclosing(desk.session.send("what is this?", [image, Text("PERIOD = 90\n", "gauge.py")])) as stream:
        events = [stamped.event async for stamped in stream]
    started = next(e for e in events if isinstance(e, TurnStarted))
    assert next((a.name, a.kind, a.tokens) for a in started.attachments) == ("shot.png", "image", 765)
    assert started.attachments[1].lines == 1 and started.text == "what is this?"
    await desk.say("and its colour?")
    assert [request.images for request in model.requests] == [{"attachments/shot.png": data_url(SHOT)}] * 2


async def test_of_a_gif_that_moves_the_first_frame_is_sent_and_all_of_it_kept() -> None:
    desk, model = desk_of()
    image = await desk.session.attachments.save("wave.gif", gif(8, 8, frames=3))
    async with aclosing(desk.session.send("what is this?", [image])) as stream:
        assert [stamped async for stamped in stream]
    assert model.requests[0].images == {image.url: data_url(gif(8, 8))}
    assert await desk.journal.attached(image.url) == gif(8, 8, frames=3)


async def test_an_image_whose_file_is_gone_and_a_model_that_sees_none_cost_no_turn() -> None:
    desk, model = desk_of()
    image = await desk.session.attachments.save("shot.png", SHOT)
    desk.journal.images.clear()
    async with aclosing(desk.session.send("", [image])) as stream:
        assert [s.event.status async for s in stream if s.event.__class__.__name__ == "TurnFinished"] == ["done"]  # type: ignore[union-attr]
    assert model.requests[0].images == {}
    blind, seer = desk_of(sees=False)
    image = await blind.session.attachments.save("shot.png", SHOT)
    async with aclosing(blind.session.send("look", [image])) as stream:
        async for _ in stream:
            pass
    assert seer.requests[0].images == {} and not blind.session.attachments.seen
    assert blind.session.attachments.count_tokens(image) < 20


async def test_an_export_carries_the_images_that_are_still_there() -> None:
    desk, _ = desk_of()
    image = await desk.session.attachments.save("shot.png", SHOT)
    async with aclosing(desk.session.send("look", [image])) as stream:
        assert [stamped async for stamped in stream]
    whole = await desk.session.attachments.carried(desk.state.ledger.groups)
    assert data_url(SHOT) in str(openai.recorded(whole[0].first))
    desk.journal.images.clear()
    gone = str(await desk.session.attachments.carried(desk.state.ledger.groups))
    assert "[image shot.png 1024×1024]" in gone and "base64" not in gone


async def test_the_draft_weighs_what_the_message_will() -> None:
    desk, _ = desk_of()
    image = await desk.session.attachments.save("shot.png", SHOT)
    await desk.session.measure()
    parts = (image, Text("PERIOD = 90\n" * 300, "gauge.py"))
    draft = desk.session.attachments.with_draft("look", parts)
    async with aclosing(desk.session.send("look", parts)) as stream:
        async for _ in stream:
            pass
    assert abs(draft.tokens("draft") - next(i.tokens for i in desk.session.view.items if i.kind == "user")) <= 2


async def test_a_long_text_is_estimated_until_it_was_counted() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text)

    desk, _ = desk_of(count=count)
    long = Text("x" * 200_000, "paste-1.txt")
    rough = desk.session.attachments.count_tokens(long)
    assert max(counted, default=0) < 200_000 and rough > 50_000
    await desk.session.attachments.count([long])
    assert desk.session.attachments.count_tokens(long) > 200_000


async def test_a_paste_put_away_says_where_the_rest_lies() -> None:
    desk, _ = desk_of()
    text = await desk.session.attachments.put_away("paste-1.txt", "\n".join(f"line {n}" for n in range(20_000)))
    assert desk.journal.spilled["paste-1.txt"].count("\n") == 19_999
    assert "line 0" in text.text and "line 19999" in text.text and "full text: paste-1.txt" in text.text
    assert desk.session.attachments.count_tokens(text) < 1_200


async def test_a_full_disk_is_told_before_anything_is_sent() -> None:
    desk, model = desk_of()
    desk.journal.full = True
    with pytest.raises(StorageError):
        await desk.session.attachments.save("shot.png", SHOT)
    assert model.requests == []


@pytest.mark.parametrize("body", ["The first column is GMT.", "```\ncode\n```\n\n````x\ny\n````", "a\n\nb"])
def test_a_skill_that_was_called_comes_back_as_one_from_openais_form(body: str) -> None:
    called = (Text("/tides for monday\n\nplease"), Text(body, "skill /tides"), Text("a = 1", "a.py"))
    wire = openai.to_wire(Message(1, "user", called))
    again = openai.from_wire(wire, 1)
    assert again.content == called and openai.recorded(again) == wire


@pytest.mark.parametrize(
    "text",
    [
        "See:\n\n```python\nx\n```",
        "See:\n\n```skill /tides\nno end",
        "See:\n\n```skill /tides\nx\n```\n\nand then?",
        "```skill /tides\nx\n```",
    ],
)
def test_what_a_person_wrote_in_fences_stays_theirs(text: str) -> None:
    assert openai.from_wire({"role": "user", "content": text}, 1).content == text
