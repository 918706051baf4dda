"""A question of the agent over the composer: chosen, written, left open, with foreign words in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.containers import VerticalScroll
from textual.events import Key
from textual.widgets import Static

from ctxchat.core.events import ApprovalRequested, QuestionAsked, ToolFinished
from ctxchat.tui.chat.approval import ApprovalPanel
from ctxchat.tui.chat.questions import QuestionPanel
from tests.tui.chatting import HOSTILE, chatting, idle, until, words
from tests.tui.fakes import FakeSession, Pause, reply

OPEN = QuestionAsked("c1", f"Which port? {HOSTILE}")
CHOICE = QuestionAsked("c1", "Which port?", ("8080", f"9090 {HOSTILE}"))
DONE = ToolFinished("c1", "ask_user", "ok", "The user answered.", 5, 0.1)


def asks(question: QuestionAsked) -> FakeSession:
    return FakeSession(lambda _: [question, Pause("answer:c1"), DONE, *reply("ok")])


@pytest.mark.parametrize(
    ("question", "keys", "said"),
    [
        (CHOICE, ["enter"], "8080"),
        (CHOICE, ["down", "enter"], f"9090 {HOSTILE}"),
        (CHOICE, ["tab", *"7070", "enter"], "7070"),
        (OPEN, [*"8123", "enter"], "8123"),
        (OPEN, ["enter", *"1", "enter"], "1"),
        (OPEN, ["escape"], ""),
        (CHOICE, ["escape"], ""),
    ],
)
async def test_it_is_answered_by_key(tmp_path: Path, question: QuestionAsked, keys: list[str], said: str) -> None:
    session = asks(question)
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(
            pilot, lambda: app.query(QuestionPanel) and app.focused and app.focused in app.query("QuestionPanel *")
        )
        assert "Which port?" in words(app)
        await pilot.press(*keys)
        await idle(app, pilot)
        assert session.replies == [("c1", said)]
        assert not app.query(QuestionPanel)
        assert app.focused is app.chat.composer.prompt


async def test_a_draft_keeps_the_focus_and_tab_goes_to_the_question(tmp_path: Path) -> None:
    session = asks(CHOICE)
    async with chatting(tmp_path, session, (40, 20)) as (app, pilot):
        await pilot.press("x", "enter", *"half a thought")
        await until(pilot, lambda: app.query(QuestionPanel))
        await pilot.press(*" and more")
        assert app.chat.composer.draft == "half a thought and more"
        await pilot.press("tab", "enter")
        await idle(app, pilot)
        assert session.replies == [("c1", "8080")]
        assert app.chat.composer.draft == "half a thought and more"


async def test_what_is_written_goes_to_no_server(tmp_path: Path) -> None:
    session = asks(QuestionAsked("c1", "harbour asks: Empty it?", ("yes", "no"), "harbour"))
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: any(panel.seen for panel in app.query(QuestionPanel)))
        assert app.focused is app.chat.composer.prompt
        await pilot.press("enter", *"my key is 7", "enter")
        assert not session.replies and app.query(QuestionPanel)
        await until(pilot, lambda: not app.query(QuestionPanel).first().held)
        await pilot.press("tab")
        await until(pilot, lambda: app.focused in app.query("QuestionPanel *"))
        await pilot.press("down", "enter")
        await idle(app, pilot)
        assert session.replies == [("c1", "no")]


async def test_letters_that_come_in_one_go_are_the_draft_all_of_them(tmp_path: Path) -> None:
    request = ApprovalRequested("c1", "shell", "run make", rules=("shell: make",))
    session = FakeSession(lambda _: [request, Pause("answer:c1"), DONE, *reply("ok")])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused in app.query(ApprovalPanel))
        for letter in "today sayn":
            app.post_message(Key("space" if letter == " " else letter, letter))
        await until(pilot, lambda: app.chat.composer.draft == "today sayn")
        assert not session.answers
        await pilot.press("tab", "n")
        await idle(app, pilot)


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (140, 40), (60, 12)])
async def test_however_long_it_is_the_composer_stays_in_sight(tmp_path: Path, size: tuple[int, int]) -> None:
    lines = "\n".join(f"+line {n}" for n in range(300))
    for asked in (
        ApprovalRequested("c1", "write", "write a.txt", "write", lines, ("write: a.txt",)),
        QuestionAsked("c1", lines, tuple(str(n) for n in range(100))),
    ):
        session = FakeSession(lambda _, asked=asked: [asked, Pause("answer:c1"), DONE, *reply("ok")])
        async with chatting(tmp_path, session, size) as (app, pilot):
            await pilot.press("x", "enter")
            await until(
                pilot, lambda app=app: app.query(".asked") and app.query_one(".asked").has_pseudo_class("focus-within")
            )
            panel, composer = app.query_one(".asked").region, app.chat.composer.region
            assert panel.bottom <= composer.y and composer.bottom < size[1]
            assert panel.height <= size[1] // 2 + 5
            await pilot.press("escape")
            await idle(app, pilot)


async def test_a_long_question_is_read_to_its_end(tmp_path: Path) -> None:
    lines = "\n".join(f"line {n}" for n in range(40))
    session = asks(QuestionAsked("c1", f"{lines}\n{'x' * 20_000}", ("yes", "no")))
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(QuestionPanel) and app.focused in app.query("QuestionPanel *"))
        box = app.query_one(QuestionPanel).query_one(VerticalScroll)
        await until(pilot, lambda: box.max_scroll_y > 0)
        assert box.size.height >= 5
        for _ in range(20):
            app.post_message(Key("shift+down", None))  # faster than frames are drawn
        await until(pilot, lambda: box.scroll_y >= 20)
        assert "more characters" in str(box.query_one(Static).content)
        await pilot.press("enter")
        await idle(app, pilot)
        assert session.replies == [("c1", "yes")]


async def test_a_draft_that_is_sent_answers_the_question(tmp_path: Path) -> None:
    session = asks(CHOICE)
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter", *"half")
        await until(pilot, lambda: app.query(QuestionPanel))
        await pilot.press(*" a thought", "enter")
        await idle(app, pilot)
        assert session.replies == [("c1", "half a thought")] and session.sent == ["x"]
        assert app.chat.composer.draft == ""
