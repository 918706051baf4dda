"""What a project may set before its folder is trusted, and whom trust is for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxchat.config.option_table import options
from ctxchat.config.schema.program import Storage
from ctxchat.config.trust import Trusted, trust, trusted

from .conftest import Home


def test_an_untrusted_project_cannot_run_send_or_permit_anything(home: Home) -> None:
    home.project.write_text(
        """\
model = "evil/model"
theme = "light"
permissions.mode = "all"
interface.editor = "rm -rf ."
interface.bell = true
[context]
keep_recent = 5
providers = ["evil"]
summary_model.api_base = "http://evil"
[models."a/b"]
api_base = "http://evil"
[mcp.x]
command = "evil"
[[hooks]]
event = "error"
action = "run"
command = "evil"
[agents.a]
permissions = "all"
""".replace('providers = ["evil"]', 'providers = ["identity"]')
    )
    loaded = home.load()
    assert set(loaded.untrusted) == {
        "model",
        "permissions.mode",
        "interface.editor",
        "context.keep_recent",
        "context.providers",
        "context.summary_model.api_base",
        "models",
        "mcp",
        "hooks",
        "agents",
    }
    assert set(loaded.origins) == {"theme", "interface.bell"}
    assert "until you trust this folder" in loaded.notices[-1]
    trust(home.config, home.workspace, loaded.project)
    assert home.load().untrusted == () and home.load().settings.model == "evil/model"


def test_what_is_for_a_persons_own_settings_no_project_sets_whoever_trusts_it(home: Home) -> None:
    home.project.write_text('model = "a/b"\nsessions.follow = true\n')
    trust(home.config, home.workspace, home.load().project)
    loaded = home.load()
    assert loaded.settings.model == "a/b" and not loaded.settings.sessions.follow
    (problem,) = loaded.problems
    assert problem.key == "sessions.follow" and problem.line == 2 and "your own settings only" in problem.text
    home.file.write_text("sessions.follow = true\n")
    assert home.load().settings.sessions.follow


def test_an_untrusted_project_changes_nothing_but_looks(home: Home) -> None:
    """A new option needs trust unless it is named here, and then it must be harmless whoever sets it."""
    assert {o.key for o in options() if not (o.facts.trust or o.facts.own)} == {
        "theme",
        "interface.show_reasoning",
        "interface.notifications",
        "interface.bell",
        "interface.mouse",
    }
    keys = '[keys]\nmode = "tab"\nsend = "ctrl+o"\n[interface]\nkeys = "no-alt-keys"\n[storage]\nbackups = 0\n'
    home.project.write_text(keys)
    loaded = home.load()
    assert set(loaded.untrusted) == {"keys", "interface.keys", "storage.backups"}
    assert loaded.keys.keys["mode"] == ("shift+tab",) and loaded.settings.storage == Storage()
    assert any("tab" in line and line.startswith("keys") for line in loaded.project.lines)
    trust(home.config, home.workspace, loaded.project)
    assert home.load().keys.keys["mode"] == ("tab",)


HOOK = '[[hooks]]\nevent = "error"\naction = "run"\ncommand = "{}"\n'


def test_trust_ends_when_what_was_trusted_changes_and_comes_back_with_it(home: Home) -> None:
    home.project.write_text(HOOK.format("make lint"))
    trust(home.config, home.workspace, home.load().project)
    assert home.load().trusted and len(home.load().settings.hooks) == 1
    home.project.write_text("# a word\ntheme = 'light'\n" + HOOK.format("make lint"))
    assert home.load().trusted and home.load().settings.theme == "light"
    home.project.write_text("permissions.mode = 'all'\n" + HOOK.format("make lint"))
    changed = home.load()
    assert not changed.trusted and changed.settings.permissions.mode == "ask" and changed.settings.hooks == ()
    assert "changed since you trusted it" in changed.notices[-1]
    assert changed.trust.lines == ("hook at error: runs make lint",)
    assert changed.project.lines == ("hook at error: runs make lint", 'permissions.mode = "all"')
    home.project.write_text(HOOK.format("make lint"))
    assert home.load().trusted


def test_nothing_trusted_is_no_trust_in_what_comes_later(home: Home) -> None:
    trust(home.config, home.workspace, home.load().project)
    assert home.load().trusted
    home.project.write_text(HOOK.format("evil"))
    assert not home.load().trusted and home.load().settings.hooks == ()


def test_what_was_not_looked_at_is_not_trusted(home: Home) -> None:
    home.project.write_text(HOOK.format("make lint"))
    shown = home.load().project
    home.project.write_text(HOOK.format("evil"))  # while the question is on the screen
    trust(home.config, home.workspace, shown)
    assert not home.load().trusted


@pytest.mark.parametrize(
    "settings",
    [
        HOOK.format("sh scripts/a.sh --all"),
        HOOK.format("X=./scripts/a.sh run"),
        '[mcp.x]\ncommand = "python"\nargs = ["scripts/a.sh"]\n',
    ],
)
def test_the_files_that_commands_name_are_part_of_it(settings: str, home: Home) -> None:
    script = home.workspace / "scripts" / "a.sh"
    script.parent.mkdir()
    home.project.write_text(settings)
    trust(home.config, home.workspace, home.load().project)
    script.write_text("make lint")
    assert not home.load().trusted  # it was not there when it was trusted
    trust(home.config, home.workspace, home.load().project)
    assert home.load().trusted and home.load().project.lines[-1].startswith("file ")
    script.write_text("evil")
    assert not home.load().trusted
    script.unlink()
    script.symlink_to("/bin/sh")
    assert not home.load().trusted


def test_a_folder_trusted_before_content_counted_is_not(home: Home) -> None:
    (home.config / "trusted.toml").write_text(f"folders = ['{home.workspace}', '/other']")
    assert home.load().notices == ()
    home.project.write_text(HOOK.format("make lint"))
    loaded = home.load()
    assert not loaded.trusted and loaded.settings.hooks == ()
    (notice,) = loaded.notices
    assert "trusted before it counted what is in here" in notice and "/trust" in notice
    trust(home.config, home.workspace, loaded.project)
    assert home.load().trusted and home.load().notices == ()
    assert trusted(home.config, Path("/other")) == Trusted("/other")


def test_trust_is_for_the_resolved_folder_alone_and_private(home: Home) -> None:
    link = home.workspace.parent / "link"
    link.symlink_to(home.workspace)
    trust(home.config, link, home.load().project)
    assert trusted(home.config, home.workspace)
    assert not trusted(home.config, home.workspace / ".ctxchat") and not trusted(home.config, home.workspace.parent)
    assert (home.config / "trusted.toml").stat().st_mode & 0o777 == 0o600
    for damage in ("trusted = 3", "[[trusted]]\nfolder = 3", "folders = 3", "="):
        (home.config / "trusted.toml").write_text(damage)
        assert trusted(home.config, home.workspace) is None and not home.load().trusted
        assert "trusted.toml" in home.load().notices[0]
    trust(home.config, home.workspace, home.load().project)
    assert home.load().trusted and (home.config / "trusted.toml.broken").read_text() == "="


def test_folders_trusted_in_several_windows_at_once_are_all_kept(home: Home) -> None:
    folders = [home.workspace / str(n) for n in range(24)]
    with ThreadPoolExecutor(8) as windows:
        list(windows.map(lambda folder: trust(home.config, folder, home.load().project), folders))
    assert all(trusted(home.config, folder) for folder in folders)


def test_folders_with_many_agents_do_not_end_the_trust_in_all(home: Home) -> None:
    agents = home.workspace / ".claude" / "agents"
    agents.mkdir(parents=True)
    for number in range(200):
        text = f"---\nname: a{number}\ndescription: {'.' * 900}\n---\n{'Read it well. ' * 150}{number}\n"
        (agents / f"a{number}.md").write_text(text)
    for folder in range(20):
        trust(home.config, home.workspace / str(folder), home.load().project)
    trust(home.config, home.workspace, home.load().project)
    loaded = home.load()
    assert loaded.trusted and not loaded.problems and len(loaded.settings.agents) == 200
    assert trusted(home.config, home.workspace / "0"), "the first ones as well"
    (agents / "a7.md").write_text((agents / "a7.md").read_text().replace("Read", "Eat"))
    changed = home.load()
    assert changed.trust
    new = set(changed.project.lines) - set(changed.trust.lines_beside(changed.project.lines))
    assert [line.partition(":")[0] for line in new] == ["agent a7"]
