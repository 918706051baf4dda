"""MCP servers as a program runs them: their tools in a session's window, switched, edited, failed, ended."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from ctxchat.bootstrap.servers import address_of
from ctxchat.config.effective import load_settings
from ctxchat.config.schema import McpSettings
from ctxchat.core.errors import UsageError
from ctxchat.core.events import ToolFinished, TurnFinished
from tests.bootstrap.scripted_program import say
from tests.bootstrap.test_subagents import started
from tests.tools.test_mcp import RAW

HARBOUR = f"""
[mcp.harbour]
command = {sys.executable!r}
args = [{RAW!r}, "harbour"]
tools = ["add"]
"""
GONE = '[mcp.gone]\ncommand = "no-such-program-here"\n'


def offered(session) -> set[str]:
    return {tool.name for tool in session.view.tools if tool.name.startswith("harbour")}


async def test_a_session_has_their_tools_as_soon_as_they_are_up_and_pays_for_them(tmp_path: Path):
    async with started(tmp_path, HARBOUR + GONE) as program:
        session = await program.open()
        before = await session.measure()
        rows = {row.name: row for row in await program.mcp_servers(wait=True)}
        assert (rows["harbour"].state, rows["harbour"].tools) == ("ready", ("harbour__add",))
        assert rows["gone"].state == "failed" and "no-such-program-here" in rows["gone"].trouble
        after = await session.setup.adapt()
        assert offered(session) == {"harbour__add"}
        assert after.tokens("tools") > before.tokens("tools")
        assert (await program.servers.switch("harbour")).state == "off"
        assert await session.setup.adapt() == before and not offered(session)
        with pytest.raises(UsageError, match="nobody"):
            await program.servers.switch("nobody")
        await session.close()


async def test_where_nobody_sits_before_it_they_are_waited_for(tmp_path: Path):
    async with started(tmp_path, "[tools]\nmcp_wait = 60\n" + HARBOUR) as program:
        session = await program.open(interactive=False)
        await session.measure()
        assert offered(session) == {"harbour__add"}
        below = await say(session, "delegate: what is the limit?")
        assert [e.status for e in below if isinstance(e, ToolFinished)] == ["ok"]
        await session.close()


def wrong(how: str) -> str:
    return f"[mcp.{how}]\ncommand = {sys.executable!r}\nargs = [{RAW!r}, {how!r}]\n"


async def test_one_that_is_late_is_named_and_the_next_time_not_waited_for(tmp_path: Path):
    async with started(tmp_path, "[tools]\nmcp_wait = 0.2\n" + GONE + wrong("silent")) as program:
        session = await program.open(interactive=False)
        told = [n for n in session.notices if "MCP server silent" in n]
        assert told and "did not answer within 0.2 s; its tools are missing until it comes" in told[0]
        assert [e.status for e in await say(session, "hello") if isinstance(e, TurnFinished)] == ["done"]
        async with asyncio.timeout(60):
            while [row.state for row in program.servers.rows] != ["failed", "starting"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await program.servers.settled(600)  # neither is waited for any more
        await session.close()


async def test_the_tools_of_one_that_is_late_join_between_two_rounds(tmp_path: Path):
    async with started(tmp_path, "[tools]\nmcp_wait = 0\n" + HARBOUR) as program:
        session = await program.open(interactive=False)
        seen: list[set[str]] = []
        async with aclosing(session.send("delegate: what is the limit?")) as events:
            async for stamped in events:
                if isinstance(stamped.event, ToolFinished):
                    await program.mcp_servers(wait=True)
                seen.append(offered(session))
        assert seen[-1] == set(), "the list of tools stays as it was sent"
        assert "call_tool" in {tool.name for tool in session.view.tools}
        async with aclosing(session.send("and now?")) as events:
            async for _ in events:
                pass
        note = next(g for g in session.state.ledger.groups if g.source == "context:tools")
        assert '"harbour__add"' in note.first.text
        await session.close()


async def test_one_that_babbles_is_left(tmp_path: Path):
    async with started(tmp_path, wrong("babbling")) as program:
        session = await program.open()
        (row,) = await program.mcp_servers(wait=True)
        assert row.state == "failed" and row.trouble
        await session.close()


async def test_an_agent_may_have_one_of_their_tools_only(tmp_path: Path):
    text = HARBOUR + '[agents.sums]\ntools = ["harbour__add", "gone__x"]\n' + GONE
    async with started(tmp_path, text) as program:
        session = await program.open()
        await session.setup.switch_agent("sums")
        assert session.setup.notices == ()  # they may come up yet
        await program.mcp_servers(wait=True)
        await session.setup.adapt()
        assert [tool.name for tool in session.view.tools] == ["find_tools", "harbour__add", "call_tool"]
        await session.close()


async def test_edited_settings_begin_and_end_them(tmp_path: Path):
    async with started(tmp_path, GONE) as program:
        session = await program.open()
        await program.mcp_servers(wait=True)
        (tmp_path / "config" / "config.toml").write_text(HARBOUR)
        program.adopt(load_settings(tmp_path, environ={"CTXCHAT_CONFIG_DIR": str(tmp_path / "config")}))
        rows = await program.mcp_servers(wait=True)
        assert [(row.name, row.state) for row in rows] == [("harbour", "ready")]
        await session.setup.adapt()
        assert offered(session) == {"harbour__add"}
        await session.close()


async def test_nothing_is_started_that_a_project_wants_before_it_is_trusted(tmp_path: Path):
    (tmp_path / ".ctxchat").mkdir()
    (tmp_path / ".ctxchat" / "config.toml").write_text(HARBOUR)
    async with started(tmp_path) as program:
        session = await program.open()
        assert await program.mcp_servers() == []
        await session.close()


def test_the_sdk_is_not_imported_where_no_server_is_set_up():
    code = "import ctxchat.bootstrap.program, sys; sys.exit('mcp' in sys.modules)"
    assert os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", code) == 0


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("127.0.0.1:9/mcp/", "http://127.0.0.1:9/mcp"),
        ("tracker.example.org/mcp", "https://tracker.example.org/mcp"),
        ("https://tracker.example.org/mcp/", "https://tracker.example.org/mcp/"),
        ("a b", "a b"),
    ],
)
def test_an_address_without_a_scheme_has_the_one_it_needs(written: str, url: str) -> None:
    assert address_of(McpSettings(url=written)).url == url
