"""Commands that only look: settings, themes, models, doctor, help. And how the program starts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ctxchat import __version__
from ctxchat.cli.commands import COMMANDS
from tests.cli.conftest import Cli, Home

BROKEN = 'thme = "dark"\n[context]\nkeep_recent = "many"\ncompression_trigger = 7.5\n'


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out.strip().endswith(__version__)
    said = cli("--help").out
    assert all(name in said for name in COMMANDS)
    for name in COMMANDS:
        assert "--json" in cli(name, "--help").out


def test_the_version_loads_neither_textual_nor_litellm(home: Home) -> None:
    heavy = {"textual", "rich", "litellm", "tiktoken", "httpx", "sqlite3", "aiohttp"}
    code = f"import sys; from ctxchat.cli import main; main(['--version']); print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=home.environ, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_config_path_and_show(cli: Cli, home: Home) -> None:
    files = cli("config", "path", "--json").json
    assert files["user"] == str(home.settings / "config.toml")
    assert files["data"] == str(home.data)
    shown = cli("config", "show", "--json").json
    assert shown["context.keep_recent"].keys() == {"value", "default", "origin"}
    assert "keep_recent" in cli("config", "show", "context").out


def test_setting_an_option_and_seeing_where_it_came_from(cli: Cli, home: Home) -> None:
    home.settings.joinpath("config.toml").write_text("# mine\n[context]\nkeep_recent = 8 # eight\n")
    assert cli("config", "set", "context.keep_recent", "12").code == 0
    assert home.settings.joinpath("config.toml").read_text() == "# mine\n[context]\nkeep_recent = 12 # eight\n"
    row = cli("config", "show", "context.keep_recent", "--json").json["context.keep_recent"]
    assert row["value"] == 12
    assert "config.toml" in row["origin"]


def test_what_is_set_is_refused_or_named_where_it_cannot_work(cli: Cli, home: Home) -> None:
    ran = cli("config", "set", "theme", "nrod")
    assert ran.code == 2 and "did you mean nord?" in ran.sentence
    assert not (home.settings / "config.toml").exists()
    ran = cli("config", "set", "keys.help", "ctrl+a")
    assert ran.code == 0 and "message editor" in ran.err


def test_check_lists_all_problems_with_file_line_and_nearest(cli: Cli, home: Home) -> None:
    file = home.put("broken.toml", BROKEN)
    ran = cli("config", "check", file)
    assert ran.code == 2
    lines = ran.out.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{file}:{number}" for number in (1, 3, 4)]
    assert "theme" in lines[0]
    as_json = cli("config", "check", file, "--json")
    assert as_json.code == 2
    assert json.loads(as_json.out) == {"ok": False, "problems": lines}
    assert cli("config", "check").code == 0


def test_a_broken_file_never_stops_the_rest(cli: Cli, home: Home) -> None:
    home.settings.joinpath("config.toml").write_text(BROKEN)
    assert cli("config", "check").code == 2
    assert cli("sessions", "list", "--json").json == []
    report = cli("doctor", "--json")
    assert report.code == 1
    failed = [check for check in json.loads(report.out)["checks"] if not check["ok"]]
    assert len(failed) == 3
    assert "config.toml:1" in failed[0]["detail"]
    assert all(check["remedy"] for check in failed)


def test_doctor_says_all_is_well(cli: Cli) -> None:
    report = cli("doctor", "--json").json
    assert report["ok"] is True
    names = [check["name"] for check in report["checks"]]
    assert {"settings", "themes", "tokenizer", "store", "sandbox", "model"} <= set(names)
    for check in report["checks"]:
        assert isinstance(check["ok"], bool)
        assert isinstance(check["detail"], str)
        assert isinstance(check["remedy"], str)


def test_a_model_that_only_the_command_line_names_is_listed_with_its_window(cli: Cli) -> None:
    rows = cli(
        "models",
        "--json",
        "--model",
        "hosted_vllm/unheard-of",
        "--window",
        "12345",
        "--api-base",
        "http://127.0.0.1:9/v1",
    ).json
    (mine,) = [row for row in rows if row["name"] == "hosted_vllm/unheard-of"]
    assert (mine["window"], mine["window_source"]) == (12_345, "configured")
    (offline,) = [row for row in cli("models", "--json", "--window", "7000").json if row["provider"] == "ctxchat"]
    assert (offline["window"], offline["window_source"]) == (7_000, "configured")


def test_models_have_all_fields(cli: Cli) -> None:
    rows = cli("models", "--json").json
    offline = next(row for row in rows if row["name"] == "offline/assistant")
    fields = {"name", "provider", "reachable", "window", "window_source", "input_cost", "output_cost", "note"}
    assert all(set(row) == fields for row in rows)
    assert offline["reachable"] is True
    assert isinstance(offline["window"], int)


def test_themes_are_listed_and_a_broken_one_is_named(cli: Cli, home: Home) -> None:
    assert len(cli("themes", "--json").json) >= 8
    assert cli("themes", "check").code == 0
    folder = home.settings / "themes"
    folder.mkdir()
    folder.joinpath("[bold]evil.toml").write_text('background = "no colour"\n')
    ran = cli("themes", "check")
    assert ran.code == 2
    assert "[bold]evil.toml" in ran.out
    assert len(cli("themes", "list", "--json").json) >= 8


@pytest.mark.parametrize("arguments", [(), ("--model", "offline/assistant")])
def test_the_chat_without_a_terminal_says_what_to_use(home: Home, arguments: tuple[str, ...]) -> None:
    ran = home.start(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "ctxchat run" in ran.sentence
