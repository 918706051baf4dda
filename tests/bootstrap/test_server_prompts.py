"""Prompts of real MCP servers, called as `/server:name`: what goes along, what goes wrong, and that they come and go."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ctxchat.agent.session import Session
from ctxchat.core.errors import CtxchatError
from ctxchat.core.messages import Image, Message, Text
from ctxchat.tui.chat.completion import command_choices
from tests.bootstrap.scripted_program import Scripted, program, say
from tests.doubles.scripted import says
from tests.tools.test_mcp import RAW

SHELF = f"[tools]\nmcp_wait = 60\n[mcp.shelf]\ncommand = {sys.executable!r}\nargs = [{RAW!r}, 'prompts']\n"


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[tuple[Scripted, Session]]:
    config = folder / "config"
    config.mkdir()
    (config / "config.toml").write_text(SHELF)
    made = program(folder, config, *[says("seen")] * 20)
    session = await made.open(interactive=False)
    await made.mcp_servers(wait=True)
    yield made, session
    await session.close()
    await made.close()


def sent(session: Session) -> Message:
    """The person's last message."""
    return next(g.first for g in reversed(session.state.ledger.groups) if g.kind == "user")


async def test_what_the_server_writes_goes_along_with_its_arguments_in_place(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("nobody asked for this")
    async with talking(tmp_path) as (_, session):
        await say(session, '/shelf:review "the old wall" tone=gently')
        assert sent(session).content == (
            Text('/shelf:review "the old wall" tone=gently'),
            Text("Review the old wall, gently. @notes.txt", "prompt /shelf:review"),
        )
        assert session.mentioning("/shelf:review @a.txt") == "/shelf:review @a.txt\n"


async def test_its_images_go_along_and_what_looks_like_a_secret_does_not(tmp_path: Path):
    async with talking(tmp_path) as (_, session):
        await say(session, "/shelf:cover")
        _, words, image = sent(session).content
        assert isinstance(words, Text) and words.text == "The assistant:\nI see a cover."
        assert isinstance(image, Image) and image.stored and (image.width, image.height) == (1, 1)
        await say(session, "/shelf:潮 high and low")
        words = sent(session).text
        assert '潮: {"all": "high and low"}' in words and "sk-ant" not in words


@pytest.mark.parametrize(
    ("called", "why"),
    [
        ("review", "needs topic .what to look at."),
        ("nothing", "wrote nothing"),
        ("huge", "300,000 characters"),
        ("death", "ended"),
    ],
)
async def test_where_it_cannot_be_had_nothing_is_sent_and_it_says_why(tmp_path: Path, called: str, why: str):
    async with talking(tmp_path) as (made, session):
        with pytest.raises(CtxchatError, match=why):
            await say(session, f"/shelf:{called}")
        assert not session.state.ledger.groups and not made.script.views
        await made.mcp_servers(wait=True)
        await say(session, "/shelf:review walls")
        assert "Review walls, plainly." in sent(session).text


async def test_they_change_when_the_server_says_so_and_go_when_it_is_switched_off(tmp_path: Path):
    async with talking(tmp_path) as (made, session):
        await say(session, "/shelf:next")
        for _ in range(6000):
            if "shelf:after" in [p.name for p in session.setup.prompts]:
                break
            await asyncio.sleep(0.01)
        assert "shelf:next" not in [p.name for p in session.setup.prompts]
        await made.servers.switch("shelf")
        assert not any(p.origin == "server" for p in session.setup.prompts)


async def test_they_are_completed_with_their_arguments_and_say_nothing_to_a_terminal(tmp_path: Path):
    async with talking(tmp_path) as (_, session):
        choices = command_choices("shelf:", session.setup.prompts)
        review = next(c for c in choices if "review" in c.label)
        assert review.label == "/shelf:review <topic> [tone]" and review.note.startswith("(server prompt) About")
        assert not any("\x1b" in c.insert + c.label + c.note for c in choices)
        assert "/shelf:note_2J_b_" in {c.insert.strip() for c in choices}


async def test_of_a_server_that_cannot_start_nothing_is_sent_and_what_it_said_is_told(tmp_path: Path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.toml").write_text(
        '[mcp.shelf]\ncommand = "sh"\nargs = ["-c", "echo no shelf here >&2"]\n'
    )
    made = program(tmp_path, tmp_path / "config", says("seen"))
    session = await made.open(interactive=False)
    with pytest.raises(CtxchatError, match=r"shelf is not there: .*It said: no shelf here"):
        await say(session, "/shelf:review walls")
    assert not session.state.ledger.groups and not made.script.views
    await say(session, "/other:review walls")
    assert sent(session).text == "/other:review walls"
    await session.close()
    await made.close()
