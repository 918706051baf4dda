"""A session keeps its model and the address it was asked at, whatever the settings name when it is gone on with."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.program import Program
from ctxchat.config.effective import Loaded, load_settings
from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.events import TextDelta
from ctxchat.core.journal import ModelChosen, Named
from ctxchat.storage import loading, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.private_files import session_folder
from tests.bootstrap.scripted_program import program as scripted
from tests.bootstrap.scripted_program import say
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import says
from tests.doubles.scripted import calls, hangs


def settings(folder: Path, model: str, address: str) -> Loaded:
    folder.joinpath("config.toml").write_text(
        f'model = "{model}"\n'
        + "".join(f'[models."openai/{m}"]\napi_base = "{address}"\n' for m in ("first", "second"))
    )
    return load_settings(folder, environ={"CTXCHAT_CONFIG_DIR": str(folder), "CTXCHAT_DATA_DIR": str(folder / "data")})


@asynccontextmanager
async def program(folder: Path, model: str, address: str):
    made = Program(Flags(), settings(folder, model, address), folder, Database(folder / "data"))
    try:
        yield made
    finally:
        await made.close()


async def asked(made: Program, session: str = "", **how: bool) -> str:
    """One message in a session; the session's id."""
    opened = await made.open(session, **how)
    await say(opened, "hello")
    await opened.close()
    return opened.id


async def test_the_model_and_its_address_stay_and_a_flag_wins_and_is_remembered(tmp_path: Path) -> None:
    async with (
        ModelDouble([says("One.")]) as one,
        ModelDouble([says("Two.")]) as two,
        program(tmp_path, "openai/first", one.base_url) as made,
    ):
        session = await asked(made)
        made.adopt(settings(tmp_path, "openai/second", two.base_url))
        await asked(made, session)
        await asked(made, session, interactive=False)
        assert [seen.body["model"] for seen in one.requests] == ["first"] * 3 and not two.requests
        made.flags = Flags(model="openai/second")
        await asked(made, session)
        made.flags = Flags()
        made.adopt(settings(tmp_path, "openai/first", one.base_url))
        await asked(made, session)
        assert [seen.body["model"] for seen in two.requests] == ["second"] * 2 and len(one.requests) == 3


async def test_a_model_that_nobody_serves_any_more_is_said_and_not_replaced_behind_ones_back(tmp_path: Path) -> None:
    async with program(tmp_path, "offline/assistant", "") as made:
        session = await made.database.run(
            lambda: sessions.create(made.database, records=[Named("kept")], model="nobody/knows")
        )
        await made.database.run(lambda: sessions.append(made.database, session, ModelChosen("nobody/knows", "")))
        with pytest.raises(UsageError, match="nobody"):
            await made.open(session, interactive=False)
        opened = await made.open(session)
        assert any("nobody" in notice and "/model" in notice for notice in opened.notices)
        assert opened.context_usage.model == "offline/assistant" and opened.state.model == "nobody/knows"
        await opened.close()


async def test_one_that_was_opened_and_left_leaves_nothing(tmp_path: Path) -> None:
    async with program(tmp_path, "offline/assistant", "") as made:
        await (await made.open()).close()
        assert not await made.sessions()


async def test_with_a_session_go_its_sub_agents_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("The retry limit is 7.\n")
    async with program(tmp_path, "offline/assistant", "") as made:
        session = await made.open()
        await say(session, "delegate: what is the retry limit?")
        await session.close()
        branch = await made.fork(session.id)
        other = await made.open()
        await say(other, "hello")
        await other.close()
        below = [row.id for row in await made.sessions() if row.delegated]
        assert below and all(session_folder(made.database.folder, id).exists() for id in below)
        await made.delete(session.id)
        assert {row.id for row in await made.sessions()} == {branch, other.id}
        assert not any(session_folder(made.database.folder, id).exists() for id in (*below, session.id))
        with pytest.raises(StorageError):
            await made.database.run(sessions.row, made.database, below[0])


