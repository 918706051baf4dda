"""Settings saved while the program runs: put in force, told, and refused where they are broken."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ctxchat.config import trust
from ctxchat.config.effective import Loaded, load_settings
from ctxchat.config.themes import load_themes
from ctxchat.core.cache_state import CacheState, Hold, NextCall
from ctxchat.tools.mcp.server import ServerRow
from ctxchat.tui.app import AppFiles, CtxchatApp, Runtime
from ctxchat.tui.panels.help import HelpScreen
from ctxchat.tui.panels.keys import AskKey, KeysScreen
from ctxchat.tui.panels.panel import Confirm
from ctxchat.tui.panels.settings import SettingsScreen
from ctxchat.tui.panels.themes import ThemesScreen
from ctxchat.tui.widgets.rows import Rows
from tests.tui.chatting import until
from tests.tui.fakes import FakeServices, FakeSession


class Home:
    """A person's settings folder and a workspace, with the app over them."""

    def __init__(self, folder: Path) -> None:
        self.config, self.work = folder / "config", folder / "work"
        self.config.mkdir()
        self.work.mkdir()
        self.file = self.config / "config.toml"
        self.environ = {"CTXCHAT_CONFIG_DIR": str(self.config), "CTXCHAT_DATA_DIR": str(folder / "data")}
        self.session = FakeSession()
        self.services = FakeServices(self.work, self.session)

    def load(self) -> Loaded:
        return load_settings(self.work, environ=self.environ, known=lambda _: ())

    def app(self) -> CtxchatApp:
        loaded = self.load()
        return CtxchatApp(
            self.services,
            loaded.settings,
            load_themes(self.config).themes,
            files=AppFiles(
                loaded=loaded, load_settings=self.load, settings_file=self.file, settings_folder=self.config
            ),
            runtime=Runtime(now=count().__next__),
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def saved(pilot: Any, home: Home, text: str | bytes, file: Path | None = None) -> str:
    """Save a file, have it noticed, and what is told about it."""
    file = file or home.file
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    await pilot.app.edits.glance()
    await pilot.pause()
    return told(pilot.app)


def told(app: Any) -> str:
    return "\n".join(n.message for n in app._notifications)


@asynccontextmanager
async def run(home: Home) -> AsyncGenerator[Any, None]:
    """The app with its session open."""
    async with home.app().run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: pilot.app.session is not None)
        await pilot.app.workers.wait_for_complete()
        yield pilot


async def test_an_edit_counts_at_once_and_is_told(home: Home) -> None:
    async with run(home) as pilot:
        app = pilot.app
        words = await saved(
            pilot, home, 'theme = "nord"\n[context]\ncompression_trigger = 0.8\n[keys]\nhelp = "f1,f11"\n'
        )
        assert words.splitlines() == [
            "theme dark → nord",
            "compression_trigger 0.75 → 0.8",
            "keys.help f1 → f1, f11",
        ]
        assert app.theme == "nord" and app.settings.context.compression_trigger == 0.8
        assert home.services.adopted[-1].settings.context.compression_trigger == 0.8 and home.session.adapted == 1
        await pilot.press("f11")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))


async def test_an_edit_does_not_wait_for_a_server_on_its_way(home: Home) -> None:
    async with run(home) as pilot:
        home.services.mcp = (ServerRow("slow", "starting", (), "", "slow-server"),)
        assert "theme dark → nord" in await asyncio.wait_for(saved(pilot, home, 'theme = "nord"\n'), 60)
        home.services.mcp = ()


async def test_what_counts_later_says_so(home: Home) -> None:
    async with run(home) as pilot:
        words = await saved(pilot, home, 'agent = "a"\n[interface]\nmouse = false\n[agents.a]\nprompt = "x"\n')
        assert 'agent "" → a, from the next session on' in words
        assert "interface.mouse true → false, from the next start on" in words


async def test_a_broken_save_keeps_the_last_good_settings_and_names_its_line(home: Home) -> None:
    home.file.write_text("[context]\nkeep_recent = 9\n")
    async with run(home) as pilot:
        words = await saved(pilot, home, "[context]\nkeep_recent = 9\nkeep_recnt = 3\n")
        assert words == (
            "config.toml:3: context.keep_recnt: is unknown, did you mean keep_recent?\n"
            "Not applied: the last good settings stay."
        )
        assert pilot.app.settings.context.keep_recent == 9 and home.services.adopted == []
        assert "not valid TOML" in await saved(pilot, home, "[context\n")
        assert "whole again" in await saved(pilot, home, "[context]\nkeep_recent = 9 # \n")
        assert await saved(pilot, home, "[context]\nkeep_recent = 7\n") == "keep_recent 9 → 7"
        assert pilot.app.settings.context.keep_recent == 7


