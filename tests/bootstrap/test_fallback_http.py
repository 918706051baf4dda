"""A fallback, a wait and a reply that broke off, end to end: settings, program, the straight lane, servers on loopback."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path

from ctxchat.agent.session import Session
from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.program import Program
from ctxchat.config.effective import load_settings
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.events import Event, Failed, Notice, Retry, TurnFinished, Usage
from ctxchat.storage.database import Database
from tests.agent.test_turn import of
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import breaks, refuses, says

DOWN = "http://127.0.0.1:9/v1"


@asynccontextmanager
async def talking(tmp_path: Path, toml: str):
    tmp_path.joinpath("config.toml").write_text(toml)
    environ = {"CTXCHAT_CONFIG_DIR": str(tmp_path), "CTXCHAT_DATA_DIR": str(tmp_path)}
    program = Program(
        Flags(cwd=str(tmp_path)), load_settings(tmp_path, environ=environ), tmp_path, Database(tmp_path / "data")
    )
    session = await program.open()
    try:
        yield session
    finally:
        await session.close()
        await program.close()


def settings(first: str, second: str, retries: int = 0) -> str:
    return (
        'model = "openai/first"\n'
        f'[models."openai/first"]\napi_base = "{first}"\nwindow = 64000\nretries = {retries}\nfallback = "openai/second"\n'
        f'[models."openai/second"]\napi_base = "{second}"\nwindow = 16000\n'
    )


async def say(session: Session, text: str) -> list[Event]:
    return [stamped.event async for stamped in session.send(text)]


async def test_each_failure_for_good_is_taken_over_by_the_second_server(tmp_path: Path) -> None:
    script = [
        refuses(401, "Incorrect API key provided"),
        refuses(404, "The model `first` does not exist", code="model_not_found"),
        refuses(529, "Overloaded"),
        refuses(429, "You exceeded your current quota", code="insufficient_quota"),
        says("I am back."),
    ]
    async with (
        ModelDouble(script) as first,
        ModelDouble([says("Standing in.")]) as second,
        talking(tmp_path, settings(first.base_url, second.base_url)) as session,
    ):
        for number in range(1, 5):
            events = await say(session, f"message {number}")
            assert of(events, TurnFinished)[0].text == "Standing in."
            assert [n for n in of(events, Notice) if "openai/second answers this turn" in n.text]
            shown = [(f.model, f.window) for f in of(events, ContextUsage)]
            assert ("openai/second", 16_000) in shown and shown[-1] == ("openai/first", 64_000)
            assert (len(first.requests), len(second.requests)) == (number, number)
        events = await say(session, "and now?")
        assert of(events, TurnFinished)[0].text == "I am back." and not of(events, Notice)
        assert "Standing in." in str(first.requests[-1].body), "what was said meanwhile is known to it"


async def test_a_server_that_is_away_is_tried_again_then_taken_over_and_asked_once_the_next_time(
    tmp_path: Path,
) -> None:
    async with (
        ModelDouble([says("Standing in.")]) as second,
        talking(tmp_path, settings(DOWN, second.base_url, retries=1)) as session,
    ):
        first, again = await say(session, "hello"), await say(session, "hello again")
    assert (len(of(first, Retry)), len(of(again, Retry))) == (1, 0)
    assert "nobody listens there" in of(first, Notice)[0].text
    assert all(of(events, TurnFinished)[0].status == "done" for events in (first, again))


async def test_both_away_is_a_failure_with_a_remedy_and_a_message_that_can_be_sent_again(tmp_path: Path) -> None:
    async with talking(tmp_path, settings(DOWN, DOWN)) as session:
        events = await say(session, "hello")
        assert of(events, Failed)[0].kind == "connection" and DOWN in of(events, Failed)[0].hint
        assert session.context_usage.model == "openai/first"
        again = [stamped.event async for stamped in session.resume()]
        assert of(again, Failed) and [g.kind for g in session.state.ledger.groups] == ["user"]


async def test_a_stream_that_is_reset_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = "The tide gauge at Pier 7 reports every ninety seconds to the logger Cormorant."
    half = breaks("reset", whole, after=10)
    async with (
        ModelDouble([half, says("seconds to the logger Cormorant.")]) as first,
        talking(tmp_path, settings(first.base_url, DOWN)) as session,
    ):
        events = await say(session, "where to?")
        assert "/continue" in of(events, Failed)[0].hint
        stopped = session.state.ledger.groups[-1].first.text
        assert stopped and whole.startswith(stopped)
        again = [stamped.event async for stamped in session.resume()]
        assert of(again, TurnFinished)[0].status == "done" and of(again, Usage)
        said = [group.first.text for group in session.state.ledger.groups[1:] if group.kind == "reply"]
    sent = first.requests[1].body["messages"]
    assert stopped in str(sent) and sent[-1]["role"] == "user" and "cut off" in sent[-1]["content"]
    assert said == [stopped, "seconds to the logger Cormorant."]
