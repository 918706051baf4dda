"""What was masked, on screen: listed with where it was met, shown while it is held, allowed in the person's own settings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from ctxchat.config.effective import load_settings
from ctxchat.core.messages import Message, Text, ToolCall
from ctxchat.importing.outcome import ImportNews
from ctxchat.tui.app import AppFiles
from ctxchat.tui.panels.secrets import OriginalScreen, SecretsScreen
from ctxchat.tui.widgets.rows import Rows
from tests.doubles.planted import planted
from tests.tui.chatting import HOSTILE, chatting, until, words
from tests.tui.fakes import FakeServices, FakeSession

KEYS = {each.kind: each for each in planted(5)}
OF_BEFORE = "[masked API key #0123abcd]"


class Stage:
    """A session in which a file, an attachment and an earlier start brought secrets, over settings of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "config.toml"
        self.session = FakeSession()
        self.services = FakeServices(folder, self.session)
        self.environ = {"CTXCHAT_CONFIG_DIR": str(folder), "CTXCHAT_DATA_DIR": str(folder / "data")}

    def fill(self) -> list[str]:
        """Ids of what was masked."""
        mask = self.services.masking
        call = ToolCall("c1", "read_file", '{"path": "settings [bold].env"}')
        self.session = FakeSession(
            messages=[
                Message(1, "user", (Text("look at it"), Text(mask(KEYS["PEM"].text), f"key {HOSTILE}.pem"))),
                Message(2, "assistant", calls=(call,)),
                Message(3, "tool", f"{mask(KEYS['Anthropic'].text)} and {OF_BEFORE}", call_id="c1"),
                Message(4, "assistant", f"There is {OF_BEFORE}."),
            ]
        )
        self.services.first = self.session
        return list(mask.seen)

    @asynccontextmanager
    async def opened(self, size: tuple[int, int] = (100, 30)) -> AsyncIterator[tuple[Any, Any]]:
        reader = partial(load_settings, config=self.file, environ=self.environ, known=lambda _: ())
        self.file.touch()
        more = {"files": AppFiles(load_settings=reader, settings_file=self.file), "services": self.services}
        async with chatting(self.file.parent, self.session, size, **more) as (app, pilot):
            await pilot.press(*"/secrets", "enter")
            await until(pilot, lambda: any(rows.filled for rows in app.screen.query(Rows)))
            yield app, pilot
            while app.screen is not app.chat:
                await pilot.press("escape")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def said(pilot: Any, words: str) -> None:
    await until(pilot, lambda: any(words in n.message for n in pilot.app._notifications))


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (20, 8)])
async def test_each_is_listed_and_shown_while_it_is_held(stage: Stage, size: tuple[int, int]) -> None:
    pem, anthropic = stage.fill()
    async with stage.opened(size) as (app, pilot):
        assert f"#{pem}" in words(app) and f"#{anthropic}" in words(app) and "#0123abcd" in words(app)
        assert "a allow" in words(app) or size[0] == 20
        if size[0] == 80:
            assert "read_file settings [bold].env (m3)" in words(app) and "3 secrets masked" in words(app)
        assert KEYS["Anthropic"].secret not in words(app)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, OriginalScreen))
        assert KEYS["Anthropic"].secret[:10] in words(app).replace("\n", "")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SecretsScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, OriginalScreen))
        assert "before this" in words(app) or size[0] == 20
        assert "read_file" in str(app.screen.query_one("#original").render())


async def test_a_false_alarm_is_written_told_and_taken_back(stage: Stage) -> None:
    pem, anthropic = stage.fill()
    stage.file.write_text('# mine\n[secrets]\nallow = ["demo-*"] # harmless\n')
    async with stage.opened() as (app, pilot):
        await pilot.press("a")
        await said(pilot, f'Written: "{pem}" in secrets.allow')
        assert stage.file.read_text() == f'# mine\n[secrets]\nallow = ["demo-*", "{pem}"] # harmless\n'
        await until(pilot, lambda: "allowed" in words(app).split(pem)[1].split("\n")[0])
        await pilot.press("a")
        await said(pilot, f"{pem} was taken out")
        assert 'allow = ["demo-*"]' in stage.file.read_text()
    stage.file.write_text(f'[secrets]\nallow = ["{KEYS["Anthropic"].secret[:8]}*"]\n')
    async with stage.opened() as (app, pilot):
        app.screen.query_one(Input).value = anthropic
        await until(pilot, lambda: len(app.screen.rows.items) == 1)
        await pilot.press("a")
        await said(pilot, "allows it already")
        assert anthropic not in stage.file.read_text()


async def test_a_file_that_cannot_be_edited_is_said_and_left_alone(stage: Stage) -> None:
    stage.fill()
    stage.file.write_text("[secrets\n")
    async with stage.opened() as (_, pilot):
        await pilot.press("a")
        await said(pilot, "is not valid TOML")
    assert stage.file.read_text() == "[secrets\n"


async def test_an_export_is_masked_and_for_its_owner_only(tmp_path: Path) -> None:
    session = FakeSession(messages=[Message(1, "user", f"use {KEYS['Anthropic'].secret} and tell nobody")])
    async with chatting(tmp_path, session) as (_, pilot):
        await pilot.press(*"/export out.md", "enter")
        await until(pilot, (tmp_path / "out.md").exists)
        await until(pilot, lambda: "nobody" in (tmp_path / "out.md").read_text())
    text = (tmp_path / "out.md").read_text()
    assert "use [masked " in text and KEYS["Anthropic"].secret[:24] not in text
    assert (tmp_path / "out.md").stat().st_mode & 0o777 == 0o600


async def test_an_export_goes_to_a_folder_of_the_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home := tmp_path / "home"))
    home.mkdir()
    async with chatting(tmp_path, FakeSession(messages=[Message(1, "user", "hello")])) as (_, pilot):
        await pilot.press(*"/export ~/out.md", "enter")
        await until(pilot, (home / "out.md").exists)


async def test_a_folder_of_a_person_nobody_knows_is_only_a_path(tmp_path: Path) -> None:
    class Asked(FakeServices):
        async def importing(self, path: Path | None = None) -> AsyncGenerator[ImportNews, None]:
            asked.append(path)
            async for news in super().importing(path):
                yield news

    asked: list[Path | None] = []
    services = Asked(tmp_path, session := FakeSession(messages=[Message(1, "user", "hello")]))
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        await pilot.press(*"/import ~nobody-of-that-name/a", "enter")
        await until(pilot, lambda: asked == [tmp_path / "~nobody-of-that-name/a"])
        await pilot.press(*"/export ~nobody-of-that-name/a.md", "enter")
        await until(pilot, lambda: "No such file or directory" in " ".join(words(app).split()))


@pytest.mark.parametrize("size", [(80, 24), (40, 20)])
async def test_where_nothing_was_masked_it_says_so(stage: Stage, size: tuple[int, int]) -> None:
    async with stage.opened(size) as (app, pilot):
        assert "Nothing was masked in this session." in words(app)
        await pilot.press("enter", "a")
        await pilot.pause()
        assert isinstance(app.screen, SecretsScreen)
