"""The rules in force, on screen: where each is from, edited, added, and taken out where it is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from ctxchat.agent.turn.approvals import Approvals
from ctxchat.config.effective import load_settings
from ctxchat.config.rules import add_rules, read_rules, rules_file
from ctxchat.config.trust import trust
from ctxchat.core.errors import CtxchatError
from ctxchat.core.permissions import AccessRequest, Rule, parse_rule
from ctxchat.tui.app import AppFiles
from ctxchat.tui.panels.panel import Confirm
from ctxchat.tui.panels.permissions import PermissionsScreen, RuleScreen
from ctxchat.tui.widgets.rows import Rows
from tests.tui.chatting import chatting, until, words
from tests.tui.fakes import FakeServices, FakeSession


class Home:
    """Settings of a person, of a project, stored rules, and a session that goes by them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config, self.workspace = folder / "config", folder / "harbour"
        self.config.mkdir()
        (self.workspace / ".ctxchat").mkdir(parents=True)
        self.environ = {"CTXCHAT_CONFIG_DIR": str(self.config), "CTXCHAT_DATA_DIR": str(folder / "data")}
        for name, value in self.environ.items():
            monkeypatch.setenv(name, value)
        self.load = partial(load_settings, self.workspace, environ=self.environ, known=lambda _: ())
        self.full = False
        self.approvals = Approvals(folder=str(self.workspace), store=self._store)

    async def _store(self, rules: Sequence[Rule]) -> None:
        if self.full:
            raise CtxchatError("The disk is full.")
        add_rules(self.config, rules)

    async def fill(self) -> None:
        """A rule from everywhere: this session, always, the person's settings, the project's; one forbids."""
        (self.config / "config.toml").write_text('[permissions]\nrules = ["deny shell: rm **", "shell: make lint"]\n')
        (self.workspace / ".ctxchat" / "config.toml").write_text('permissions.rules = ["shell: make test"]\n')
        trust(self.config, self.workspace, self.load().project)
        here, other = str(self.workspace), "/elsewhere"
        add_rules(self.config, [Rule("write_file", "src/**", here), Rule("shell", "ls", other)])
        written = (rule for text in self.load().settings.permissions.rules if (rule := parse_rule(text)))
        self.approvals.rules = (*read_rules(self.config)[0], *written)
        await self.approvals.allow([Rule("shell", "[bold]uv run pytest **")], "session")

    @property
    def stored(self) -> list[str]:
        return [rule.text for rule in read_rules(self.config)[0]]

    @property
    def held(self) -> list[str]:
        return [rule.text for rule in self.approvals.all_rules]

    @asynccontextmanager
    async def opened(self, size: tuple[int, int] = (100, 30)) -> AsyncIterator[tuple[Any, Any]]:
        session = FakeSession()
        session.permissions = self.approvals
        more = {"files": AppFiles(load_settings=self.load), "services": FakeServices(self.workspace, session)}
        async with chatting(self.workspace, session, size, **more) as (app, pilot):
            await pilot.press(*"/permissions", "enter")
            await until(pilot, lambda: isinstance(app.screen, PermissionsScreen) and app.screen.query(Rows))
            await until(pilot, lambda: len(app.screen.query_one(Rows).items) == len(self.approvals.all_rules))
            yield app, pilot
            while app.screen is not app.chat:
                await pilot.press("escape")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


async def said(pilot: Any, text: str) -> None:
    await until(pilot, lambda: any(text in " ".join(n.message.split()) for n in pilot.app._notifications))


async def write(pilot: Any, app: Any, text: str) -> None:
    await until(pilot, lambda: isinstance(app.screen, RuleScreen) and app.screen.query(Input))
    app.screen.query_one(Input).value = text
    await pilot.press("enter")


async def go_to(pilot: Any, app: Any, text: str) -> None:
    place = next(i for i, each in enumerate(app.screen.rows.items) if each.rule.text == text)
    await pilot.press("home", *["down"] * place)
    assert app.screen.rows.current.rule.text == text


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20)])
async def test_every_rule_is_listed_with_where_it_is_from(home: Home, size: tuple[int, int]) -> None:
    await home.fill()
    async with home.opened(size) as (app, _):
        shown = words(app)
        assert "✗ deny shell: rm **" in shown and shown.index("rm **") < shown.index(
            "src/**"
        )  # what forbids comes first
        assert "[bold]uv run" in shown and "ls" not in [each.rule.pattern for each in app.screen._listed]
        assert "mode ask Reading in this" in " ".join(shown.split())
        assert "esc back" in shown and "e edit" in shown
        holds = {each.rule.pattern: each.holds for each in app.screen._listed}
        assert holds == {
            "rm **": "everywhere",
            "make lint": "everywhere",
            "make test": "this folder",
            "src/**": "this folder",
            "[bold]uv run pytest **": "this folder",
        }
        if size[0] > 100:
            assert "config.toml:2" in shown and ".ctxchat/config.toml:1" in shown and "always" in shown
        assert "5 rules, 1 forbids" in shown or size[0] == 40


