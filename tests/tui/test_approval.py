"""A call that waits for a word: answered once, by key or mouse, and in nobody's way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ctxchat.core.events import ApprovalRequested, ApprovalResolved, ToolFinished, ToolStarted
from ctxchat.core.permissions import Answer, Grant
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.chat.approval import ApprovalPanel
from tests.tui.chatting import ASK, chatting, until, words
from tests.tui.fakes import FakeSession, Pause, reply

WAIT = "wait"
"""In place of a key: until a letter has acted."""


async def press(pilot: Pilot[int], app: CtxchatApp, *keys: str) -> None:
    for key in keys:
        if key == WAIT:
            await until(pilot, lambda: not any(panel.waits for panel in app.query(ApprovalPanel)))
        else:
            await pilot.press(key)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["y"], ("c1", Answer("once"))),
        (["s", WAIT, "enter"], ("c1", Answer("session", rule="shell: rm *"))),
        (["a", WAIT, "enter"], ("c1", Answer("always", rule="shell: rm *"))),
        (["a", WAIT, "escape", "y"], ("c1", Answer("once"))),
        (["a", WAIT, "n"], ("c1", Answer("deny"))),
        (["n"], ("c1", Answer("deny"))),
        (["escape"], ("c1", Answer("deny"))),
        (["r", *"use ls", "enter"], ("c1", Answer("deny", "use ls"))),
        (["r", "escape", "y", "y"], ("c1", Answer("once"))),
    ],
)
async def test_a_question_is_answered_once_by_key(tmp_path: Path, keys: list[str], answer: tuple[str, Answer]) -> None:
    session = FakeSession(lambda _: [ASK, Pause("answer:c1"), ApprovalResolved("c1", "once", "person"), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        assert "rm -rf /\\rls\\x1b[1A [/x]" in words(app)
        await press(pilot, app, *keys)
        await until(pilot, lambda: not app.controller.busy)
        assert session.answers == [answer]
        assert not app.query(ApprovalPanel)
        told = any("alt+m takes it back" in each.message for each in app._notifications)
        assert told == (answer[1].verdict == "always")
        assert app.focused is app.chat.composer.prompt


async def test_a_call_that_waits_for_a_word_does_not_look_as_if_it_ran(tmp_path: Path) -> None:
    call = ToolStarted("c1", "shell", {"command": "ls"})
    done = ToolFinished("c1", "shell", "ok", "a.py", 3, 0.2, exit_code=0)
    yes = ApprovalResolved("c1", "once", "person")
    session = FakeSession(lambda _: [call, ASK, Pause("answer:c1"), yes, Pause("runs"), done, *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        assert "? shell ls" in words(app) and "waits for you" in words(app)
        await pilot.press("y")
        await until(pilot, lambda: "esc stops" in words(app))
        assert "waits for you" not in words(app)
        session.approvals("runs").set()
        await until(pilot, lambda: "exit 0" in words(app))


async def test_a_question_is_answered_with_the_mouse_down_to_small_windows(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [ASK, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (20, 7)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel))
        assert "y once" in words(app) and "n deny" in words(app)
        await pilot.click(next(a for a in app.query(".answer") if "deny" in str(a.render())))
        await until(pilot, lambda: session.answers == [("c1", Answer("deny"))])


async def test_a_question_takes_neither_draft_nor_focus_from_someone_who_writes(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [Pause("ask"), ASK, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter", *"say y")
        session.approvals("ask").set()
        await until(pilot, lambda: app.query(ApprovalPanel))
        await pilot.press(*"es")
        assert app.chat.composer.draft == "say yes" and session.answers == []
        await pilot.press("tab", "y")
        await until(pilot, lambda: session.answers == [("c1", Answer("once"))])
        assert app.chat.composer.draft == "say yes"


async def test_a_question_goes_with_the_turn_it_belongs_to(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [ASK, Pause("answer:c1")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel))
        app.controller.interrupt()
        await until(pilot, lambda: not app.controller.busy)
        assert not app.query(ApprovalPanel) and session.answers == []


BROAD = ApprovalRequested(
    "c1",
    "shell",
    "run make deploy",
    "run",
    "make deploy",
    ("shell: make deploy", "shell: make deploy **", "shell: make **"),
    Grant(network=True, folders=("/home/me/.cache/uv",), outside=True),
)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["right", "s", WAIT, "enter"], Answer("session", rule="shell: make deploy **")),
        (["right", "right", "right", "left", "a", WAIT, "enter"], Answer("always", rule="shell: make deploy **")),
        (["e", WAIT, *" x", "enter", "s", WAIT, "enter"], Answer("session", rule="shell: make deploy x")),
        (["e", WAIT, *" x", "escape", "s", WAIT, "enter"], Answer("session", rule="shell: make deploy")),
        (["3", "y"], Answer("once", allowance=Grant(outside=True))),
        (["1", "1", "y"], Answer("once")),
        (
            ["1", "2", "a", WAIT, "enter"],
            Answer(
                "always",
                rule="shell+network: make deploy\nshell-folder: /home/me/.cache/uv",
                allowance=Grant(True, ("/home/me/.cache/uv",)),
            ),
        ),
    ],
)
async def test_what_is_shown_is_what_is_stored(tmp_path: Path, keys: list[str], answer: Answer) -> None:
    session = FakeSession(lambda _: [BROAD, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        assert words(app).count("make deploy") == 1 and "just this" in words(app), (
            "a rule that is the command is not said again"
        )
        *before, last = keys
        await press(pilot, app, *before)
        await pilot.pause()
        just_this = answer.rule == "shell: make deploy"
        assert "just this" in words(app) if just_this else all(line in words(app) for line in answer.rule.splitlines())
        await pilot.press(last)
        await until(pilot, lambda: session.answers == [("c1", answer)])


async def test_a_rule_that_does_not_cover_the_call_is_refused_with_the_reason(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [BROAD, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        await press(pilot, app, "e", WAIT, "ctrl+u", *"ls", "enter")
        await until(pilot, lambda: "does not cover the call" in words(app))
        await press(pilot, app, "escape", "s", WAIT, "enter")
        await until(pilot, lambda: session.answers == [("c1", Answer("session", rule="shell: make deploy"))])


async def test_a_rule_there_is_no_room_for_is_not_given_unseen(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [BROAD, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (20, 7)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        await press(pilot, app, "a", WAIT, "enter")
        assert not session.answers
        await pilot.press("y")
        await until(pilot, lambda: session.answers == [("c1", Answer("once"))])


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20)])
async def test_rule_answers_and_composer_are_in_sight(tmp_path: Path, size: tuple[int, int]) -> None:
    session = FakeSession(lambda _: [BROAD, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, size) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        await pilot.pause()
        composer = app.chat.composer.region
        assert app.query_one(ApprovalPanel).region.bottom <= composer.y and composer.bottom <= size[1]
        assert "just this" in words(app) and "y once" in words(app) and "outside" in words(app)


@pytest.mark.parametrize(
    ("width", "draft", "below"),
    [
        (120, "", "tab next  ctrl+p commands"),
        (80, "", "tab next  ctrl+p commands"),
        (40, "", "tab next  ctrl+p commands  ↓ read on"),
        (30, "", "s session  a always"),  # the question has no room for these words
        (80, "half", "enter queue  esc stop"),
        (66, "half", "tab to answer  enter queue  esc stop"),  # nor here for how to come to it
        (40, "half", "enter queue  esc stop"),
    ],
)
async def test_a_key_is_said_once_in_the_question_or_below(tmp_path: Path, width: int, draft: str, below: str) -> None:
    session = FakeSession(lambda _: [MUCH, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (width, 36)) as (app, pilot):
        await pilot.press("x", "enter", *draft)
        await until(pilot, lambda: app.query(ApprovalPanel) and not app.query_one(ApprovalPanel).held)
        await until(pilot, lambda: words(app).split("\n")[-1].strip() == below)
        assert len(re.findall(r"\bdeny\b", words(app))) == 1 and words(app).count("tab first") <= 1


LONG = "cd /home/me/projects/harbour && uv run pytest tests/gauge tests/logger -x -q && rm -rf build/dist"
MUCH = ApprovalRequested(
    "c1",
    "shell",
    f"run {LONG}",
    "run",
    LONG,
    (f"shell: {LONG}", "shell: cd **\nshell: uv run pytest **\nshell: rm **"),
    Grant(network=True, folders=tuple(f"/home/me/.cache/{name}" for name in ("uv", "pip", "npm")), outside=True),
)


@pytest.mark.parametrize("size", [(40, 20), (40, 12)])
async def test_in_a_small_window_the_command_and_all_answers_are_seen(tmp_path: Path, size: tuple[int, int]) -> None:
    session = FakeSession(lambda _: [MUCH, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, size) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        said = ("shell", "cd", "build/dist", "once", "session", "always", "deny", "say why", "[ ] the network")

        def seen() -> str:
            return words(app).rpartition("\n")[0]  # the last line tells the keys

        await until(pilot, lambda: all(part in seen() for part in said))
        await pilot.press("n")


@pytest.mark.parametrize("size", [(80, 24), (80, 18), (80, 12), (80, 9), (40, 20), (40, 12), (40, 9)])
async def test_a_long_command_leaves_the_answers_and_the_composer_in_sight(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    session = FakeSession(lambda _: [MUCH, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, size) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)

        def in_sight() -> bool:
            said = words(app)
            composer = app.chat.composer.region.bottom <= app.chat.gauge.region.y
            return composer and all(word in said for word in ("shell", "cd", "once", "always", "deny", "say why"))

        await until(pilot, in_sight)
        if size[1] > 9:
            await pilot.press(*"word", *["ctrl+j"] * 4)  # the draft takes lines, too
            await until(pilot, in_sight)
        await pilot.resize_terminal(120, 36)
        await until(pilot, lambda: "rm -rf build/dist" in words(app) and "just this" in words(app))
        await pilot.press("tab", "n")


async def test_the_keys_come_before_what_may_be_long_and_a_diff_has_the_numbers_of_its_file(tmp_path: Path) -> None:
    diff = "--- a/a.py\n+++ b/a.py\n@@ -41,2 +41,3 @@\n x = 1\n+y = 2\n z = 3\n"
    asked = ApprovalRequested("c1", "edit_file", "edit a.py", "write", diff, ("edit_file: a.py",))
    session = FakeSession(lambda _: [asked, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        await until(pilot, lambda: "42 +y = 2" in words(app))
        said = words(app)
        assert said.index("edit a.py") < said.index("y once") < said.index("@@") < said.index("s and a allow")
        assert "+++" not in said, "the question names the file"
        await pilot.press("n")
