"""Layers, origins, problems, and what stays in force when a file is broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ctxchat.config.effective import changes, load_settings
from ctxchat.config.schema import DEFAULTS
from ctxchat.config.trust import trust

from .conftest import Home


def test_nothing_there_means_defaults(home: Home) -> None:
    loaded = home.load()
    assert loaded.settings == DEFAULTS
    assert loaded.problems == () and loaded.notices == () and loaded.origins == {}
    assert loaded.files[:2] == (home.file, home.project)


def test_each_layer_wins_over_the_one_before_and_says_so(home: Home) -> None:
    home.file.write_text("[context]\nkeep_recent = 1\ntarget = 0.1\nmin_messages = 7\ncompression_trigger = 0.6\n")
    home.project.write_text("[context]\n\nkeep_recent = 2\ntarget = 0.2\nmin_messages = 8\n")
    trust(home.config, home.workspace, home.load().project)
    loaded = home.load(
        {"context.keep_recent": 4}, CTXCHAT_CONTEXT__KEEP_RECENT="3", CTXCHAT_CONTEXT__TARGET="0.3", CTXCHAT_MODEL="a/b"
    )
    context = loaded.settings.context
    assert (context.keep_recent, context.target, context.min_messages, context.compression_trigger) == (4, 0.3, 8, 0.6)
    assert loaded.settings.model == "a/b"
    origins = {key: loaded.origin(f"context.{key}") for key in ("keep_recent", "target", "min_messages", "strategy")}
    assert {k: o.layer for k, o in origins.items()} == {
        "keep_recent": "command line",
        "target": "environment",
        "min_messages": "project",
        "strategy": "default",
    }
    assert origins["target"].text == "CTXCHAT_CONTEXT__TARGET"
    assert origins["min_messages"].text == f"{home.project}:5"
    assert loaded.problems == ()


def test_problems_come_in_the_order_of_their_lines_whoever_found_them(home: Home) -> None:
    home.file.write_text(
        '[keys]\nsearch = ["f2"]\nfrob = ["f3"]\nquit = ["a"]\n'
        '[context]\ntrigger = 0.5\nkeep_recent = 0\n[interface]\nkeys = "x"\n'
    )
    problems = home.load().problems
    assert [p.line for p in problems] == [2, 3, 4, 6, 7, 9]
    assert len(problems[1].text) < 200 + len(str(home.file)), "forty names help nobody"
    assert problems[3].nearest == "compression_trigger"


def test_all_problems_at_once_with_their_lines(home: Home) -> None:
    home.file.write_text(
        """\
thme = "dark"
keys.serch = ["ctrl+r"]
models = { "a/b" = { windw = 3 } }

[context]
keep_recent = 0
strategy = "pipelin"
compiler = ["summary", "mesages"]
reactive.micro_trigger = 0.95

[permissions]
mode = "readonly"
rules = [
  "shell: ls",
  "nothing",
]

[[hooks]]
event = "error"
action = "notify"
text = "oh"

[[hooks]]
event = "eror"
action = "run"

