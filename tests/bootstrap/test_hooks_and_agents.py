"""From a file to hooks and agents at work; the examples of the documentation among them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import msgspec
import pytest
import tomli_w

from ctxchat.bootstrap.flags import Flags, in_force, unknown_tools
from ctxchat.bootstrap.hooks import HookCommands, hooks_of
from ctxchat.bootstrap.program import Program
from ctxchat.bootstrap.session_settings import agent_options
from ctxchat.config.effective import Loaded, load_settings
from ctxchat.config.schema import DEFAULTS, AgentSettings, Condition, HookSettings
from ctxchat.config.themes import make_theme, unreadable
from ctxchat.config.trust import trust
from ctxchat.core.budget import Window
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import Event
from ctxchat.core.hooks import CompactContext, Hook, HookEvent, Inject, Moment, Notify, RunCommand, When, firing
from ctxchat.core.tokens import rough_count
from ctxchat.models.offline.summary import OfflineSummariser
from ctxchat.storage.database import Database
from ctxchat.tools.sandbox import Sandbox, find_sandbox
from tests.agent.desk import Echo
from tests.agent.hooked import LONG, Hooked, sound, told
from tests.doubles.scripted import ScriptedModel, calls, says

DOCS = Path(__file__).resolve().parents[2] / "docs"


def examples(page: str) -> list[str]:
    """The TOML blocks of a page of the documentation."""
    return re.findall(r"```toml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)


def loaded(folder: Path, text: str, **variables: str) -> Loaded:
    """The settings with this text as the person's own file."""
    config = folder / "config"
    config.mkdir(exist_ok=True)
    (config / "config.toml").write_text(text, encoding="utf-8")
    environ = {"CTXCHAT_CONFIG_DIR": str(config), "CTXCHAT_DATA_DIR": str(folder / "data"), **variables}
    return load_settings(folder, environ=environ, known=lambda _: ())


# ── hooks ──


async def test_hooks_that_were_set_up_for_another_agent_are_told_of_once_and_when_they_change(tmp_path: Path):
    claude, data = tmp_path / "claude", Database(tmp_path / "data")
    claude.mkdir()

    async def told_at_start(command: str, text: str = "") -> list[str]:
        hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
        (claude / "settings.json").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
        program = Program(Flags(), loaded(tmp_path, text, CLAUDE_CONFIG_DIR=str(claude)), tmp_path, data)
        session = await program.open()
        await session.close()
        return [notice for notice in session.notices if "run here, too" in notice]

    assert await told_at_start("true", 'customizations = "own"') == []
    (notice,) = await told_at_start("true")
    assert notice.startswith(f"1 hook of {claude / 'settings.json'} run here") and 'customizations = "own"' in notice
    assert await told_at_start("true") == []
    assert len(await told_at_start("rm -r build")) == 1


def test_the_documentation_shows_every_action():
    actions = [hook.action for text in examples("hooks.md") for hook in _hooks(text)]
    assert {type(a) for a in actions} == {CompactContext, RunCommand, Notify, Inject}


def _hooks(text: str) -> Sequence[Hook]:
    return hooks_of(msgspec.convert(tomllib.loads(text)["hooks"], list[HookSettings]))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a.txt").write_text("one\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", "a.txt"], check=True)
    (tmp_path / "a.txt").write_text("two\n")
    return tmp_path