async def test_a_key_that_cannot_work_and_a_theme_nobody_has_are_told_beside_the_rest(home: Home) -> None:
    async with run(home) as pilot:
        words = await saved(pilot, home, 'theme = "nrd"\n[context]\nkeep_recent = 5\n[keys]\nhelp = "ctrl+a"\n')
        assert "config.toml:5: keys.help: ctrl+a is taken by the message editor" in words
        assert "config.toml:1: theme: there is no theme 'nrd', did you mean nord?" in words
        assert "keep_recent 12 → 5" in words and pilot.app.settings.context.keep_recent == 5
        assert pilot.app.theme == "dark"


async def test_a_trusted_projects_file_and_trust_itself_count_at_once(home: Home) -> None:
    project = home.work / ".ctxchat" / "config.toml"
    async with run(home) as pilot:
        words = await saved(pilot, home, 'permissions.mode = "all"\ncontext.keep_recent = 5\n', project)
        assert words == "" and pilot.app.settings.permissions.mode == "ask"
        trust.trust(home.config, home.work, home.load().project)
        await pilot.app.edits.glance()
        await pilot.pause()
        assert "permissions.mode ask → all" in told(pilot.app) and "keep_recent 12 → 5" in told(pilot.app)
        assert pilot.app.settings.permissions.mode == "all"
        assert "config.toml:1" in await saved(pilot, home, "permissions.mod = 1\n", project)
        assert pilot.app.settings.permissions.mode == "all"


async def test_trusted_settings_that_change_are_out_of_force_until_they_were_looked_at(home: Home) -> None:
    project = home.work / ".ctxchat" / "config.toml"
    hook = '[[hooks]]\nevent = "turn_started"\naction = "run"\ncommand = "{}"\n'
    async with run(home) as pilot:
        app = pilot.app
        await saved(pilot, home, hook.format("make lint"), project)
        trust.trust(home.config, home.work, home.load().project)
        await app.edits.glance()
        assert len(app.settings.hooks) == 1
        words = await saved(pilot, home, 'permissions.mode = "all"\n' + hook.format("evil"), project)
        assert words == "hooks 1 → 0" and app.settings.permissions.mode == "ask" and app.settings.hooks == ()
        await pilot.press("alt+y")
        await until(pilot, lambda: app.screen is not app.chat and app.screen.query("Static"))
        shown = "\n".join(str(w.render()) for w in app.screen.query("Static"))
        assert "changed since you trusted them" in shown and '+ permissions.mode = "all"' in shown
        assert "+ hook at turn_started: runs evil" in shown and "− hook at turn_started: runs make lint" in shown
        await pilot.press("n")
        await app.workers.wait_for_complete()
        assert app.settings.permissions.mode == "ask" and app.settings.hooks == ()


async def test_a_script_that_trusted_settings_name_ends_the_trust_when_it_changes(home: Home) -> None:
    project, script = home.work / ".ctxchat" / "config.toml", home.work / "serve.py"
    script.write_text("good")
    async with run(home) as pilot:
        await saved(pilot, home, '[mcp.x]\ncommand = "python"\nargs = ["serve.py"]\n', project)
        trust.trust(home.config, home.work, home.load().project)
        await pilot.app.edits.glance()
        assert list(pilot.app.settings.mcp) == ["x"]
        assert await saved(pilot, home, "evil", script) == "mcp.x is gone"
        assert not pilot.app.settings.mcp


async def test_a_theme_being_written_changes_the_screen_with_each_save(home: Home) -> None:
    theme = home.config / "themes" / "mine.toml"
    colours = 'background = "{}"\nforeground = "#ffffff"\nprimary = "#ff8800"\n'
    async with run(home) as pilot:
        await saved(pilot, home, colours.format("#102030"), theme)
        await saved(pilot, home, 'theme = "mine"\n')
        before = pilot.app.theme_variables["background"]
        assert pilot.app.theme == "mine" and before == "#102030"
        signs = "[patterns]\nsystem = 'x'\n"
        await saved(pilot, home, colours.format("#302010") + signs, theme)
        await until(pilot, lambda: pilot.app.theme_variables["background"] != before)
        assert pilot.app.get_theme("mine").background == "#302010"
        assert pilot.app.theme_variables["gauge-sign-system"] == str(ord("x"))
        words = await saved(pilot, home, 'background = "#fff"\n', theme)
        assert "themes/mine.toml: foreground: is missing" in words and pilot.app.theme == "mine"


async def test_the_settings_screen_follows_edits_from_elsewhere(home: Home) -> None:
    async with run(home) as pilot:
        pilot.app.push_screen(SettingsScreen(home.load(), home.load, home.file, home.session))
        await pilot.pause()
        await saved(pilot, home, "[context]\nkeep_recent = 5\n")
        row = next(r for r in pilot.app.screen.query_one(Rows).items if r.key == "context.keep_recent")
        assert row.value == 5