[mcp.files]
args = ["x"]
"""
    )
    told = [p.text.removeprefix(f"{home.file}:") for p in home.load().problems]
    assert [(t.split(":")[0], t.split(": ")[1]) for t in told] == [
        ("1", "thme"),
        ("2", "keys.serch"),
        ("3", 'models."a/b".windw'),
        ("6", "context.keep_recent"),
        ("7", "context.strategy"),
        ("8", "context.compiler"),
        ("9", "context.reactive.micro_trigger"),
        ("12", "permissions.mode"),
        ("13", "permissions.rules"),
        ("24", "hooks[2].event"),
        ("27", "mcp.files.command"),
    ]
    assert told[0].endswith("is unknown, did you mean theme?")
    assert told[3].endswith("is 0, must be a whole number from 1 to 10,000")
    assert told[4].endswith("did you mean pipeline?")
    assert told[6].endswith("0.95 is not below reactive.full_trigger (0.92)")
    assert told[7].endswith('must be "ask", "read-only", "plan", "auto-edit" or "all", did you mean read-only?')


def test_an_option_in_the_wrong_table_is_told_where_it_belongs(home: Home) -> None:
    home.file.write_text(
        "keep_recent = 3\nmicro_trigger = 0.5\n[agents.a]\ntarget = 0.4\n[context]\nmax_per_turn = 2\n"
    )
    ends = [p.text.partition("is unknown")[2] for p in home.load().problems]
    assert ends == [
        ", did you mean context.keep_recent?",
        "",
        ", did you mean context.target?",
        ", did you mean reactive.max_per_turn?",
    ]


def test_last_good_settings_stay_in_force_and_the_notice_says_so(home: Home) -> None:
    home.file.write_text('model = "a/b"\n')
    assert home.load().problems == ()
    home.file.write_text('model = "c/d"\n[context]\nkeep_recnt = 3\n')
    loaded = home.load()
    assert loaded.settings.model == "a/b"
    assert loaded.origin("model").layer == "last good"
    assert f"{home.file}:3: context.keep_recnt: is unknown, did you mean keep_recent?" in loaded.notices
    assert "Using the last good settings until the file is corrected." in loaded.notices
    home.file.write_text('model = "c/d"\n')
    assert home.load().settings.model == "c/d"


def test_without_a_last_good_file_its_right_values_count(home: Home) -> None:
    home.file.write_text('model = "c/d"\n[context]\nkeep_recent = -1\ntarget = 0.4\n')
    loaded = home.load()
    assert (loaded.settings.model, loaded.settings.context.target) == ("c/d", 0.4)
    assert loaded.notices[-1] == "What is wrong counts as not set until it is corrected."
    assert loaded.settings.context.keep_recent == DEFAULTS.context.keep_recent
    assert len(loaded.problems) == 1


def test_a_removed_file_is_not_brought_back(home: Home) -> None:
    home.file.write_text('model = "a/b"\n')
    home.load()
    home.file.unlink()
    assert home.load().settings.model == ""
    home.file.write_text("model = \n")
    assert home.load().settings.model == ""


def test_lowering_a_mark_takes_the_marks_below_along(home: Home) -> None:
    home.file.write_text("context.compression_trigger = 0.3\ncontext.reactive.full_trigger = 0.6\n")
    loaded = home.load()
    context = loaded.settings.context
    assert loaded.problems == ()
    assert context.target < 0.3 and context.prepare.soft_mark < 0.3 and context.reactive.micro_trigger < 0.6


def test_marks_set_against_each_other_are_named_whichever_layer_did_it(home: Home) -> None:
    home.file.write_text("context.target = 0.5\n")
    loaded = home.load(CTXCHAT_CONTEXT__COMPRESSION_TRIGGER="0.4")
    assert [p.text for p in loaded.problems] == [
        "CTXCHAT_CONTEXT__COMPRESSION_TRIGGER: context.compression_trigger: 0.5 is not below compression_trigger (0.4)"
    ]
    assert loaded.settings.context.compression_trigger == DEFAULTS.context.compression_trigger


@pytest.mark.parametrize("name", ["files__x", "files_"])
def test_servers_whose_tools_would_share_their_names_are_refused_with_the_line(home: Home, name: str) -> None:
    home.file.write_text(f'[mcp.{name}]\ncommand = "b"\n\n[mcp.files]\ncommand = "a"\n[mcp.files_x]\ncommand = "c"\n')
    loaded = home.load()
    assert set(loaded.settings.mcp) == {"files", "files_x"}
    (problem,) = loaded.problems
    assert (problem.key, problem.line) == (f"mcp.{name}", 1) and "told from those of mcp.files" in problem.text


def test_half_a_hook_never_fires(home: Home) -> None:
    home.file.write_text(
        '[[hooks]]\nevent = "error"\naction = "run"\ncommand = "x"\nwhen = { context_presure = 0.9 }\n'
    )
    loaded = home.load()
    assert loaded.settings.hooks == ()
    assert loaded.problems[0].line == 5 and loaded.problems[0].nearest == "context_pressure"


def test_hooks_and_rules_of_layers_add_up(home: Home) -> None:
    hook = '[[hooks]]\nevent = "error"\naction = "notify"\ntext = "{}"\n'
    home.file.write_text('permissions.rules = ["shell: ls"]\n' + hook.format("mine"))
    home.project.write_text('permissions.rules = ["shell: make"]\n' + hook.format("theirs"))
    trust(home.config, home.workspace, home.load().project)
    loaded = home.load()
    assert loaded.settings.permissions.rules == ("shell: ls", "shell: make")
    assert [h.text for h in loaded.settings.hooks] == ["mine", "theirs"]


def test_variables_and_flags_are_checked_like_files(home: Home) -> None:
    loaded = home.load(
        {"context.keep_recent": "many", "nonsense.x": 1, "not a key": 1},
        CTXCHAT_MODL="x",
        CTXCHAT_TOOLS__WEB="perhaps",
        CTXCHAT_CONTEXT__PROVIDERS="skills, identity",
        CTXCHAT_CONTEXT__AUTO_COMPACT="off",
        CTXCHAT_THEME="0.5",
    )
    assert loaded.settings.context.providers == ("skills", "identity")
    assert loaded.settings.context.auto_compact == "off" and loaded.settings.theme == "0.5"
    told = [p.text for p in loaded.problems]
    assert "CTXCHAT_MODL: is no setting, did you mean CTXCHAT_MODEL?" in told
    assert "CTXCHAT_TOOLS__WEB: tools.web: is 'perhaps', must be true or false" in told
    assert "command line: context.keep_recent: is 'many', must be a whole number from 1 to 10,000" in told
    assert any(t.startswith("command line: nonsense: is unknown") for t in told)
    assert any("not a key" in t for t in told)


def test_a_named_config_file_must_be_there_and_is_not_remembered(home: Home, tmp_path: Path) -> None:
    environ = {"CTXCHAT_CONFIG_DIR": str(home.config), "CTXCHAT_DATA_DIR": str(home.data)}
    other = tmp_path / "other.toml"
    assert "is not there" in load_settings(config=other, environ=environ).notices[0]
    other.write_text('model = "a/b"')
    assert load_settings(config=other, environ=environ).settings.model == "a/b"
    home.file.write_text("broken")
    assert load_settings(environ=environ).settings.model == ""


def test_a_data_folder_that_cannot_be_written_stops_nothing(home: Home) -> None:
    home.data.write_text("a file where the folder should be")
    home.file.write_text('model = "a/b"')
    loaded = home.load()
    assert loaded.settings.model == "a/b" and loaded.problems == ()


def test_key_conflicts_are_named_with_their_line_and_refuse_nothing_else(home: Home) -> None:
    home.file.write_text('model = "a/b"\n[keys]\nhelp = "ctrl+a"\nsearch = ["f3"]\n')
    loaded = home.load()
    assert loaded.settings.model == "a/b"
    assert [(p.line, p.key) for p in loaded.problems] == [(3, "keys.help"), (4, "keys.search")]
    assert loaded.keys.keys["help"] == ("f1",) and loaded.keys.keys["search"] == ("f3",)


def test_changes_say_what_an_edit_did(home: Home) -> None:
    before = home.load().settings
    home.file.write_text('theme = "light"\n[context]\nkeep_recent = 20\n[models.x]\nwindow = 10\n')
    assert changes(before, home.load().settings) == (
        ("theme", "dark", "light"),
        ("models.x.window", 0, 10),
        ("context.keep_recent", 12, 20),
    )
    assert changes(before, before) == ()


def test_loading_settings_imports_nothing_heavy() -> None:
    code = (
        "import sys; from ctxchat.config.effective import load_settings;"
        " load_settings(environ={'CTXCHAT_CONFIG_DIR': '/nowhere',"
        " 'CTXCHAT_DATA_DIR': '/nowhere'}); print([m for m in ('tomlkit', 'tomli_w', 'textual', 'litellm',"
        " 'difflib', 'tempfile', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
