"""Skills, commands, agents, hooks and servers in files of their own: found in a trusted folder, in the forms others write."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ctxchat.config.customizations.agent_files import agent_table
from ctxchat.config.customizations.frontmatter import names_of, split_frontmatter
from ctxchat.config.trust import trust

from .conftest import Home

SKILL = "---\nname: {0}\ndescription: Ships: a release\n---\nRun scripts/go.sh\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_nothing_of_a_folder_counts_before_it_is_trusted_and_any_change_ends_that(home: Home) -> None:
    script = write(home.workspace / ".claude/skills/ship/scripts/go.sh", "echo go")
    write(home.workspace / ".claude/skills/ship/SKILL.md", SKILL.format("ship"))
    write(home.workspace / ".claude/commands/front/new.md", "Make $1")
    write(home.workspace / ".agents/skills/read/SKILL.md", SKILL.format("read"))
    write(home.workspace / ".mcp.json", json.dumps({"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"]}}}))
    write(home.workspace / ".claude/agents/critic.md", "---\nname: critic\ndescription: reads\n---\nYou read.")
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/check.sh'}]}
    checked = write(home.workspace / "check.sh", "exit 0")
    write(home.workspace / ".claude/settings.json", json.dumps({"hooks": {"PreToolUse": [hook], "Odd": [hook]}}))
    loaded = home.load()
    assert loaded.prompts == () and not loaded.settings.agents and not loaded.settings.mcp and not loaded.settings.hooks
    assert loaded.untrusted == ("agents", "hooks", "mcp", "2 skills", "1 command")
    assert [line.split()[0] for line in loaded.project.lines] == [
        "hook",
        "server",
        "agent",
        "skill",
        "command",
        "skill",
        "file",
    ]
    assert "Odd" in loaded.left_out[0].text and loaded.problems == ()
    trust(home.config, home.workspace, loaded.project)
    loaded = home.load()
    assert [p.name for p in loaded.prompts] == ["ship", "front:new", "read"]
    assert loaded.settings.agents["critic"].prompt == "You read." and loaded.settings.mcp["files"].command == "npx"
    assert loaded.settings.hooks[0].matcher == "Bash" and loaded.origin("agents.critic.prompt").text.endswith(
        "critic.md"
    )
    for file in (script, checked):
        before = file.read_text()
        file.write_text("evil")
        assert home.load().prompts == () and not home.load().settings.hooks
        file.write_text(before)
        assert home.load().prompts


HERE = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "SessionEnd",
]

NOT_HERE = [
    "PermissionDenied",
    "Elicitation",
    "ElicitationResult",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Setup",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "PreModelSwitch",
    "PostModelSwitch",
    "MessageDisplay",
    "DirectoryAdded",
]


def test_of_hooks_at_every_event_of_claude_code_those_that_are_not_here_are_one_line(home: Home) -> None:
    hook = [{"hooks": [{"type": "command", "command": "true"}]}]
    settings = {"hooks": dict.fromkeys([*NOT_HERE, *HERE], hook)}
    write(home.workspace / ".claude/settings.json", json.dumps(settings))
    loaded = home.load()
    trust(home.config, home.workspace, loaded.project)
    assert len(home.load().settings.hooks) == len(HERE)
    (problem,) = loaded.left_out
    assert problem.text.endswith(
        f"hooks: events that are not known here, their hooks are left out: {', '.join(NOT_HERE)}"
    )
    page = (Path(__file__).parents[2] / "docs/hooks.md").read_text()
    assert not [event for event in (*HERE, *NOT_HERE) if f"`{event}`" not in page]


def test_a_hook_of_a_program_and_its_arguments_is_one_command_line(home: Home) -> None:
    words = {"command": "node", "args": ["${CLAUDE_PROJECT_DIR}/a b/check.js", "it's", "$HOME", ""]}
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "async": True, **words}]}]}
    write(home.workspace / ".claude/settings.json", json.dumps({"hooks": hooks}))
    trust(home.config, home.workspace, home.load().project)
    (hook,) = home.load().settings.hooks
    assert hook.background
    line = f"node() {{ printf '%s|' \"$@\"; }}; CLAUDE_PROJECT_DIR='/w x'; {hook.command}"
    assert (
        subprocess.run(["bash", "-c", line], capture_output=True, text=True).stdout == "/w x/a b/check.js|it's|$HOME||"
    )


def test_a_server_at_an_address_keeps_its_headers_and_who_we_are_to_it(home: Home) -> None:
    login = {"clientId": "me", "callbackPort": 8080, "scopes": "read"}
    server = {"type": "http", "url": "https://x/mcp", "headers": {"A": "b"}, "oauth": login}
    write(
        home.workspace / ".mcp.json", json.dumps({"mcpServers": {"far away": server, "odd": {"url": "y", "oauth": 3}}})
    )
    trust(home.config, home.workspace, home.load().project)
    far = home.load().settings.mcp["far-away"]
    assert (far.url, far.headers, far.client_id, far.callback_port) == ("https://x/mcp", {"A": "b"}, "me", 8080)


def test_a_skill_that_lies_elsewhere_by_a_link_is_none(home: Home, tmp_path: Path) -> None:
    secret = write(tmp_path / "elsewhere/SKILL.md", SKILL.format("secret"))
    (home.workspace / ".claude/skills/a").mkdir(parents=True)
    (home.workspace / ".claude/skills/a/SKILL.md").symlink_to(secret)
    (home.workspace / ".claude/skills/b").symlink_to(secret.parent)
    loaded = home.load()
    assert loaded.project.lines == () and len(loaded.left_out) == 2
    assert all("outside" in problem.text for problem in loaded.left_out)


def test_the_persons_own_count_everywhere_unless_they_want_ours_only(home: Home, tmp_path: Path) -> None:
    write(tmp_path / "me/.claude/skills/mine/SKILL.md", SKILL.format("mine"))
    write(home.config / "commands/ours.md", "Ours")
    me = str(tmp_path / "me")
    assert [(p.name, p.origin) for p in home.load(HOME=me).prompts] == [("ours", "user"), ("mine", "user")]
    home.file.write_text('customizations = "own"')
    assert [p.name for p in home.load(HOME=me).prompts] == ["ours"]


@pytest.mark.parametrize(
    ("head", "description"),
    [
        ("description: plain", "plain"),
        ("description: Use it when: always, e.g. `x: y`", "Use it when: always, e.g. `x: y`"),
        ("description: >-\n  in two\n  lines", "in two lines"),
        ("description: |\n  as it\n  stands", "as it\nstands"),
        ('description: "with \\"quotes\\""', 'with "quotes"'),
        ("description: [broken\nname: x", "[broken"),
        ("description: a: b: c\ntools: {x", "a: b: c"),
    ],
)
def test_front_matter_as_people_write_it(head: str, description: str) -> None:
    fields, body = split_frontmatter(f"---\n{head}\n---\n\nthe text\n---\nmore")
    assert str(fields["description"]).strip() == description and body == "the text\n---\nmore"


def test_text_without_front_matter_is_all_text() -> None:
    for text in ("", "# A", "---\nno end", "--- x\n---\n"):
        assert split_frontmatter(text) == ({}, text)


def test_an_agent_keeps_what_it_can_have_here() -> None:
    fields = {
        "description": "reads\nmuch",
        "tools": "Read, Bash(git log:*), Nothing, mcp__files__read",
        "model": "opus",
    }
    table = agent_table(fields, "You read.")
    assert table["tools"] == ["read_file", "shell", "files__read"] and "model" not in table
    assert table["description"] == "reads much" and "permissions" not in agent_table(
        {"permissionMode": "bypassPermissions"}, ""
    )
    assert names_of({"tools": ["Read", " Grep "]}, "tools") == ("Read", "Grep") and names_of({}, "tools") is None


def test_an_agents_limits_are_those_of_its_file() -> None:
    fields = {
        "disallowedTools": "Write, Edit, Bash(rm *), mcp__files",
        "maxTurns": "30",
        "skills": ["release", "tides"],
    }
    table = agent_table(fields, "")
    assert table["disallowed_tools"] == ["write_file", "edit_file", "files__*"] and "tools" not in table
    assert (table["max_rounds"], table["skills"]) == (30, ["release", "tides"])
    assert "max_rounds" not in agent_table({"maxTurns": "many"}, "")


@pytest.mark.parametrize("tools", ['["Read", "Grep"]', "\n  - Read\n  - 'Grep'", "Read, Grep"])
def test_the_tools_of_a_front_matter_that_is_no_yaml(tools: str) -> None:
    fields, _ = split_frontmatter(
        f"---\ndescription: <example>user: 'go' assistant: \"x\ntools: {tools}\n---\nYou read."
    )
    assert agent_table(fields, "")["tools"] == ["read_file", "grep"]


def test_tools_that_opencodes_form_switches_off_are_not_there() -> None:
    fields, body = split_frontmatter(
        "---\ndescription: x\ntools:\n  write: false\n  bash: false\n  read: true\n---\nYou read."
    )
    table = agent_table(fields, body)
    assert table["disallowed_tools"] == ["write_file", "shell"] and "tools" not in table
    assert agent_table({"tools": "read, bash"}, "")["tools"] == ["read_file", "shell"]


def test_what_an_agents_file_says_without_effect_is_named(home: Home) -> None:
    head = "---\nname: {0}\ndescription: x\ncolor: red\ntools: Read, WebSearch\npermissionMode: dontAsk\n"
    write(home.workspace / ".claude/agents/a.md", head.format("a") + "disallowedTools: Bash(rm *)\n---\nA")
    write(home.workspace / ".claude/agents/b.md", head.format("b") + "hooks:\n  Stop: []\n---\nB")
    loaded = home.load()
    (sentence,) = loaded.without_effect
    for words in ("color (2 files)", "the tool WebSearch (2", "permissionMode: dontAsk", "disallowedTools: Bash(rm *)"):
        assert words in sentence
    (left_out,) = loaded.left_out
    assert left_out.text.endswith("b.md: hooks: an agent has none of its own here; they are left out")
