"""A folder set up for Claude Code works as it is: memory with imports, skills, commands, a blocking hook, a server, an agent."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctxchat.agent.session import Session
from ctxchat.config.effective import load_settings
from ctxchat.config.trust import trust
from ctxchat.core.events import Event, ToolFinished
from tests.bootstrap.scripted_program import program, say
from tests.doubles.scripted import calls, says
from tests.tools.test_mcp import RAW

FILES = {
    "CLAUDE.md": "# Harbour\nSpeak plainly.\n@docs/style.md\n",
    "docs/style.md": "Tabs are for ropes.\n",
    "src/CLAUDE.md": "In src every function has a test.\n",
    "src/tide.py": "HIGH = 7\n",
    ".claude/skills/release/SKILL.md": (
        "---\nname: release\ndescription: Use it when: a release is cut.\n---\nRead steps.md, then tag.\n"
    ),
    ".claude/skills/release/steps.md": "1. Ring the bell.\n",
    ".claude/skills/tides/SKILL.md": (
        "---\nname: tides\ndescription: How tide tables are read.\n---\nThe first column is GMT.\n"
    ),
    ".claude/commands/look.md": "---\ndescription: Look at a file\n---\nLook at $1 with care: $ARGUMENTS\n",
    ".claude/commands/front/state.md": "State:\n!`cat docs/style.md`\n",
    ".claude/commands/rules.md": "Keep to @docs/style.md\n",
    ".claude/agents/critic.md": (
        "---\nname: critic\ndescription: Finds what is wrong.\ntools: Read, Grep\nmodel: opus\n---\nYou find faults.\n"
    ),
    ".claude/hooks/guard.sh": "#!/bin/sh\ngrep -q 'rm -rf' && { echo 'Nothing is removed here.' >&2; exit 2; }\nexit 0\n",
    ".claude/settings.json": json.dumps(
        {
            "permissions": {"allow": ["Bash(ls:*)"]},
            "hooks": {
                "PreToolUse": [
                    {
                        "matcher": "Bash",
                        "hooks": [
                            {
                                "type": "command",
                                "command": 'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh',
                                "timeout": 20,
                            }
                        ],
                    }
                ]
            },
        }
    ),
    ".mcp.json": json.dumps(
        {"mcpServers": {"harbour": {"command": "${NO_SUCH:-" + sys.executable + "}", "args": [RAW, "harbour"]}}}
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "work/.git").mkdir()
    (tmp_path / "config").mkdir()
    return tmp_path / "work"


def shown(session: Session) -> str:
    return "\n".join(item.message.text for item in session.view.items)


def ended(events: Sequence[Event]) -> dict[str, ToolFinished]:
    return {event.name: event for event in events if isinstance(event, ToolFinished)}


async def test_before_it_is_trusted_nothing_of_it_counts_but_memory(folder: Path, tmp_path: Path) -> None:
    made = program(folder, tmp_path / "config", calls(("shell", {"command": "echo rm -rf"})), says("well"))
    session = await made.open(interactive=False)
    events = await say(session, "/look src/tide.py")
    text = shown(session)
    assert "Tabs are for ropes." in text and "tide tables" not in text and "with care" not in text
    assert (
        {p.origin for p in session.setup.prompts} == {"program"}
        and not made.servers.rows
        and "critic" not in made.loaded.settings.agents
    )
    assert ended(events)["shell"].status == "ok"
    assert "2 skills, 3 commands" in made.loaded.notices[-1]
    await session.close()
    await made.close()


async def test_once_it_is_trusted_all_of_it_works(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    environ = {"CTXCHAT_CONFIG_DIR": str(config), "CTXCHAT_DATA_DIR": str(config / "data")}
    trust(config, folder, load_settings(folder, environ=environ).project)
    made = program(
        folder,
        config,
        calls(
            ("skill", {"name": "release"}),
            ("skill", {"name": "release", "file": "steps.md"}),
            ("read_file", {"path": "src/tide.py"}),
            ("shell", {"command": "rm -rf build"}),
            ("harbour__add", {"a": 1}),
            ("delegate", {"task": "look", "agent": "critic"}),
        ),
        says("as critic: it is fine"),
        says("done"),
        says("looked"),
        says("stated"),
        says("kept to"),
    )
    await made.mcp_servers(wait=True)  # a busy machine may need longer than a start waits
    session = await made.open(interactive=False)
    assert not [notice for notice in session.notices if "left out" in notice or "missing" in notice]
    events = await say(session, "cut a release")
    head, results = made.script.views[0], ended(events)
    opening = "\n".join(item.message.text for item in head.items)
    assert "Speak plainly." in opening and "Tabs are for ropes." in opening
    assert "- release: Use it when: a release is cut." in opening and "- tides: How tide tables are read." in opening
    (index,) = [item for item in head.items if item.source == "skills"]  # a row with a price in the X-ray
    assert index.section == "injected" and 10 < index.tokens < 200
    assert {"harbour__add", "skill", "delegate"} <= {tool.name for tool in head.tools}
    text = shown(session)
    assert (
        "Read steps.md, then tag." in text and "Ring the bell." in text and "In src every function has a test." in text
    )
    assert results["shell"].status == "error" and "Nothing is removed here." in results["shell"].output
    assert results["harbour__add"].status == "ok" and "as critic: it is fine" in results["delegate"].output
    critic = made.script.views[1]
    assert "You find faults." in critic.items[0].message.text
    assert {tool.name for tool in critic.tools} - {"find_tools", "call_tool"} == {"read_file", "grep"}
    await say(session, "/look src/tide.py twice")
    assert "Look at src/tide.py with care: src/tide.py twice" in shown(session)
    await say(session, "/state")
    assert "State:\nTabs are for ropes." in shown(session)
    assert session.mentioning("/rules").endswith("Keep to @docs/style.md\n")
    await session.close()
    await made.close()


async def test_a_file_of_a_skill_that_changed_since_is_not_read(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    environ = {"CTXCHAT_CONFIG_DIR": str(config), "CTXCHAT_DATA_DIR": str(config / "data")}
    trust(config, folder, load_settings(folder, environ=environ).project)
    read = calls(("skill", {"name": "release", "file": "steps.md"}))
    made = program(folder, config, read, says("well"), read, says("well"))
    session = await made.open(interactive=False)
    assert ended(await say(session, "cut a release"))["skill"].status == "ok"
    (folder / ".claude/skills/release/steps.md").write_text("1. Sink the boat.\n")
    (read_again,) = [event for event in await say(session, "and again") if isinstance(event, ToolFinished)]
    assert read_again.status == "error" and "has changed" in read_again.output and "Sink" not in shown(session)
    await session.close()
    await made.close()


async def test_a_sub_agents_start_and_end_have_hooks_of_their_own(folder: Path, tmp_path: Path) -> None:
    def hook(event: str, more: str = "true") -> list[dict[str, object]]:
        command = f"cat >> {event}; echo >> {event}; {more}"
        return [{"hooks": [{"type": "command", "command": command}]}]

    context = json.dumps({"hookSpecificOutput": {"additionalContext": "the harbour is closed"}})
    more = {
        "SubagentStart": f"echo '{context}'",
        "SubagentStop": "test -f once || { touch once; echo 'count the boats' >&2; exit 2; }",
    }
    events = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd", "PreToolUse", *more)
    settings = {"hooks": {event: hook(event, more.get(event, "true")) for event in events}}
    config = tmp_path / "config"
    (config / "hooks.json").write_text(json.dumps(settings))
    (folder / ".claude/settings.json").unlink()
    environ = {"CTXCHAT_CONFIG_DIR": str(config), "CTXCHAT_DATA_DIR": str(config / "data")}
    trust(config, folder, load_settings(folder, environ=environ).project)
    look = calls(("read_file", {"path": "src/tide.py"}))
    script = [calls(("delegate", {"task": "look", "agent": "critic"})), look, says("seen"), says("seven"), says("done")]
    made = program(folder, config, *script)
    session = await made.open(interactive=False)
    results = ended(await say(session, "go"))
    await session.close()
    await made.close()
    told = {
        event: [json.loads(line) for line in (folder / event).read_text().splitlines() if line]
        if (folder / event).exists()
        else []
        for event in events
    }
    assert [len(told[event]) for event in events] == [1, 1, 1, 1, 2, 1, 2]
    assert "seven" in results["delegate"].output
    views = ["\n".join(item.message.text for item in view.items) for view in made.script.views]
    assert "the harbour is closed" in views[1] and "the harbour is closed" not in views[-1]
    assert "count the boats" in views[3]
    first, second = told["SubagentStop"]
    assert (first["stop_hook_active"], second["stop_hook_active"]) == (False, True)
    assert first["last_assistant_message"] == "seen" and first["agent_type"] == "critic"
    assert {each["session_id"] for each in (first, *told["SubagentStart"], *told["PreToolUse"])} == {session.id}
    assert [each.get("agent_type") for each in told["PreToolUse"]] == [None, "critic"]
    assert told["PreToolUse"][0]["tool_name"] == "Agent" and first["agent_id"] not in {"", session.id}
