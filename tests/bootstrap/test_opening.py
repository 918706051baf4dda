"""Sessions open whatever the settings say of models; what is wrong is told with its remedy. And what flags are about."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import msgspec
import pytest

from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.lazy_program import LazyProgram
from ctxchat.bootstrap.program import Program
from ctxchat.config.effective import load_settings
from ctxchat.core.errors import UsageError
from ctxchat.core.events import Notice
from ctxchat.models.client import ModelClient
from ctxchat.storage.database import Database
from ctxchat.storage.index import MISSED
from ctxchat.tui.services import Services


def program(tmp_path: Path, toml: str, flags: Flags | None = None) -> Program:
    tmp_path.joinpath("config.toml").write_text(toml)
    environ = {"CTXCHAT_CONFIG_DIR": str(tmp_path), "CTXCHAT_DATA_DIR": str(tmp_path)}
    return Program(flags or Flags(), load_settings(tmp_path, environ=environ), tmp_path, Database(tmp_path / "data"))


async def test_a_summary_model_nobody_serves_costs_a_notice_and_no_session(tmp_path: Path) -> None:
    made = program(tmp_path, '[context.summary_model]\nname = "nobdy/x"\n')
    session = await made.open()
    assert any("context.summary_model.name" in text and "nobdy" in text for text in session.notices)
    [event async for event in session.send("hello")]
    await session.close()
    assert [row.messages for row in await made.sessions()] == [2]
    await made.close()


async def test_a_memory_file_that_is_not_used_whole_is_told_once(tmp_path: Path) -> None:
    tmp_path.joinpath("AGENTS.md").write_text("Use tabs. " * 20_000)
    made = program(tmp_path, "")
    session = await made.open()
    stamped = [event async for event in session.send("hello")] + [event async for event in session.send("again")]
    told = [one.event.text for one in stamped if isinstance(one.event, Notice)]
    assert len([text for text in told if "AGENTS.md" in text and "only its first 100 kB are used" in text]) == 1
    await session.close()
    await made.close()


async def test_a_model_nobody_serves_leaves_somebody_to_choose_another(tmp_path: Path) -> None:
    made = program(tmp_path, 'model = "antropic/claude-x"\n')
    session = await made.open()
    assert session.context_usage.model == "offline/assistant"
    assert any("anthropic/claude-x" in text and "/model" in text for text in session.notices)
    await session.close()
    with pytest.raises(UsageError):
        await made.open(interactive=False)
    assert not await made.sessions(), "what cannot be opened leaves nothing behind"
    await made.close()


async def test_flags_are_about_the_model_of_the_flags_and_no_other(tmp_path: Path) -> None:
    toml = '[models."openai/mine"]\nfallback = "openai/other"\n[models."openai/other"]\napi_base = "http://b/v1"\n'
    flags = Flags(model="openai/mine", api_base="http://a/v1", window=9000)
    made = program(tmp_path, toml, flags)
    first, other, hosted = (made.model(name) for name in ("", "openai/other", "openai/gpt-5-mini"))
    assert all(isinstance(model, ModelClient) for model in (first, other, hosted))
    assert [m.settings.api_base for m in (first, other, hosted)] == ["http://a/v1", "http://b/v1", ""]  # type: ignore[union-attr]
    assert (await first.window()).tokens == 9000 and (await hosted.window()).tokens != 9000
    await made.close()


@pytest.mark.parametrize(("window", "source"), [(200_000, "configured"), (0, "catalogue")])
async def test_the_window_is_known_before_the_first_look(tmp_path: Path, window: int, source: str) -> None:
    made = program(tmp_path, "", Flags(model="openai/gpt-4o", window=window))
    session = await made.open()
    assert (session.context_usage.window, session.context_usage.window_source) == (window or 128_000, source)
    await session.close()
    await made.close()


async def test_what_is_missing_of_the_store_is_said_when_a_session_opens(tmp_path: Path) -> None:
    made = program(tmp_path, "")
    with made.database.transaction() as connection:
        connection.execute("INSERT INTO meta VALUES (?, '3')", (MISSED,))
    session = await made.open()
    assert any("what was written last is missing" in text for text in session.notices)
    await session.close()
    await made.close()


async def test_who_only_reads_takes_a_session_from_nobody(tmp_path: Path) -> None:
    made = program(tmp_path, "")
    session = await made.open()
    [event async for event in session.send("hello")]
    await session.close()
    looked = await made.open(session.id, only_read=True)
    written = await made.open(session.id)
    assert looked.read_only and not written.read_only
    assert (await looked.measure()).used == (await written.measure()).used
    await looked.close()
    [event async for event in written.send("and again")]
    await written.close()
    await made.close()


async def test_who_only_reads_is_told_the_prices_of_the_chat(tmp_path: Path) -> None:
    """The chat has a Claude keep its cache for an hour, which costs more to write."""
    made = program(tmp_path, "", Flags(model="anthropic/claude-opus-5-5", window=200_000))
    chat = await made.open()
    await chat.changes.memo("tide", "It reports every ninety seconds.")
    shown = await chat.measure()
    looking = await made.open(chat.id, interactive=False, only_read=True)
    read = await looking.measure()
    await looking.close()
    await chat.close()
    await made.close()
    assert shown.price.written == 8e-6 and (read.price, read.cache) == (shown.price, shown.cache)


@pytest.mark.parametrize("model", ["", "openai/gpt-4o"])
async def test_what_was_brought_in_is_listed_as_the_gauge_shows_it(tmp_path: Path, model: str) -> None:
    text = "def harbour(tide: int) -> str:\n    return f'{tide:>4} metres'\n" * 200
    file = tmp_path / "chat.json"
    file.write_bytes(msgspec.json.encode([{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}]))
    made = program(tmp_path, "", Flags(model=model, window=100_000))
    session = await made.open(await made.bring_in(file, ""))
    used = (await session.measure()).used
    (row,) = await made.sessions()
    assert (row.used, row.estimated) == (used, True)
    fork = await made.fork(row.id)
    assert {r.used for r in await made.sessions() if r.id == fork} == {used}
    await session.close()
    await made.close()


async def test_what_no_model_can_be_had_for_is_brought_in_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text('[{"role": "user", "content": "hello"}]')
    made = program(tmp_path, 'model = "antropic/claude-x"\n')
    assert await made.bring_in(file, "")
    (row,) = await made.sessions()
    assert row.used > 0 and row.estimated
    await made.close()


def test_what_the_interface_asks_for_is_the_programs_own() -> None:
    verbs = [name for name, one in vars(Services).items() if inspect.iscoroutinefunction(one)]
    own = {name for name in verbs if inspect.iscoroutinefunction(getattr(Program, name, None))}
    of_its_servers = {"switch_server", "log_in_server", "resources", "read_resource"}
    of_its_store = {"may_offer_following", "following_answered"}
    assert set(verbs) - own == of_its_servers | of_its_store
    assert all(hasattr(LazyProgram, name) for name in verbs)


async def test_what_was_closed_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CTXCHAT_CONFIG_DIR", "CTXCHAT_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    lazy = LazyProgram(Flags(cwd=str(tmp_path)))
    on_its_way = asyncio.create_task(lazy.program())
    await asyncio.sleep(0)
    await lazy.close()
    await asyncio.gather(on_its_way, return_exceptions=True)
    with pytest.raises(UsageError, match="being left"):
        await lazy.sessions()
