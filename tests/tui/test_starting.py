"""The beginning on the screen: the first choice of a model, and no messages into nowhere where no session can be opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from ctxchat.config.schema import Settings
from ctxchat.core.errors import StorageError
from ctxchat.models.discovery import FoundModel, Offer
from ctxchat.tui.app import AppFiles, CtxchatApp, Runtime
from ctxchat.tui.chat.asked import AnswerButton
from ctxchat.tui.chat.offers import FirstChoice, foremost, place_lines
from ctxchat.tui.commands import BY_NAME
from ctxchat.tui.panels.help import HelpScreen
from ctxchat.tui.panels.models import ModelsScreen
from ctxchat.tui.panels.sessions import SessionsScreen
from ctxchat.tui.panels.settings import SettingsScreen
from ctxchat.tui.transcript.blocks import NoticeBlock
from ctxchat.tui.unsent.input_history import InputHistory
from ctxchat.tui.widgets.notice import NoticeText
from tests.tui.chatting import THEMES, idle, said, until, words
from tests.tui.fakes import FakeServices, FakeSession

LLAMA = FoundModel(
    "llamafile//home/me/[b]qwen.gguf", "llama.cpp", True, 16_384, "loaded", 0.0, 0.0, "at 127.0.0.1:8080"
)
CLAUDE = FoundModel(
    "anthropic/claude-x", "Anthropic", True, 200_000, "catalogue", 2.0, 10.0, "key in ANTHROPIC_API_KEY"
)


class Moody(FakeServices):
    """Services that cannot open a session until they are mended."""

    broken = True
    waits: asyncio.Event | None = None

    async def open(self, session_id: str = "") -> FakeSession:
        if self.waits:
            await self.waits.wait()
        if self.broken:
            raise StorageError("/data/ctxchat.db cannot be read.", "Move it away.")
        return await super().open(session_id)


class Full(FakeServices):
    """Services with stored sessions that can begin no new one."""

    async def open(self, session_id: str = "") -> FakeSession:
        if not session_id:
            raise StorageError("The disk is full.", "Free some space.")
        return await super().open(session_id)


@asynccontextmanager
async def started(
    tmp_path: Path, services: FakeServices, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    app = CtxchatApp(
        services,
        Settings(),
        THEMES,
        files=AppFiles(settings_file=tmp_path / "config.toml"),
        runtime=Runtime(now=count().__next__),
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        yield app, pilot
        await idle(app, pilot)


def offering(tmp_path: Path, *models: FoundModel, model: str = "offline/assistant") -> FakeServices:
    services = FakeServices(tmp_path, FakeSession(model=model))
    services.offered = tuple(Offer(each, place) for place, each in enumerate(models))
    return services


def banner(app: CtxchatApp) -> str:
    return " ".join(str(block.render()) for block in app.chat.banner.query(NoticeText))


async def test_what_was_found_is_offered_chosen_by_a_key_and_kept(tmp_path: Path) -> None:
    async with started(tmp_path, offering(tmp_path, LLAMA, CLAUDE)) as (app, pilot):
        await until(pilot, lambda: app.query(FirstChoice))
        await pilot.press("2")  # nobody has gone to the question: this is a letter of a message
        assert app.chat.composer.draft == "2" and app.query(FirstChoice)
        await pilot.press("backspace", "tab", "2")
        await until(pilot, lambda: not app.query(FirstChoice))
        await until(pilot, lambda: "From here on anthropic/claude-x answers" in banner(app))
        assert app.controller.open_session().context_usage.model == "anthropic/claude-x"
        assert (tmp_path / "config.toml").read_text() == 'model = "anthropic/claude-x"\n'
        await pilot.press("h", "i", "space", "y")
        assert app.chat.composer.draft == "hi y", "what is typed next is a message"


@pytest.mark.parametrize("size", [(80, 24), (80, 18), (40, 20), (40, 12), (80, 9), (20, 9)])
async def test_neither_notices_nor_the_choice_take_the_composers_place(tmp_path: Path, size: tuple[int, int]) -> None:
    services = offering(tmp_path, LLAMA, CLAUDE, LLAMA, CLAUDE)
    services.notices = [f"config.toml:{n}: context.keep_recnt: is unknown, did you mean keep_recent?" for n in range(9)]
    async with started(tmp_path, services, size) as (app, pilot):
        await until(pilot, lambda: app.query(FirstChoice) and len(app.chat.banner.blocks) == 9)
        await until(pilot, lambda: "/notices" in words(app))
        bottom = size[1] - app.chat.gauge.region.height - app.chat.key_line.region.height
        assert app.chat.composer.region.height > 0 and app.chat.composer.region.bottom <= bottom
        assert app.chat.questions.region.bottom <= app.chat.composer.region.y
        if size[1] >= 18:
            assert "not now" in words(app)


async def test_the_offline_assistant_is_an_answer_too(tmp_path: Path) -> None:
    async with started(tmp_path, offering(tmp_path, LLAMA)) as (app, pilot):
        await until(pilot, lambda: app.query(FirstChoice))
        await pilot.press("tab", "o")
        await until(pilot, lambda: (tmp_path / "config.toml").exists())
        assert (tmp_path / "config.toml").read_text() == 'model = "offline/assistant"\n'


async def test_not_now_and_a_message_both_end_the_question_and_nothing_is_kept(tmp_path: Path) -> None:
    for keys in (("tab", "escape"), ("escape",), ("h", "i", "enter")):
        async with started(tmp_path, offering(tmp_path, LLAMA)) as (app, pilot):
            await until(pilot, lambda: app.query(FirstChoice))
            await pilot.press(*keys)
            await until(pilot, lambda: not app.query(FirstChoice))
            await idle(app, pilot)
            assert app.focused is app.chat.composer.prompt
        assert not (tmp_path / "config.toml").exists()


async def test_a_settings_file_that_cannot_be_written_costs_only_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    async with started(tmp_path, offering(tmp_path, LLAMA)) as (app, pilot):
        await until(pilot, lambda: app.query(FirstChoice))
        await pilot.press("tab", "1")
        await until(pilot, lambda: "could not be kept" in banner(app))
        assert app.controller.open_session().context_usage.model == LLAMA.name


async def test_of_a_session_that_has_a_model_nothing_is_asked_or_said(tmp_path: Path) -> None:
    services = offering(tmp_path, LLAMA, model="anthropic/claude-x")
    services.note = "said"
    async with started(tmp_path, services) as (app, pilot):
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert not app.query(FirstChoice) and "said" not in banner(app)


def test_a_place_in_words() -> None:
    (words,) = place_lines([Offer(LLAMA, 2)])
    assert "[b]qwen.gguf +2" in words and "16.4k window" in words and "$" not in words
    assert "$2 / $10 per M" in place_lines([Offer(CLAUDE)])[0]


async def test_the_places_stand_in_columns(tmp_path: Path) -> None:
    small = msgspec.structs.replace(LLAMA, name="openai/qwen3-coder-30b-instruct.gguf", provider="LM Studio", window=0)
    async with started(tmp_path, offering(tmp_path, LLAMA, small, CLAUDE)) as (app, pilot):
        await until(pilot, lambda: app.query(FirstChoice))
        lines = [str(a.render()) for a in app.query(AnswerButton)][:3]
        assert {line.index(name) for line, name in zip(lines, ("[b]qwen", "qwen3-c", "claude-x"), strict=True)} == {16}
        assert lines[0].index("k window") == lines[2].index("k window")
        assert lines[0].index("at 127") == lines[1].index("at 127") == lines[2].index("$2 / $10")
        assert {
            str(a.render()).index(word)
            for a, word in zip(app.query(AnswerButton), ("llama", "LM", "Anth", "the", "all", "not"), strict=True)
        } == {5}


def test_an_account_is_offered_however_many_servers_run_here() -> None:
    served = [Offer(msgspec.structs.replace(LLAMA, api_base=f"http://127.0.0.1:{port}/v1")) for port in range(5)]
    assert foremost([*served, Offer(CLAUDE)]) == (*served[:3], Offer(CLAUDE))
    assert foremost(served) == tuple(served[:4])
    assert foremost([Offer(CLAUDE)] * 2) == (Offer(CLAUDE),) * 2


async def test_without_a_session_nothing_is_taken_and_the_remedy_is_in_sight(tmp_path: Path) -> None:
    services = Moody(tmp_path, FakeSession())
    async with started(tmp_path, services) as (app, pilot):
        await until(pilot, lambda: "Move it away." in banner(app) and "/new" in banner(app))
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: "Nothing was sent" in said(app, NoticeBlock))
        assert app.chat.composer.draft == "hello" and not services.first.sent
        services.broken = False
        app.chat.composer.set_draft("/new")
        await pilot.press("enter")
        await until(pilot, lambda: app.session is not None)
        assert banner(app) == "" and services.warmed
        await pilot.press(*"again", "enter")
        await until(pilot, lambda: services.first.sent == ["again"])


async def test_without_a_session_help_settings_and_the_stored_ones_are_in_reach(tmp_path: Path) -> None:
    services = Full(tmp_path, FakeSession(id="s7", title="The harbour"))
    async with started(tmp_path, services) as (app, pilot):
        await until(pilot, lambda: app.controller.trouble)
        await pilot.press(*"my draft")
        for key, screen in (("f1", HelpScreen), ("f12", SettingsScreen), ("f9", SessionsScreen)):
            await pilot.press(key)
            await until(pilot, lambda screen=screen: isinstance(app.screen, screen))
            await pilot.press(*(["escape"] if key != "f9" else []))
        await until(pilot, lambda: "The harbour" in words(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.session is not None and app.session.id == "s7")
        assert not app.controller.trouble and app.chat.composer.draft == "my draft"
        await until(pilot, lambda: services.warmed)


async def test_a_draft_without_a_session_is_in_the_history_else_in_the_terminal(tmp_path: Path) -> None:
    for file in (tmp_path / "history.jsonl", tmp_path / "no folder" / "history.jsonl"):
        (tmp_path / "no folder").write_text("")
        app = CtxchatApp(
            Full(tmp_path, FakeSession()),
            Settings(),
            THEMES,
            files=AppFiles(history_file=file),
            runtime=Runtime(now=count().__next__),
        )
        async with app.run_test() as pilot:
            await until(pilot, lambda app=app: app.controller.trouble)
            await pilot.press(*"my draft")
            assert await app.controller.close(app.workers) == ("" if file.parent == tmp_path else "my draft", [])
    assert InputHistory(tmp_path / "history.jsonl").back("") == "my draft"


async def test_what_was_typed_while_the_store_was_opened_comes_back(tmp_path: Path) -> None:
    services = Moody(tmp_path, FakeSession())
    services.waits = asyncio.Event()
    async with started(tmp_path, services) as (app, pilot):
        await pilot.press(*"early", "enter")
        assert app.chat.composer.draft == ""
        services.waits.set()
        await until(pilot, lambda: app.chat.composer.draft == "early")
        assert "Move it away." in banner(app)


async def test_the_list_of_models_says_which_one_sessions_begin_with_and_changes_that(tmp_path: Path) -> None:
    async with started(tmp_path, FakeServices(tmp_path, FakeSession())) as (app, pilot):
        await until(pilot, lambda: app.session is not None)
        before = app.controller.open_session().context_usage.model
        app.run_command(BY_NAME["model"])
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen) and app.screen.rows.current is not None)
        name = app.screen.rows.current.name  # type: ignore[attr-defined]
        await pilot.press("d")
        await until(pilot, lambda: (tmp_path / "config.toml").exists())
        assert (tmp_path / "config.toml").read_text() == f'model = "{name}"\n'
        assert isinstance(app.screen, ModelsScreen) and app.controller.open_session().context_usage.model == before
        await pilot.press("escape")
