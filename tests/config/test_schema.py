"""One schema, and everything made of it: reference file, table, JSON Schema, rows, agents."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from ctxchat.config import paths
from ctxchat.config.check import check_settings
from ctxchat.config.consistency import build, contradictions, for_agent
from ctxchat.config.explain import rows
from ctxchat.config.keys import ACTION_IDS
from ctxchat.config.option_table import options
from ctxchat.config.reference import TABLES, json_schema, keys_table, options_table, page, render, write_pages
from ctxchat.config.schema import DEFAULTS, Settings
from ctxchat.config.trees import get
from ctxchat.core.errors import UsageError

from .conftest import Home

ROOT = Path(__file__).resolve().parents[2]


def nothing(_: str) -> tuple[str, ...]:
    return ()


def test_the_shipped_reference_is_what_the_schema_says() -> None:
    assert (ROOT / "config.toml").read_text(encoding="utf-8") == render(), "run python -m ctxchat.config.reference"
    assert paths.shipped() == ROOT


def test_the_tables_of_the_documentation_are_what_the_program_says(tmp_path: Path) -> None:
    for file in TABLES:
        shutil.copy(ROOT / "docs" / file, tmp_path / file)
    write_pages(tmp_path)
    for file in TABLES:
        there = (ROOT / "docs" / file).read_text(encoding="utf-8")
        assert (tmp_path / file).read_text(encoding="utf-8") == there, "run python -m ctxchat.config.reference"
    keys = (tmp_path / "keys.md").read_text(encoding="utf-8")
    assert all(f"`{action}`" in keys for action in ACTION_IDS)
    with pytest.raises(ValueError, match="has no <!-- table: keys -->"):
        page("# Keys\n", "keys", keys_table())


def test_the_reference_can_be_written_anew(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "ctxchat.config.reference", str(tmp_path / "c.toml")], check=True, cwd=ROOT)
    assert (tmp_path / "c.toml").read_text(encoding="utf-8") == render()


def test_what_is_shipped_is_found_in_an_installed_package(tmp_path: Path) -> None:
    package = tmp_path / "ctxchat"
    for part in ("config", "core"):
        shutil.copytree(ROOT / "ctxchat" / part, package / part, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "ctxchat" / "repository_files.py", package)
    imports = "from ctxchat.config.paths import shipped; from ctxchat.config.themes import load_themes"
    code = f"{imports}; print(shipped(), *load_themes().themes)"
    run = [sys.executable, "-c", code]
    assert (
        subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        .stderr.strip()
        .endswith("Install ctxchat again.")
    )
    shutil.copytree(ROOT / "themes", package / "_data" / "themes")
    shutil.copy(ROOT / "config.toml", package / "_data" / "config.toml")
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == str(package / "_data") and "dark" in done.stdout.split()


def test_the_reference_as_shipped_sets_nothing() -> None:
    tree = tomllib.loads(render())
    clean, faults = check_settings(tree, nothing)
    assert faults == [] and build(clean) == DEFAULTS


def test_the_reference_uncommented_holds_every_option_at_its_default_and_good_examples() -> None:
    tree = tomllib.loads(re.sub(r"^#(?! |$)", "", render(), flags=re.MULTILINE))
    clean, faults = check_settings(tree, nothing)
    assert faults == []
    settings = build(clean)
    assert contradictions(settings) == []
    assert settings.context.sections["tools"].budget and settings.hooks[0].when.context_pressure
    for option in options():
        if "*" not in option.path:
            assert get(tree, option.path) == json.loads(
                json.dumps(msgspec.to_builtins(option.default))
            ) or option.key.startswith("context.sections")
    for key in {o.path[-1] for o in options() if o.path[:1] == ("mcp",)}:
        assert key in tree["mcp"]["files"]
    for key in {o.path[-1] for o in options() if o.path[:1] == ("agents",)}:
        assert key in tree["agents"]["reviewer"]


def test_every_option_is_described_once() -> None:
    keys = [o.key for o in options()]
    assert len(keys) == len(set(keys)) > 80
    for option in options():
        assert option.facts.help.endswith("."), option.key
        assert (
            option.facts.unit or "number" not in option.allowed or option.path[-1] in ("priority", "max_output_chars")
        ), option.key
    assert all(f"| `{key}` |" in options_table() for key in keys if not key.startswith("keys."))


@pytest.mark.parametrize("option", [o for o in options() if "number from" in o.allowed], ids=lambda o: o.key)
def test_numbers_keep_to_their_range(option) -> None:
    tp = option.type
    for bad in (math.nan, -math.inf, "7", True, -1001, 10**30):
        if bad == 10**30 and " to " not in option.allowed:
            continue
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(bad, tp)
    if option.default is not None:
        assert msgspec.convert(option.default, tp) == option.default


def test_json_schema_says_the_same() -> None:
    schema = json.loads(json.dumps(json_schema()))
    tables = schema["$defs"]
    assert set(tables["Settings"]["properties"]) == set(Settings.__struct_fields__)
    assert all(table["additionalProperties"] is False for table in tables.values())
    keep = tables["ContextSettings"]["properties"]["keep_recent"]
    assert (keep["minimum"], keep["maximum"], keep["default"], keep["type"]) == (1, 10_000, 12, "integer")
    assert "not" in tables["Condition"]["properties"]
    assert "pipeline" in tables["ContextSettings"]["properties"]["strategy"]["examples"]


def test_rows_show_value_default_and_origin(home: Home) -> None:
    home.file.write_text('[context]\nkeep_recent = 3\n[models."a/b"]\nwindow = 9\n')
    loaded = home.load()
    shown = {row.key: [row.value, row.default, row.origin.text] for row in rows(loaded)}
    assert shown["context.keep_recent"] == [3, 12, f"{home.file}:2"]
    assert shown["context.target"] == [0.5, 0.5, "default"]
    assert shown['models."a/b".window'] == [9, 0, f"{home.file}:4"]
    assert json.loads(json.dumps(shown)) == shown
    assert [r.key for r in rows(loaded)][:3] == ["model", "theme", "agent"]
    assert {o.key for o in options() if "*" not in o.path} <= {r.key for r in rows(loaded)} | {"hooks"}


def test_agents_fall_back_field_by_field(home: Home) -> None:
    home.file.write_text(
        """\