@pytest.mark.parametrize("text", examples("hooks.md"))
async def test_the_examples_of_hooks_do_what_they_say(repository: Path, text: str):
    tmp_path = repository
    found = loaded(tmp_path, text)
    assert found.problems == () and found.untrusted == ()
    hooks = hooks_of(found.settings.hooks)
    script = [calls(("grep", {"text": "gauge"})) for _ in range(22)] + [calls(("write_file", {"text": "a"}))]
    model = ScriptedModel([*script, *(says(LONG) for _ in range(9))], window=Window(12_000, "configured"))
    desk = Hooked(
        model,
        *hooks,
        run=HookCommands(tmp_path),
        tools=[Echo("grep"), Echo("write_file")],
        mode="all",
        options=agent_options(found.settings, model.name),
        summariser=OfflineSummariser(rough_count),
    )
    events: list[Event] = []
    for number in range(9):
        events += await desk.say(f"question {number}? {LONG}")
    assert await sound(desk, model)
    assert not [t for t in told(events) if t.startswith("Hook") and "went to the model" not in t]
    sources = {note.source for note in desk.notes}
    for hook in hooks:
        match hook.action:
            case CompactContext():
                assert {p.reason for p in desk.state.compactions} == {"hook"}
            case Notify(text=words):
                assert told(events).count(words) == 1
            case Inject() | RunCommand(show_output=True):
                assert f"hook:{hook.name}" in sources
            case RunCommand():
                lines = (tmp_path / "turns.jsonl").read_text().splitlines()
                assert [json.loads(line)["type"] for line in lines] == ["turn_finished"] * 9


def test_hooks_without_a_name_or_with_one_name_are_told_apart():
    notify = HookSettings("turn_started", "notify", text="x")
    same = HookSettings("error", "notify", name="look", text="y")
    off = msgspec.structs.replace(same, enabled=False)
    names = [hook.name for hook in hooks_of([notify, same, off, notify, same])]
    assert names == ["notify at turn_started", "look", "notify at turn_started (2)", "look (3)"]


def test_every_field_of_a_hook_arrives():
    condition = Condition(
        context_pressure=0.5, any_of=(Condition(tool_name="w*"), Condition(not_=Condition(tool_calls=2)))
    )
    given = HookSettings(
        "tool_finished", "run", "n", condition, "make", show_output=True, cooldown=2, max_fires=3, priority=4, timeout=5
    )
    when = When(context_pressure=0.5, any_of=(When(tool_name="w*"), When(not_=When(tool_calls=2))))
    assert hooks_of([given]) == (Hook("n", "tool_finished", RunCommand("make", 5, True), when, 2, 3, 4),)
    (compact,) = hooks_of([HookSettings("turn_started", "compact_context", strategy="truncate", instructions="names")])
    assert compact.action == CompactContext("truncate", "names")


def test_hooks_of_a_project_wait_for_trust(tmp_path: Path):
    (tmp_path / ".ctxchat").mkdir()
    (tmp_path / ".ctxchat" / "config.toml").write_text(examples("hooks.md")[0])
    mine = examples("hooks.md")[1]
    assert [h.name for h in hooks_of(loaded(tmp_path, mine).settings.hooks)] == ["long search"]


def test_the_settings_and_the_core_know_the_same_conditions_and_events():
    fields = {f.encode_name for f in msgspec.structs.fields(Condition)}
    assert fields == {f.encode_name for f in msgspec.structs.fields(When)}
    for event in get_args(HookEvent):
        (hook,) = hooks_of([HookSettings(event, "notify", text="x")])
        assert firing([hook], event, Moment()) == (hook,)


# ── agents ──


def test_the_example_of_agents_falls_back_field_by_field(tmp_path: Path):
    (text,) = examples("agents.md")
    found = loaded(tmp_path, text)
    assert found.problems == ()
    mine, reviewer = in_force(found.settings, Flags())
    assert reviewer.prompt is not None and reviewer.prompt.startswith("Review the change.")
    assert reviewer.tools == ("read_file", "grep", "glob", "list_files")
    assert mine.permissions.mode == "read-only" and mine.model == found.settings.model
    options = agent_options(mine, "any/model")
    assert (options.keep_recent, options.tool_result_tokens) == (30, 4000)
    assert options.compression_trigger == DEFAULTS.context.compression_trigger
    theirs, scribe = in_force(found.settings, Flags(), "scribe")
    assert scribe.prompt is None and scribe.tools is None
    assert theirs.model == "ollama_chat/qwen3:8b" and theirs.permissions.mode == "auto-edit"
    options = agent_options(theirs, theirs.model)
    assert (options.strategy, options.compression_trigger, options.keep_recent) == ("truncate", 0.5, 12)
    assert options.target < 0.5