def edited(folder: Path, address: str, more: str) -> Loaded:
    """As `settings` for a second model, with another line about the first."""
    settings(folder, "openai/second", address)
    file, head = folder / "config.toml", '[models."openai/first"]\n'
    file.write_text(file.read_text().replace(head, f"{head}{more}\n"))
    return load_settings(folder, environ={"CTXCHAT_CONFIG_DIR": str(folder), "CTXCHAT_DATA_DIR": str(folder / "data")})


async def test_editing_the_models_settings_leaves_it_where_it_is_unless_its_address_was_edited(tmp_path: Path) -> None:
    async with (
        ModelDouble([says("One.")]) as one,
        ModelDouble([says("Two.")]) as two,
        program(tmp_path, "openai/first", one.base_url) as made,
    ):
        session = await asked(made)
        made.adopt(settings(tmp_path, "openai/second", two.base_url))  # while it was closed
        opened = await made.open(session)
        made.adopt(edited(tmp_path, two.base_url, "window = 50000"))
        await opened.setup.adapt()
        await say(opened, "hello")
        assert opened.context_usage.window == 50_000 and len(one.requests) == 2 and not two.requests
        made.adopt(edited(tmp_path, f"{two.base_url}/", "window = 50000"))  # now, for this session to see
        await opened.setup.adapt()
        await say(opened, "hello")
        assert len(one.requests) == 2 and [seen.body["model"] for seen in two.requests] == ["first"]
        await opened.close()
        made.adopt(settings(tmp_path, "openai/second", one.base_url))
        await asked(made, session)
        assert len(two.requests) == 2, "where it was asked last is where it is asked"


async def test_flags_stay_with_the_model_they_are_about_when_settings_are_edited(tmp_path: Path) -> None:
    async with (
        ModelDouble([says("One.")]) as one,
        ModelDouble([says("Two.")]) as two,
        program(tmp_path, "openai/first", one.base_url) as made,
    ):
        session = await asked(made)
        made.flags = Flags(api_base=two.base_url, window=40_000)
        made.adopt(settings(tmp_path, "openai/second", one.base_url))
        opened = await made.open(session)
        made.adopt(edited(tmp_path, one.base_url, "timeout = 60"))
        await opened.setup.adapt()
        await say(opened, "hello")
        assert opened.context_usage.window == 40_000 and len(two.requests) == 1
        await opened.setup.switch_model("openai/second")
        await say(opened, "hello")
        assert len(two.requests) == 1 and one.requests[-1].body["model"] == "second"
        await opened.close()


async def test_an_address_with_a_login_is_not_kept_and_nobody_else_is_asked_instead(tmp_path: Path) -> None:
    async with program(tmp_path, "openai/first", "http://me:word@127.0.0.1:9/v1") as made:
        opened = await made.open()
        await opened.rename("kept")
        await opened.close()
        state = (await made.database.run(loading.load_state, made.database, opened.id)).state
        assert state.model == "openai/first" and state.address is None, "not empty: that is the provider's own"
    assert not any(b"me:word" in file.read_bytes() for file in (tmp_path / "data").glob("*.db*"))


async def test_that_a_session_is_of_another_folder_is_told_with_the_way_there(tmp_path: Path) -> None:
    async with ModelDouble([says("One.")]) as model:
        async with program(tmp_path, "openai/first", model.base_url) as made:
            session = await asked(made)
            again = await made.open(session)
            assert not again.notices
            await again.close()
        (other := tmp_path / "other").mkdir()
        loaded = settings(tmp_path, "openai/first", model.base_url)
        elsewhere = Program(Flags(), loaded, other, Database(tmp_path / "data"))
        opened = await elsewhere.open(session)
        assert f"cd {tmp_path} && ctxchat --session {session}" in opened.notices[0]
        await opened.close()
        await elsewhere.close()


async def test_the_list_shows_what_the_gauge_did_when_a_session_was_left_inside_a_turn(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    made = scripted(tmp_path, config, calls(("read_file", {"path": "a.txt"})), hangs("half an answer"))
    (tmp_path / "a.txt").write_text("one two three\n" * 200)
    session = await made.open()
    async with aclosing(session.send("what is in a.txt?")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, TextDelta):
                break
    shown = session.context_usage.used
    await session.close()
    [row] = await made.sessions()
    assert row.used == shown > 0
    await made.close()
