"""A fact once: what the program registers can be chosen in the settings, is listed, and is in the documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from ctxchat.bootstrap.extensions import broken_plugins, with_plugins
from ctxchat.bootstrap.session_settings import agent_options, compiler_of
from ctxchat.config.effective import load_settings
from ctxchat.config.schema import DEFAULTS, own_names
from ctxchat.context.standard import standard_providers
from ctxchat.core.compilers import ConversationSection
from ctxchat.core.options import USUAL
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.plugins import Plugins
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.delegating import Delegate
from ctxchat.tools.sandbox import Sandbox

DOCS = Path(__file__).parents[2] / "docs"
STRATEGIES = sorted(with_plugins(Plugins({}))(PlanOptions()))
COMPILERS = ['"all_sections"', '"current_tool_trace"', str(list(get_args(ConversationSection)))]


def wrong(folder: Path, toml: str) -> list[str]:
    """What is said against these settings."""
    folder.joinpath("config.toml").write_text(toml, encoding="utf-8")
    loaded = load_settings(folder, environ={"CTXCHAT_CONFIG_DIR": str(folder), "CTXCHAT_DATA_DIR": str(folder)})
    return [problem.text for problem in loaded.problems]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that brings one of each."""
    made = tmp_path / "site" / "theirs-1.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    groups = ("strategies", "providers", "transforms")
    (made / "entry_points.txt").write_text("".join(f"[ctxchat.{g}]\ntheirs = theirs:make\n" for g in groups))
    (made.parent / "theirs.py").write_text(
        "class make:\n    name = source_id = 'theirs'\n    def __init__(self, *given): pass\n    def plan(self, *given): pass\n"
    )
    monkeypatch.syspath_prepend(str(made.parent))


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_is_selectable_and_documented(tmp_path: Path, name: str) -> None:
    hook = f'[[hooks]]\nevent = "turn_finished"\naction = "compact_context"\nstrategy = "{name}"\n'
    assert wrong(tmp_path, f'[context]\nstrategy = "{name}"\n{hook}') == []
    assert f"\n| `{name}` |" in (DOCS / "compaction.md").read_text(encoding="utf-8")


def test_what_stands_in_the_documentation_of_strategies_is_one() -> None:
    page = (DOCS / "compaction.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.M)) == STRATEGIES == sorted(own_names("strategies"))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(("key", "value"), [("strategy", '"{}"'), ("providers", '["{}"]'), ("transforms", '["{}"]')])
def test_what_a_package_brings_is_selectable(tmp_path: Path, key: str, value: str) -> None:
    assert wrong(tmp_path, f"[context]\n{key} = {value.format('theirs')}\n") == []
    told = wrong(tmp_path, f"[context]\n{key} = {value.format('nobodys')}\n")
    assert len(told) == 1 and "theirs" in told[0], "who is wrong is told what there is"


@pytest.mark.usefixtures("package")
def test_a_strategy_of_a_package_is_found_by_the_planner() -> None:
    assert "theirs" in with_plugins()(PlanOptions())


def test_the_providers_are_those_of_the_settings_in_their_order(tmp_path: Path) -> None:
    names = tuple(provider.source_id for provider in standard_providers(tmp_path))
    assert names == own_names("providers") == DEFAULTS.context.providers


@pytest.mark.parametrize("value", COMPILERS)
def test_a_compiler_is_selectable_and_so_is_what_is_put_around_it(tmp_path: Path, value: str) -> None:
    around = 'shown_tokens = 500\nredact = ["sk-[a-z]+"]\ninject = ["Speak Latin."]\n'
    assert wrong(tmp_path, f"[context]\ncompiler = {value}\n{around}") == []
    assert "no regular expression" in wrong(tmp_path, f'[context]\ncompiler = {value}\nredact = ["("]\n')[0]
    assert compiler_of(DEFAULTS)


def test_every_tool_is_documented(tmp_path: Path) -> None:
    async def search(*given: object) -> str:
        return ""

    tools = standard_tools(
        sandbox=Sandbox(), environ={}, memory_file=tmp_path / "AGENTS.md", search=search, show=search
    )  # type: ignore[arg-type]
    page = (DOCS / "tools.md").read_text(encoding="utf-8")
    assert [tool.spec.name for tool in tools if f"`{tool.spec.name}`" not in page] == []
    assert f"`{Delegate.name}`" in page


def test_settings_and_agent_have_the_same_defaults() -> None:
    assert agent_options(DEFAULTS, "any/model") == USUAL
    told, plan = PlanOptions(), USUAL
    assert (told.keep_recent, told.recent_results) == (plan.keep_recent, plan.recent_results)
    assert (told.summary_max_tokens, told.preserve_recent_rounds) == (
        plan.summary_max_tokens,
        plan.preserve_recent_rounds,
    )


@pytest.mark.usefixtures("package")
def test_each_broken_plug_in_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_plugins(tmp_path) == []
    made = tmp_path / "more" / "broken-1.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    groups = ("tools", "strategies", "providers", "transforms")
    (made / "entry_points.txt").write_text("".join(f"[ctxchat.{g}]\n{g}_no = not_there:make\n" for g in groups))
    monkeypatch.syspath_prepend(str(made.parent))
    named = [f"Plug-in {g}_no of broken" for g in groups]
    assert [text.split(" was")[0] for text in broken_plugins(tmp_path)] == named
    monkeypatch.setenv("CTXCHAT_CONFIG_DIR", str(tmp_path / "settings"))
    monkeypatch.setenv("CTXCHAT_DATA_DIR", str(tmp_path / "data"))
    for command in ("config", "check"), ("doctor",):
        ended = subprocess.run(
            [sys.executable, "-m", "ctxchat", *command],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(made.parent)},
            check=False,
        )
        told = ended.stdout + ended.stderr
        assert ended.returncode and not [name for name in named if name not in told], told


def test_every_wrong_name_of_a_list_is_told(tmp_path: Path) -> None:
    told = wrong(tmp_path, '[context]\nproviders = ["weather", "moon"]\n')
    assert ["weather" in told[0], "moon" in told[1], len(told)] == [True, True, 2]