async def test_a_stored_rule_is_edited_and_removed_where_it_is_kept(home: Home) -> None:
    await home.fill()
    async with home.opened() as (app, pilot):
        await go_to(pilot, app, "write_file: src/**")
        await pilot.press("e")
        await write(pilot, app, "write_file: src/*")
        await until(pilot, lambda: app.screen.rows.current.rule.text == "write_file: src/*")
        assert "write_file: src/*" in home.held
        assert home.stored == ["write_file: src/*", "shell: ls"] and "write_file: src/**" not in home.held
        deep = AccessRequest("write", str(home.workspace / "src" / "a" / "b.py"))
        assert home.approvals.judge("write_file", deep).verdict == "ask"
        await pilot.press("d")
        await said(pilot, "Removed: write_file: src/*")
        assert home.stored == ["shell: ls"] and "write_file: src/*" not in home.held


async def test_a_rule_of_this_session_is_edited_and_removed(home: Home) -> None:
    await home.fill()
    below = home.approvals.below("all")
    async with home.opened() as (app, pilot):
        await go_to(pilot, app, "shell: [bold]uv run pytest **")
        await pilot.press("enter")
        await write(pilot, app, "deny shell: uv **")
        await until(pilot, lambda: "deny shell: uv **" in words(app))
        assert "deny shell: uv **" in [rule.text for rule in below.all_rules]  # a sub-agent at work goes by it as well
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, Confirm))  # what it forbids would be allowed
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, PermissionsScreen))
        assert "deny shell: uv **" in home.held
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("enter")
        await said(pilot, "Removed: deny shell: uv **")
        assert "deny shell: uv **" not in [rule.text for rule in (*home.approvals.all_rules, *below.all_rules)]
        assert home.stored == ["write_file: src/**", "shell: ls"]


async def test_a_rule_is_added_for_the_session_or_for_good_and_nonsense_is_not(home: Home) -> None:
    async with home.opened() as (app, pilot):
        await pilot.press("s")
        await write(pilot, app, "make test")
        assert "Not a rule yet" in words(app) and isinstance(app.screen, RuleScreen)
        await write(pilot, app, " shell:  make test ")
        await until(pilot, lambda: home.held == ["shell: make test"])
        assert home.stored == []
        await until(pilot, lambda: isinstance(app.screen, PermissionsScreen))
        await pilot.press("a")
        await write(pilot, app, "shell: make lint")
        await until(pilot, lambda: "shell: make lint" in words(app))
        assert home.stored == ["shell: make lint"]
        await pilot.press("a", "escape")
        await until(pilot, lambda: isinstance(app.screen, PermissionsScreen))
        assert home.held == ["shell: make test", "shell: make lint"]


async def test_a_rule_of_the_settings_is_left_to_its_file(home: Home) -> None:
    await home.fill()
    async with home.opened() as (app, pilot):
        await go_to(pilot, app, "shell: make lint")
        await pilot.press("d")
        await said(pilot, f"{home.config / 'config.toml'}:2: remove it there")
        await pilot.press("e")
        await said(pilot, "edit it there")
        assert isinstance(app.screen, PermissionsScreen) and "shell: make lint" in home.held


async def test_what_cannot_be_written_is_said_and_stays_in_force(home: Home) -> None:
    await home.fill()
    async with home.opened() as (app, pilot):
        await go_to(pilot, app, "write_file: src/**")
        rules_file(home.config).unlink()
        await pilot.press("d")
        await said(pilot, "no longer stored")
        home.full = True
        await pilot.press("a")
        await write(pilot, app, "shell: make all")
        await said(pilot, "holds for this session only. The disk is full.")
        assert "shell: make all" in home.held


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20), (20, 8)])
async def test_where_there_is_no_rule_it_says_what_one_is_for(home: Home, size: tuple[int, int]) -> None:
    async with home.opened(size) as (app, pilot):
        await until(pilot, lambda: "There are no" in words(app))
        await until(pilot, lambda: "deny shell" in words(app) or size[1] < 18)
        await pilot.press("e", "d")
        await said(pilot, "There is no rule to remove. a adds one.")
        assert isinstance(app.screen, PermissionsScreen)


async def test_keys_for_a_rule_are_told_where_there_is_one(home: Home) -> None:
    async with home.opened() as (app, pilot):
        await until(pilot, lambda: "There are no rules yet." in words(app))
        await until(pilot, lambda: "a add" in words(app) and "e edit" not in words(app) and "/ find" not in words(app))
        await pilot.press("e")
        await until(pilot, lambda: "There is no rule to edit. a adds one." in " ".join(words(app).split()))
        await pilot.press("a", *"shell: make **", "enter")
        await until(pilot, lambda: "e edit" in words(app) and "/ find" in words(app))
