"""Agents and edited settings in an open session, over the real program: stored, restored, in force with the next request."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.program import Program
from ctxchat.config import paths, trust
from ctxchat.core.errors import UsageError

AGENTS = """
[agents.reviewer]
description = "Reads."
prompt = "You review."
tools = ["read_file", "grep"]
permissions = "read-only"
[agents.reviewer.context]
keep_recent = 30

[agents.plain]
[agents.plain.context]
compression_trigger = 0.6

[agents.other]
model = "openai/not-there"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("config", "data", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CTXCHAT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("CTXCHAT_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "work" / "notes.md").write_text("The gauge reports every 90 s.\n")
    return tmp_path


def write(home: Path, text: str) -> None:
    (home / "config" / "config.toml").write_text(text, encoding="utf-8")


@asynccontextmanager
async def started(home: Path, **flags: str) -> AsyncGenerator[Program, None]:
    async with Program.started(Flags(cwd=str(home / "work"), **flags)) as program:  # type: ignore[arg-type]
        yield program


def reread(program: Program) -> None:
    from ctxchat.bootstrap.flags import settings_from

    program.adopt(settings_from(program.flags, program.workspace))


async def ask(session, text: str) -> list[object]:
    return [stamped.event async for stamped in session.send(text)]


async def test_an_agent_brings_what_it_has_of_its_own_and_leaves_the_rest(home: Path) -> None:
    write(home, AGENTS)
    async with started(home) as program:
        session = await program.open()
        assert session.setup.agent == "" and session.permissions.mode == "ask"
        all_tools = session.setup.tools
        await session.setup.switch_agent("reviewer")
        setup = session.setup
        assert session.setup.agent == "reviewer" and session.permissions.mode == "read-only"
        assert setup.tools == ("read_file", "grep")
        assert setup.options.keep_recent == 30 and setup.options.compression_trigger == 0.75
        assert session.view.items[0].message.text.startswith("You review.")
        await session.setup.switch_agent("plain")
        assert session.permissions.mode == "ask" and setup.tools == all_tools and setup.options.keep_recent == 12
        assert setup.options.compression_trigger == 0.6 and "You review" not in session.view.items[0].message.text
        with pytest.raises(UsageError, match="Did you mean reviewer"):
            await session.setup.switch_agent("reviewr")
        assert session.setup.agent == "plain"
        await session.close()


async def test_the_agent_is_stored_with_the_session_and_the_usual_one_too(home: Path) -> None:
    write(home, 'agent = "reviewer"\n' + AGENTS)
    async with started(home) as program:
        session = await program.open()
        assert session.setup.agent == "reviewer"
        await ask(session, "how often does the gauge report?")
        await session.close()
        usual = await program.open()
        await usual.setup.switch_agent("")
        await ask(usual, "hello")
        await usual.close()
        first, second = session.id, usual.id
    write(home, 'agent = "plain"\n' + AGENTS)  # what the settings start with now changes nothing for those two
    async with started(home) as program:
        again = await program.open(first)
        assert again.setup.agent == "reviewer" and again.permissions.mode == "read-only"
        assert again.view.items == () or again.setup.options.keep_recent == 30
        await again.close()
        again = await program.open(second)
        assert again.setup.agent == "" and again.setup.options.compression_trigger == 0.75
        await again.close()
        fresh = await program.open()
        assert fresh.setup.agent == "plain"
        await fresh.close()


async def test_an_agent_that_is_gone_is_told_and_the_session_opens(home: Path) -> None:
    write(home, 'agent = "reviewer"\n' + AGENTS)
    async with started(home) as program:
        session = await program.open()
        await ask(session, "hello")
        await session.close()
    write(home, "")
    async with started(home) as program:
        again = await program.open(session.id)
        assert any("There is no agent 'reviewer'" in n and "/agent" in n for n in again.notices)
        assert again.setup.agent == "" and again.permissions.mode == "ask"
        await again.close()


async def test_an_agents_model_comes_with_it_and_goes_with_it(home: Path) -> None:
    write(home, 'model = "offline/assistant"\n' + AGENTS)
    async with started(home) as program:
        session = await program.open()
        context_usage = await session.setup.switch_agent("other")
        assert context_usage.model == "openai/not-there" and session.state.model == "openai/not-there"
        assert (await session.setup.switch_agent("plain")).model == "offline/assistant"
        await session.close()


async def test_edited_settings_count_in_a_session_that_is_open(home: Path) -> None:
    write(home, "")
    async with started(home) as program:
        session = await program.open()
        before = await session.measure()
        write(
            home,
            """
[context]
compression_trigger = 0.6
max_tokens = 20000
providers = ["identity"]
sections.tools.budget = 10
[permissions]
mode = "auto-edit"
rules = ["shell: make"]
[tools]
web = false
[[hooks]]
event = "turn_started"
action = "notify"
text = "a turn begins"
""",
        )
        reread(program)
        after = await session.setup.adapt()
        assert (before.window, after.window) == (32_768, 20_000) and after.trigger_tokens < before.trigger_tokens
        assert session.permissions.mode == "auto-edit" and [r.text for r in session.setup.rules] == ["shell: make"]
        assert "web_fetch" not in session.setup.tools
        assert after.tokens("injected") < before.tokens("injected")
        assert [s.name for s in after.over_budget] == ["tools"]
        events = await ask(session, "how often does the gauge report?")
        assert any(getattr(e, "text", "") == "a turn begins" for e in events)
        await session.close()


async def test_a_mode_chosen_by_hand_stays_where_the_settings_keep_theirs(home: Path) -> None:
    async with started(home) as program:
        session = await program.open()
        session.permissions.mode = "all"
        write(home, "context.keep_recent = 3\n")
        reread(program)
        await session.setup.adapt()
        assert session.permissions.mode == "all" and session.setup.options.keep_recent == 3
        await session.close()


async def test_what_is_edited_under_a_turn_waits_for_the_next_message(home: Path) -> None:
    async with started(home) as program:
        session = await program.open()
        turn = session.send("how often does the gauge report?")
        await anext(turn)
        write(home, '[context]\ncompression_trigger = 0.6\nproviders = []\n[permissions]\nmode = "read-only"\n')
        reread(program)
        context_usage = await session.setup.adapt()
        assert (
            session.permissions.mode == "ask" and context_usage.trigger_tokens == session.context_usage.trigger_tokens
        )
        assert session.setup.options.compression_trigger == 0.6  # the gauge's ticks move at once
        async for _ in turn:
            pass
        assert session.permissions.mode == "ask"
        await ask(session, "and again?")
        assert session.permissions.mode == "read-only"
        note = next(g for g in session.state.ledger.groups if g.kind == "note")
        assert "identity" in note.source and "mode" in note.source and 'change="gone"' in note.first.text
        await session.close()


async def test_trust_brings_the_projects_own_settings_into_the_open_session(home: Path) -> None:
    project = home / "work" / ".ctxchat"
    project.mkdir()
    (project / "config.toml").write_text('permissions.mode = "auto-edit"\n')
    async with started(home) as program:
        session = await program.open()
        assert session.permissions.mode == "ask"
        trust.trust(paths.config_dir(), home / "work", program.loaded.project)
        reread(program)
        await session.setup.adapt()
        assert session.permissions.mode == "auto-edit"
        await session.close()


async def test_an_agent_taken_out_of_the_file_leaves_the_session_with_the_usual_one(home: Path) -> None:
    write(home, AGENTS)
    async with started(home) as program:
        session = await program.open()
        await session.setup.switch_agent("reviewer")
        write(home, "context.keep_recent = 5\n")
        reread(program)
        await session.setup.adapt()
        assert (
            session.setup.agent == "" and session.setup.options.keep_recent == 5 and session.permissions.mode == "ask"
        )
        await session.close()


async def test_what_would_begin_requests_anew_waits_for_the_next_compaction_over_a_restart(home: Path) -> None:
    write(home, AGENTS)
    async with started(home) as program:
        session = await program.open()
        for number in range(4):
            await ask(session, f"thanks, {number}! {'The gauge reports every ninety seconds. ' * 99}")
        view = session.view
        await session.setup.defer_setup(agent="plain", settings={"tools.web": True, "agents.gone.prompt": "x"})
        write(home, f"{AGENTS}\n[tools]\nweb = false\n")
        reread(program)
        await session.setup.adapt()
        assert session.view.tools == view.tools and session.view.items == view.items
        await session.close()
    async with started(home) as program:
        session = await program.open(session.id)
        await session.measure()
        assert session.setup.deferred.words == "agent plain, tools.web, agents.gone.prompt"
        assert session.view.tools == view.tools and "web_fetch" in session.setup.tools
        await ask(session, "hello")
        preview = await session.preview()
        told = [stamped.event async for stamped in session.free_up(preview)]
        assert any("In force with this compaction: agent plain, tools.web" in str(event) for event in told)
        assert session.setup.agent == "plain" and not session.setup.deferred
        head = session.state.ledger.head
        assert head and head.agent == "plain" and "web_fetch" not in [tool.name for tool in head.tools]
        await ask(session, "hello again")
        assert session.state.ledger.head is head, "one break"
        await session.close()
