"""What goes along with a message: files by name, images dropped or pasted, huge pastes as files; drafts that outlive a kill."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from textual.events import Paste

from ctxchat.agent.turn.turn import NextSteeringMessage
from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.events import Stamped
from ctxchat.core.messages import Image, Part, Text
from ctxchat.core.permissions import Answer
from ctxchat.tui.app import AppFiles
from ctxchat.tui.chat.approval import ApprovalPanel
from ctxchat.tui.chat.chips import Chip, Mentioned, MentionToAgree
from ctxchat.tui.transcript.blocks import UserBlock
from ctxchat.tui.unsent.clipboard import image_on_clipboard
from ctxchat.tui.unsent.draft import Draft, Drafts, Picture, joined
from ctxchat.tui.unsent.draft import Paste as Pasted
from tests.doubles.images import png
from tests.tui.chatting import ASK, HOSTILE, chatting, said, until, words
from tests.tui.fakes import FakeSession, Pause, reply

SHOT = png(64, 48)


def along(session: FakeSession) -> list[str]:
    """What went along with the last message, by name."""
    return [part.name for part in session.sent_along[-1] if isinstance(part, Image | Text)]


async def test_files_that_are_named_go_along_and_count_before_they_are_sent(tmp_path: Path) -> None:
    (tmp_path / "gauge.py").write_text("PERIOD = 90\n" * 400)
    (tmp_path / "shot.png").write_bytes(SHOT)
    session = FakeSession(window=20_000)
    async with chatting(tmp_path, session) as (app, pilot):
        app.chat.composer.prompt.insert("see @gauge.py @shot.png @gone.txt ok")
        await until(pilot, lambda: "400 lines" in words(app) and "64×48" in words(app))
        await until(pilot, lambda: "there is no such file" in words(app) and "this message +" in words(app))
        await pilot.press("enter")
        await until(pilot, lambda: session.sent)
        assert along(session) == ["gauge.py", "shot.png"] and session.saved == {"shot.png": SHOT}
        await until(pilot, lambda: said(app, UserBlock).count("▪") == 2 and not app.query(Mentioned))
        assert "gone.txt" in session.sent[0]
        assert "base64" not in words(app)


async def test_what_is_still_being_typed_is_no_missing_file(tmp_path: Path) -> None:
    (tmp_path / "gauge.py").write_text("x")
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        app.chat.composer.prompt.insert("@gauge.py @nothing/here")
        await until(pilot, lambda: "1 line" in words(app))  # they are looked at together
        assert "no such file" not in words(app)
        await pilot.press("space")
        await until(pilot, lambda: "no such file" in words(app))


async def test_what_was_pasted_or_lies_outside_goes_along_when_one_says_so(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "key").write_text("of mine")
    (work / "a.txt").write_text("pasted")
    session = FakeSession()
    async with chatting(work, session) as (app, pilot):
        app.chat.composer.prompt.insert("see @../key ")
        app.chat.composer.prompt.post_message(Paste("and @a.txt"))
        await until(
            pilot,
            lambda: "outside this folder" in words(app) and "named in pasted text, so it is not sent" in words(app),
        )
        await pilot.press("enter")
        await until(pilot, lambda: session.sent and not app.controller.busy)
        assert not session.sent_along[-1]
        app.chat.composer.prompt.insert("see @../key ")
        await until(pilot, lambda: app.query(MentionToAgree))
        await pilot.press("tab", "enter")
        await until(pilot, lambda: app.query(Mentioned) and not app.query(MentionToAgree))
        await pilot.press("enter")
        await until(pilot, lambda: len(session.sent) == 2)
        assert along(session) == ["../key"]


async def test_images_are_dropped_and_pasted(tmp_path: Path) -> None:
    (tmp_path / "my shot.png").write_bytes(SHOT)
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        prompt = app.chat.composer.prompt
        prompt.post_message(Paste(f"'{tmp_path}/my shot.png' "))
        await until(pilot, lambda: len(app.query(Chip)) == 1)
        prompt.post_message(Paste("data:image/png;base64," + base64.b64encode(SHOT).decode()))
        await until(pilot, lambda: len(app.query(Chip)) == 2)
        assert prompt.text == ""
        await pilot.press("enter")
        await until(pilot, lambda: session.sent == [""])
        assert along(session) == ["my shot.png", "pasted.png"] and not app.query(Chip)


async def test_a_path_to_no_image_is_text(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        app.chat.composer.prompt.post_message(Paste("/tmp/gone.png"))
        await until(pilot, lambda: app.chat.composer.prompt.text == "/tmp/gone.png")
        assert not app.query(Chip)


async def test_a_model_that_is_shown_no_images_says_so_before_sending(tmp_path: Path) -> None:
    session = FakeSession()
    session.seen = False
    async with chatting(tmp_path, session, (40, 20)) as (app, pilot):
        app.chat.composer.attached.attach(Picture("shot.png", SHOT, 64, 48))
        await until(pilot, lambda: "This model is shown no images" in words(app))


async def test_a_paste_goes_as_a_file_where_one_wants_it(tmp_path: Path) -> None:
    session = FakeSession(window=20_000)
    async with chatting(tmp_path, session) as (app, pilot):
        app.chat.composer.prompt.post_message(Paste("word " * 15_000))
        await until(pilot, lambda: "tab, then f" in words(app))
        await pilot.press("tab", "f")
        await until(pilot, lambda: "as a file" in words(app) and "over the limit" not in words(app))
        assert isinstance(app.focused, Chip)
        await pilot.press("tab", "l", "enter")
        await until(pilot, lambda: session.sent == ["l"])
        assert len(session.saved["paste-1.txt"]) == 75_000 and along(session) == ["paste-1.txt"]
        assert len(str(session.sent_along[-1][0])) < 500


async def test_names_are_text_on_chips_lines_and_in_the_record(tmp_path: Path) -> None:
    name = "[bold]x[/bold] [@click=app.quit]y\x1b[2J\nz.txt"
    (tmp_path / name.replace("/", "-")).write_text("hello\n")
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        await until(pilot, lambda: app.chat.composer.prompt.files)
        await pilot.press("@", *"bold")
        await until(pilot, lambda: app.chat.composer.prompt._completion.is_open)
        await pilot.press("enter")
        await until(pilot, lambda: app.query(Mentioned))
        assert "[bold]x[-bold] [@click=app.quit]y" in words(app)
        app.chat.composer.attached.attach(Picture(HOSTILE, SHOT, 64, 48))
        await pilot.press("enter")
        await until(pilot, lambda: session.sent and said(app, UserBlock).count("▪") == 2)
        assert along(session) == [HOSTILE, name.replace("/", "-")] and "[@click=app.quit]boo" in words(app)


async def test_a_message_that_waits_keeps_what_goes_along(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [Pause(), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.controller.busy)
        app.chat.composer.attached.attach(Picture("shot.png", SHOT, 64, 48))
        await pilot.press("y", "enter")
        await until(pilot, lambda: app.chat.composer.queued.drafts and "shot.png" in words(app))
        await pilot.press("up")
        await until(pilot, lambda: app.chat.composer.whole_draft == Draft("y", (Picture("shot.png", SHOT, 64, 48),)))
        assert not app.chat.composer.queued.drafts


class Full(FakeSession):
    """A store that takes nothing."""

    async def save(self, name: str, data: bytes) -> Image:
        raise StorageError("The disk is full.", "Free some space.")


async def test_what_could_not_be_written_is_back_in_the_composer(tmp_path: Path) -> None:
    session = Full()
    async with chatting(tmp_path, session) as (app, pilot):
        app.chat.composer.attached.attach(Picture("shot.png", SHOT, 64, 48))
        await pilot.press(*"look", "enter")
        await until(pilot, lambda: "The disk is full." in words(app))
        assert app.chat.composer.whole_draft == Draft("look", (Picture("shot.png", SHOT, 64, 48),)) and not session.sent


# ── the clipboard ──


def program(folder: Path, name: str, body: str) -> dict[str, str]:
    """An environment in which this program is the only one."""
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o700)
    return {"PATH": str(folder)}


def test_the_clipboard_is_read_with_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "shot").write_bytes(SHOT)
    bare = f'case "$*" in *image/png*) while IFS= read -r l; do echo; done < /dev/null; /bin/cat {tmp_path}/shot;; esac'
    assert image_on_clipboard(program(tmp_path, "xclip", bare)) == SHOT
    apple = program(tmp_path, "osascript", f"echo '«data PNGf{SHOT.hex().upper()}»'")
    (tmp_path / "xclip").unlink()
    assert image_on_clipboard(apple) == SHOT


def test_no_image_and_no_program_are_told_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(CtxchatError, match="no program"):
        image_on_clipboard({"PATH": str(tmp_path)})
    with pytest.raises(CtxchatError, match="no image") as told:
        image_on_clipboard(program(tmp_path, "wl-paste", "echo text; exit 1"))
    assert "Copy an image first" in told.value.hint


# ── drafts ──


async def test_a_draft_is_there_again_after_a_kill(tmp_path: Path) -> None:
    data, left = tmp_path / "data", Draft("half a thought", (Picture("shot.png", SHOT, 64, 48), Pasted(1, "x" * 9_000)))
    session = FakeSession(id="0123456789ab")
    async with chatting(tmp_path, session, files=AppFiles(data_folder=data)) as (app, pilot):
        app.chat.composer.put_back(left)
        await until(pilot, lambda: list(data.rglob("draft.json")))
        assert await Drafts(data).load_draft(session.id) == left  # what a process that was killed now would leave
    async with chatting(tmp_path, session, files=AppFiles(data_folder=data)) as (app, pilot):
        await until(pilot, lambda: app.chat.composer.whole_draft == left)
        await pilot.press("enter")
        await until(pilot, lambda: session.sent == ["half a thought"])
        await until(pilot, lambda: not list(data.rglob("draft.json")))


async def test_what_waits_is_unsent_too_and_what_went_out_is_not(tmp_path: Path) -> None:
    data = tmp_path / "data"
    session = FakeSession(lambda _: [Pause(), *reply("ok")], id="0123456789ab")
    async with chatting(tmp_path, session, files=AppFiles(data_folder=data)) as (_, pilot):
        await pilot.press("a", "enter")
        await until(pilot, lambda: session.sent == ["a"])
        await pilot.press("b", "enter", "c")
        await until(pilot, lambda: any(r"b\n\nc" in file.read_text() for file in data.rglob("draft.json")))
        assert await Drafts(data).load_draft(session.id) == Draft("b\n\nc")


async def test_a_broken_draft_and_a_folder_in_its_place_cost_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "0123456789ab"
    folder.mkdir(parents=True)
    (folder / "draft.json").write_text("{broken")
    drafts = Drafts(tmp_path)
    assert await drafts.load_draft("0123456789ab") == Draft()
    (folder / "draft.json").unlink()
    (folder / "draft.json").mkdir()
    await drafts.keep("0123456789ab", Draft("x"))
    assert await drafts.load_draft("0123456789ab") == Draft()
    await Drafts().keep("x", Draft("x"))


def test_drafts_are_joined_in_their_order() -> None:
    picture = Picture("a.png", b"", 1, 1)
    assert joined([Draft("a"), Draft("", (picture,)), Draft("b\n")]) == Draft("a\n\nb", (picture,))


# ── keys ──


async def test_keys_that_come_before_the_composer_has_the_focus_are_kept_in_order(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        app.chat.set_focus(None)
        await pilot.press(*"hix", "backspace", "enter", *"more")
        await until(pilot, lambda: session.sent == ["hi"] and app.chat.composer.draft == "more")


async def test_a_question_says_which_keys_answer_it_now(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [Pause("ask"), ASK, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter", *"my draft")
        session.approvals("ask").set()
        await until(pilot, lambda: app.query(ApprovalPanel) and "tab first" in words(app))
        await pilot.press("tab")
        await until(pilot, lambda: app.query_one(ApprovalPanel).answering)
        await pilot.press("y")
        await until(pilot, lambda: session.answers == [("c1", Answer("once"))])
        assert app.chat.composer.draft == "my draft"


class Stubborn(FakeSession):
    """A session that will not close."""

    async def close(self) -> None:
        raise CtxchatError("A turn is under way.")

    async def send(
        self, text: str, attachments: Sequence[Part] = (), *, next_steering_message: NextSteeringMessage
    ) -> AsyncGenerator[Stamped, None]:
        async for stamped in super().send(text, attachments, next_steering_message=next_steering_message):
            yield stamped


async def test_one_leaves_whatever_the_session_says(tmp_path: Path) -> None:
    async with chatting(tmp_path, Stubborn()) as (app, pilot):
        await pilot.press(*"/quit", "enter")
        await until(pilot, lambda: not app.is_running)
        assert app.return_code == 0