model = "app/model"
agent = "quick"
permissions.rules = ["shell: ls"]
[context]
keep_recent = 20
target = 0.4
[context.reactive]
max_per_turn = 1
[agents.quick]
model = ""
tools = []
permissions = "read-only"
context = { compression_trigger = 0.3, max_tokens = 0, reactive.micro_trigger = 0.5 }
[agents.plain]
"""
    )
    loaded = home.load()
    assert loaded.problems == ()
    seen, quick = for_agent(loaded.settings)
    assert (seen.model, seen.permissions.mode, seen.permissions.rules) == ("", "read-only", ("shell: ls",))
    assert quick.tools == () and quick.prompt is None
    assert seen.context.keep_recent == 20 and seen.context.compression_trigger == 0.3
    assert seen.context.reactive.micro_trigger == 0.5 and seen.context.reactive.max_per_turn == 1
    assert seen.context.target < 0.3
    plain, own = for_agent(loaded.settings, "plain")
    assert plain.context == loaded.settings.context and plain.model == "app/model" and own.tools is None
    with pytest.raises(UsageError, match="Did you mean plain"):
        for_agent(loaded.settings, "plan")
    assert for_agent(DEFAULTS)[0] == DEFAULTS


def test_an_agents_context_is_checked_like_the_applications(home: Home) -> None:
    home.file.write_text(
        "[agents.a.context]\nkeep_recent = 0\n[agents.b]\ncontext.target = 0.9\n[agents.c]\ncontext.nope = 1\n"
    )
    assert [(p.line, p.key) for p in home.load().problems] == [
        (2, "agents.a.context.keep_recent"),
        (4, "agents.b.context.target"),
        (6, "agents.c.context.nope"),
    ]


def test_plug_ins_add_to_the_open_lists() -> None:
    tree = {"context": {"strategy": "mine", "transforms": ["theirs"]}}
    assert len(check_settings(tree, nothing)[1]) == 2
    clean, faults = check_settings(tree, lambda names: {"strategies": ("mine",), "transforms": ("theirs",)}[names])
    assert faults == [] and clean == {"context": {"strategy": "mine", "transforms": ["theirs"]}}