async def test_themes_are_worn_while_the_cursor_is_on_them_and_kept_with_enter(home: Home) -> None:
    async with run(home) as pilot:
        app = pilot.app
        await pilot.press("alt+t")
        await until(pilot, lambda: isinstance(app.screen, ThemesScreen))
        assert set(app.screen.query_one(Rows).items) == set(load_themes().themes)
        await pilot.press("down")
        await until(pilot, lambda: app.theme == "dawn")
        await pilot.press("escape")
        await until(pilot, lambda: app.theme == "dark")
        assert not home.file.exists()
        await pilot.press("alt+t", "down", "enter")
        await app.workers.wait_for_complete()
        assert app.theme == "dawn" and home.file.read_text() == 'theme = "dawn"\n'
        assert told(app) == "theme dark → dawn"


async def test_a_key_is_pressed_to_be_kept_and_counts_at_once(home: Home) -> None:
    home.file.write_text("# mine\n")
    async with run(home) as pilot:
        app = pilot.app
        await pilot.press("alt+k")
        await until(pilot, lambda: isinstance(app.screen, KeysScreen))
        rows = app.screen.query_one(Rows)
        app.screen.rows.cursor = [a.id for a in rows.items].index("flight")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AskKey))
        await pilot.press("ctrl+a")  # the editor's own: refused, asked again
        assert isinstance(app.screen, AskKey)
        await pilot.press("shift+f3")  # terminals send it as something else
        assert isinstance(app.screen, AskKey)
        await pilot.press("f11")
        await until(pilot, lambda: isinstance(app.screen, KeysScreen) and home.file.read_text() != "# mine\n")
        assert home.file.read_text() == '# mine\n\n[keys]\nflight = ["f11"]\n'
        await pilot.press("escape")
        await until(pilot, lambda: app.keys["flight"] == ("f11",) and told(app) == "keys.flight alt+l → f11")


async def test_what_trust_would_run_is_shown_before_it_is_given(home: Home) -> None:
    project = home.work / ".ctxchat" / "config.toml"
    project.parent.mkdir()
    project.write_text(
        'permissions.mode = "all"\n[[hooks]]\nevent = "error"\naction = "run"\ncommand = "make [bold]lint"\n'
    )
    async with run(home) as pilot:
        app = pilot.app
        await pilot.press("alt+y")
        await until(pilot, lambda: app.screen is not app.chat and app.screen.query("Static"))
        shown = "\n".join(str(w.render()) for w in app.screen.query("Static"))
        assert "hook at error: runs make [bold]lint" in shown and 'permissions.mode = "all"' in shown
        await pilot.press("n")
        await app.workers.wait_for_complete()
        assert app.settings.permissions.mode == "ask"


async def test_a_key_that_starts_something_else_can_be_given_to_another_action(home: Home) -> None:
    async with run(home) as pilot:
        app = pilot.app
        await pilot.press("alt+k")
        await until(pilot, lambda: isinstance(app.screen, KeysScreen))
        await pilot.press("enter")  # the first: send the message
        await until(pilot, lambda: isinstance(app.screen, AskKey))
        await pilot.press("f3")
        await until(pilot, home.file.exists)
        assert home.file.read_text() == '[keys]\nsend = ["f3"]\n'
        await until(pilot, lambda: isinstance(app.screen, KeysScreen))
        await pilot.press("escape")
        await app.workers.wait_for_complete()
        assert app.keys["send"] == ("f3",) and app.keys["archive"] == ()
        await until(pilot, lambda: "keys.send: f3 was the key of archive, which has it no longer" in told(app))


async def test_an_edited_file_that_has_requests_begin_anew_waits_until_it_is_asked_about(home: Home) -> None:
    home.file.write_text("[tools]\nweb = true\n")
    home.session.cache = CacheState((Hold(9_000, time.time() + 3_000, length=99),), "cold", NextCall(0.4))
    async with run(home) as pilot:
        said = await saved(pilot, home, "[tools]\nweb = false\n[context]\nkeep_recent = 5\n")
        assert "keep_recent 12 → 5" in said and "tools.web true → false, with the next compaction" in said
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        assert home.session.deferred.settings == {"tools.web": True}
        await pilot.press("w")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Confirm))
        assert home.session.deferred.settings == {"tools.web": True}
        await saved(pilot, home, "[tools]\nweb = true\n")
        assert not home.session.deferred, "it holds here all the time: nothing is asked"
        assert not isinstance(pilot.app.screen, Confirm)


async def test_an_edited_file_counts_at_once_where_the_person_says_so(home: Home) -> None:
    home.session.cache = CacheState((Hold(9_000, time.time() + 3_000, length=99),), "cold", NextCall(0.4))
    async with run(home) as pilot:
        await saved(pilot, home, "[tools]\nweb = false\n")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        adapted = home.session.adapted
        pilot.app.screen.action_say(True)
        await until(pilot, lambda: not home.session.deferred and home.session.adapted > adapted)