def test_the_command_line_stands_above_an_agent_and_a_variable_chooses_one(tmp_path: Path):
    (text,) = examples("agents.md")
    found = loaded(tmp_path, text, CTXCHAT_AGENT="scribe")
    mine, _ = in_force(found.settings, Flags(model="openai/other", permissions="ask"))
    assert (mine.agent, mine.model, mine.permissions.mode) == ("scribe", "openai/other", "ask")
    assert mine.context.strategy == "truncate"


def test_no_tools_is_something_else_than_all_tools():
    assert unknown_tools(AgentSettings(), ["grep"]) == []
    assert unknown_tools(AgentSettings(tools=()), ["grep"]) == []
    (said,) = unknown_tools(AgentSettings(tools=("grep", "grp")), ["grep"])
    assert "grp" in said


async def test_a_program_opens_its_sessions_with_the_agent_the_settings_name(tmp_path: Path):
    (text,) = examples("agents.md")
    program = Program(Flags(), loaded(tmp_path, text), tmp_path, Database(tmp_path / "data"))
    try:
        assert (program.settings.agent, program.settings.context.keep_recent) == ("reviewer", 30)
    finally:
        await program.close()


# ── keys and themes ──


def test_the_examples_of_keys_and_themes_are_right(tmp_path: Path):
    for text in [*examples("keys.md"), *examples("settings.md")]:
        found = loaded(tmp_path, text)
        assert [p.text for p in found.problems] == []
        assert found.keys.keys["search"] == ("ctrl+shift+f",) and found.keys.keys["quit"] == ()
    whole = "".join(examples("themes.md"))
    theme = make_theme(tomllib.loads(whole), "harbour")
    assert unreadable(theme) == () and theme.patterns["free"] == "-"


