"""Edits noticed, and told in words."""

from __future__ import annotations

from pathlib import Path

from ctxchat.config.news import compare_settings
from ctxchat.config.trust import trust
from ctxchat.config.watch import Watch

from .conftest import Home


def test_an_edit_is_told_with_the_old_and_the_new_value(home: Home) -> None:
    before = home.load()
    home.file.write_text(
        'model = "a/b"\ntheme = "light"\n[context]\ncompression_trigger = 0.8\n[keys]\nsearch = "ctrl+r"\n[models.x]\nwindow=9\n'
    )
    told = compare_settings(before, home.load())
    assert set(told.now) == {
        "theme dark → light",
        "compression_trigger 0.75 → 0.8",
        "keys.search ctrl+f → ctrl+r",
        "models.x is new",
    }
    assert told.later == ('model "" → a/b, from the next session on',)
    assert told and not compare_settings(before, before)


def test_hooks_are_told_by_name(home: Home) -> None:
    hook = '[[hooks]]\nevent = "error"\naction = "notify"\ntext = "{}"\n{}\n'
    home.file.write_text(hook.format("a", 'name = "one"'))
    one = home.load()
    home.file.write_text(hook.format("b", 'name = "one"'))
    edited = home.load()
    home.file.write_text(hook.format("b", 'name = "one"') + hook.format("c", ""))
    two = home.load()
    home.file.write_text(hook.format("b", 'name = "two"') + hook.format("c", ""))
    assert [compare_settings(a, b).now for a, b in ((one, edited), (edited, two), (two, home.load()))] == [
        ("hooks edited",),
        ("hooks 1 → 2",),
        ("hooks one → two",),
    ]


def test_long_and_strange_values_stay_one_short_line(home: Home) -> None:
    before = home.load()
    home.file.write_text(f'permissions.rules = ["shell: {"x" * 500}"]\ninterface.editor = "a\\u001b[2Jb"\n')
    lines = compare_settings(before, home.load()).now
    assert len(lines) == 2 and all(line.isprintable() and len(line) < 80 for line in lines)


def test_what_came_went_or_was_written_is_seen_once(tmp_path: Path) -> None:
    file, folder = tmp_path / "config.toml", tmp_path / "themes"
    watch = Watch([file, folder, file])
    assert watch.changed() == frozenset()
    file.write_text("a = 1\n")
    assert watch.changed() == {file} and watch.changed() == frozenset()
    beside = tmp_path / "new"
    beside.write_text("a = 2\n")
    beside.replace(file)  # as editors save
    assert watch.changed() == {file}
    folder.mkdir()
    (folder / "mine.toml").write_text("x")
    (folder / "notes.txt").write_text("x")
    assert watch.changed() == {folder / "mine.toml"}
    file.unlink()
    assert watch.changed() == {file} and watch.changed() == frozenset()


def test_a_theme_nobody_has_is_named_with_its_line_and_the_nearest(home: Home) -> None:
    home.file.write_text('\ntheme = "gruvbx"\n')
    (problem,) = home.load().problems
    assert problem.text.startswith(f"{home.file}:2: theme: there is no theme 'gruvbx', one of ")
    assert problem.text.endswith("did you mean gruvbox?") and home.load().broken == ()
    (home.config / "themes").mkdir()
    (home.config / "themes" / "gruvbx.toml").write_text('background = "#111"\nforeground = "#eee"\nprimary = "#88f"\n')
    assert home.load().problems == ()


def test_what_waits_for_trust_is_at_hand_with_its_values(home: Home) -> None:
    home.project.write_text('permissions.mode = "all"\n[mcp.files]\ncommand = "evil"\n')
    assert home.load().project.held == {"permissions.mode": "all", "mcp": {"files": {"command": "evil"}}}
    trust(home.config, home.workspace, home.load().project)
    assert home.load().untrusted == ()


def test_only_what_is_wrong_in_a_file_makes_it_unusable(home: Home) -> None:
    assert home.load(CTXCHAT_MODL="x").problems and not home.load(CTXCHAT_MODL="x").broken
    home.file.write_text("[keys]\nhelp = 'ctrl+a'\n")
    assert home.load().problems and not home.load().broken
    home.file.write_text("modl = 'x'\n")
    assert [p.line for p in home.load().broken] == [1]


def test_whole_agents_and_servers_come_and_go_in_one_line(home: Home) -> None:
    agent = '[agents.a]\nprompt = "x"\ntools = []\n[agents.a.context]\nkeep_recent = 3\n'
    bare = home.load()
    home.file.write_text(agent + '[mcp.files]\ncommand = "x"\nargs = ["y"]\n')
    both = home.load()
    assert compare_settings(bare, both).lines == ("agents.a is new", "mcp.files is new")
    home.file.write_text(agent.replace('"x"', '"y"'))
    assert compare_settings(both, home.load()).lines == ("agents.a.prompt x → y", "mcp.files is gone")