# ── the whole program ──


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "CTXCHAT_CONFIG_DIR": str(folder / "config"), "CTXCHAT_DATA_DIR": str(folder / "data")}
    argv = [sys.executable, "-m", "ctxchat", *arguments]
    return subprocess.run(argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def test_an_agent_with_hooks_end_to_end(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.md").write_text("The gauge at Pier 7 reports every 90 s.\n")
    hooks = """
[[hooks]]
name = "branch"
event = "session_started"
action = "inject"
text = "We work on release-3."
max_fires = 1

[[hooks]]
name = "diary"
event = "tool_finished"
action = "run"
command = "cat >> ../diary.jsonl"
sandbox = false

[[hooks]]
name = "bye"
event = "session_finished"
action = "run"
command = "no-such-program"
"""
    (text,) = examples("agents.md")
    assert loaded(tmp_path, text + hooks).problems == ()
    first = run(tmp_path, "run", "--json", "--cwd", str(work), "how often does the gauge report?")
    assert first.returncode == 0, first.stderr
    lines = [json.loads(line) for line in first.stdout.splitlines()]
    assert lines[0]["type"] == "turn_started" and lines[-1]["type"] == "turn_finished"
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert "90 s" in lines[-1]["text"]
    assert "Hook bye: exit code 127" in first.stderr
    called = [line["call_id"] for line in lines if line["type"] == "tool_finished"]
    assert [json.loads(line)["call_id"] for line in (tmp_path / "diary.jsonl").read_text().splitlines()] == called
    session = lines[0]["session"]
    again = run(tmp_path, "run", "--json", "--session", session, "--cwd", str(work), "create file x.txt with y")
    assert "release-3" not in again.stdout  # once for the session, though the program started anew
    assert not (work / "x.txt").exists()
    view = json.loads(run(tmp_path, "sessions", "export", session, "--view", "model", "--format", "openai").stdout)
    assert view[0]["content"].startswith("Review the change.")
    assert sum("We work on release-3." in (message["content"] or "") for message in view) == 1


SPELLINGS = [
    "sh lint.sh",
    "./lint.sh",
    "./lint.sh; true",
    "./lint.sh&",
    "cd sub && ../lint.sh",
    "cd sub; sh ../lint.sh",
    "(./lint.sh)",
    "{ ./lint.sh; }",
    "bash -c ./lint.sh",
    "env X=1 ./lint.sh",
    "X=1 ./lint.sh",
    "timeout 5 ./lint.sh",
    "true && ./lint.sh || true",
    "sh<lint.sh",
    "cat lint.sh | sh",
    ". ./lint.sh",
    "make lint",
    'sh "lint".sh',
    "./li''nt.sh",
    "sh $PWD/lint.sh",
    "$(echo sh) lint.sh",
    "for f in lint.sh; do sh $f; done",
    "python -m lint",
    "./li*.sh",
    '"$CLAUDE_PROJECT_DIR"/lint.sh; true',
    'cd "${CLAUDE_PROJECT_DIR}" && make lint',
]
MAKEFILE, MODULE = "lint:\n\t@sh lint.sh\n", "import os; os.system('sh lint.sh')\n"
needs_sandbox = pytest.mark.skipif(find_sandbox().kind != "bubblewrap", reason="bubblewrap does not work here")


class TrustedProject:
    """A project whose hook somebody looked at and trusted."""

    def __init__(self, folder: Path, command: str, form: Literal["ctxchat", "claude"] = "ctxchat") -> None:
        self.work, self.outside = folder / "work", folder / "outside"
        (self.work / ".ctxchat").mkdir(parents=True)
        (self.work / "sub").mkdir()
        for name, text in (("lint.sh", "echo linted > out\n"), ("Makefile", MAKEFILE), ("lint.py", MODULE)):
            (self.work / name).write_text(text)
            (self.work / name).chmod(0o755)
        (self.work / ".claude").mkdir()
        if form == "claude":
            hook = {"type": "command", "command": command, "sandbox": False}
            tree = {"hooks": {"PostToolUse": [{"matcher": "*", "hooks": [hook]}]}}
            (self.work / ".claude/settings.json").write_text(json.dumps(tree))
        else:
            hook = {"event": "error", "action": "run", "command": command, "sandbox": False}
            (self.work / ".ctxchat/config.toml").write_text(tomli_w.dumps({"hooks": [hook]}))
        self._environ = {"CTXCHAT_CONFIG_DIR": str(folder / "config"), "CTXCHAT_DATA_DIR": str(folder / "data")}
        self.before = self.load()
        trust(folder / "config", self.work, self.before.project)
        self.loaded = self.load()
        (hook,) = hooks_of(self.loaded.settings.hooks)
        assert isinstance(hook.action, RunCommand)
        self.action = hook.action

    def load(self) -> Loaded:
        return load_settings(self.work, environ=self._environ)

    def change(self, name: str = "lint.sh") -> None:
        """What the hook comes to is another thing now, and the settings are not."""
        (self.work / name).write_text(f"echo evil > {self.outside}; echo evil > .git/config; echo evil > out\n")


@pytest.mark.parametrize("form", ["ctxchat", "claude"])
@pytest.mark.parametrize("command", SPELLINGS)
def test_a_projects_hook_however_spelled_waits_for_trust_and_again_when_what_it_starts_changed(
    tmp_path: Path, command: str, form: Literal["ctxchat", "claude"]
) -> None:
    project = TrustedProject(tmp_path, command, form)
    assert not project.before.trusted and not project.before.settings.hooks
    assert any(json.dumps(command)[1:-1] in json.dumps(line) for line in project.before.project.lines)
    project.change("Makefile" if "make" in command else "lint.py" if "-m" in command else "lint.sh")
    assert not project.load().trusted and not project.load().settings.hooks


@pytest.mark.parametrize("command", SPELLINGS)
@pytest.mark.parametrize("sandboxed", [pytest.param(True, marks=needs_sandbox), False])
async def test_what_a_projects_hook_comes_to_later_runs_nothing_outside(
    tmp_path: Path, pytestconfig: pytest.Config, command: str, sandboxed: bool
) -> None:
    with TemporaryDirectory(dir=pytestconfig.cache.mkdir("hooks")) as root:  # type: ignore[union-attr] # /tmp is another inside
        project = TrustedProject(Path(root), command)
        sandbox = find_sandbox(str(project.work)) if sandboxed else Sandbox()
        project.change()
        run = HookCommands(project.work, loaded=lambda: project.loaded, sandbox=lambda: sandbox)
        with suppress(CtxchatError):
            await run(project.action, b"")
        assert not project.outside.exists()
        assert sandboxed or not (project.work / "out").exists()


async def test_a_script_that_changed_since_it_was_trusted_is_not_run(tmp_path: Path):
    project = TrustedProject(tmp_path, "./lint.sh")
    out = project.work / "out"
    run = HookCommands(project.work, loaded=lambda: project.loaded)
    assert (await run(project.action, b"")).exit_code == 0 and out.read_text() == "linted\n"
    project.change()  # nobody has looked at the settings since
    with pytest.raises(CtxchatError, match="/trust"):
        await run(project.action, b"")
    assert (await run(RunCommand("echo mine"), b"")).output == "mine\n"  # a hook of the person's own
    assert out.read_text() == "linted\n"


async def test_without_a_sandbox_a_projects_hook_runs_what_was_looked_at_and_nothing_else(tmp_path: Path):
    for number, (command, runs) in enumerate({"./lint.sh x": True, "make lint": False, "sh lint.sh": True}.items()):
        project = TrustedProject(tmp_path / str(number), command)
        run = HookCommands(project.work, loaded=lambda project=project: project.loaded)
        if runs:
            assert (await run(project.action, b"")).exit_code == 0
        else:
            with pytest.raises(CtxchatError, match="no sandbox here"):
                await run(project.action, b"")


@needs_sandbox
async def test_ones_own_hook_is_shut_in_unless_one_says_otherwise(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    with TemporaryDirectory(dir=pytestconfig.cache.mkdir("hooks")) as root:  # type: ignore[union-attr]
        work = Path(root) / "work"
        (work / "bin").mkdir(parents=True)
        (work / "bin/cat").write_text("#!/bin/sh\necho evil > ../evil\n")
        (work / "bin/cat").chmod(0o755)
        environ = {**os.environ, "PATH": f"{work / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        run = HookCommands(work, environ, sandbox=lambda: find_sandbox(str(work)))
        await run(RunCommand("echo x > ../out; cat"), b"")
        assert not (Path(root) / "out").exists() and not (Path(root) / "evil").exists()
        await run(RunCommand("echo x > ../out; cat", sandbox=False), b"")
        assert (Path(root) / "out").exists() and not (Path(root) / "evil").exists()


@needs_sandbox
async def test_a_hook_that_lacks_the_network_is_told_what_gives_it(tmp_path: Path) -> None:
    ask = "echo 'dns error: failed to lookup address' >&2; exit 2"
    shut = HookCommands(tmp_path, sandbox=lambda: find_sandbox(str(tmp_path)))
    ran = await shut(RunCommand(ask, form="claude"), b"")
    assert ran.exit_code == 2 and ran.errors.endswith("`permissions.network = true` gives it to them]")
    given = HookCommands(tmp_path, sandbox=lambda: msgspec.structs.replace(find_sandbox(str(tmp_path)), network=True))
    assert (await given(RunCommand(ask, form="claude"), b"")).errors.strip().endswith("address")
