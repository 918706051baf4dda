"""What is seen of the work while it runs: the to-do list, the newest lines of a command, what came below what is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.events import ToolFinished, ToolProgress, ToolStarted
from ctxchat.core.messages import Message
from ctxchat.tools.todo import TodoItem
from ctxchat.tui.chat.work_line import WorkLine
from ctxchat.tui.transcript.todo_lines import items_of
from ctxchat.tui.transcript.tool_block import ToolBlock
from tests.tui.chatting import chatting, idle, until, words
from tests.tui.fakes import FakeSession, Pause, reply

STEPS = [
    {"text": "find themes", "status": "done"},
    {"text": "write doc", "status": "in_progress"},
    {"text": "ask for the name", "status": "pending"},
]


async def test_the_plan_and_the_newest_lines_are_seen_while_the_work_runs(tmp_path: Path) -> None:
    script = [
        ToolStarted("t", "todo", {"items": STEPS}),
        ToolStarted("a", "shell", {"command": "pytest"}),
        ToolProgress("a", "one\ntwo\n\x1b[31mthree\x1b[0m\nfour\n"),
        Pause(),
        *reply("done"),
    ]
    session = FakeSession(lambda _: script)
    async with chatting(tmp_path, session, (100, 36)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "plan 1/3  ✓ find themes  ▸ write doc  ○ ask for the name" in words(app))
        await until(pilot, lambda: "four" in words(app))
        assert "three" in words(app) and "two" in words(app) and "  one " not in words(app)
        session.approvals().set()
        await idle(app, pilot)
        assert "plan 1/3" not in words(app) and "four" not in words(app)


@pytest.mark.parametrize("size", [(40, 20), (100, 30)])
async def test_what_came_below_is_counted_and_a_click_goes_there(tmp_path: Path, size: tuple[int, int]) -> None:
    long = "\n\n".join(f"line {n}" for n in range(60))
    session = FakeSession(lambda text: [*([Pause()] if text == "y" else []), *reply(f"{long}\n\nlast of {text}")])
    async with chatting(tmp_path, session, size) as (app, pilot):
        await pilot.press("x", "enter")
        await idle(app, pilot)
        await until(pilot, lambda: "last of x" in words(app))
        await pilot.press("y", "enter")
        app.chat.transcript.scroll_to(y=3)
        session.approvals().set()
        await idle(app, pilot)
        await until(pilot, lambda: "new lines" in words(app))
        await pilot.click(WorkLine)
        await until(pilot, lambda: "last of y" in words(app) and "new lines" not in words(app))


async def test_going_up_to_an_old_message_is_no_news_and_what_comes_then_is(tmp_path: Path) -> None:
    said = [Message(n, "user" if n % 2 else "assistant", f"words {n}\n\n" * 9) for n in range(1, 301)]
    session = FakeSession(lambda text: [Pause(), *reply("one\n\ntwo\n\nthree")], said)
    async with chatting(tmp_path, session, (100, 30)) as (app, pilot):
        transcript = app.chat.transcript
        for line in (0, 40, 400, 3):  # heights that were guessed turn out on the way
            transcript.scroll_to(y=line)
            await pilot.pause()
            assert "new line" not in words(app)
        transcript.to_end()
        await pilot.press("x", "enter")
        transcript.scroll_to(y=3)
        session.approvals().set()
        await idle(app, pilot)
        await until(pilot, lambda: "new lines" in words(app))
        news = int(words(app).split("new lines")[0].split()[-1])
        assert 5 <= news <= 9, news
        await pilot.resize_terminal(60, 30)
        await pilot.pause()
        assert f"↓ {news} new lines" in words(app)


@given(
    st.lists(st.tuples(st.text(max_size=60), st.sampled_from(["pending", "in_progress", "done"])), max_size=6),
    st.integers(0, 10_000),
    st.integers(10, 140),
)
def test_it_is_one_line_of_the_width_there_is(steps: list[tuple[str, str]], unread: int, width: int) -> None:
    line = WorkLine()
    line._items, line._unread = [TodoItem(text, status) for text, status in steps], unread  # type: ignore[arg-type]
    drawn = line.draw_line(width)
    assert drawn.cell_length <= max(width, 8) and "\n" not in drawn.plain


@pytest.mark.parametrize(
    "arguments", ["no JSON", {}, {"items": "x"}, {"items": [{"text": 1}]}, {"items": STEPS, "more": 1}]
)
def test_a_list_the_tool_could_not_read_is_none(arguments: dict[str, object] | str) -> None:
    assert items_of("todo", arguments) is None
    assert items_of("grep", {"items": STEPS}) is None


@pytest.mark.parametrize("status", ["ok", "error"])
def test_an_unfolded_call_shows_the_list_and_one_that_failed_why(status: str) -> None:
    result = ToolFinished("t", "todo", status, "Kept: 1 of 3 done.", 0, 0.0)  # type: ignore[arg-type]
    block = ToolBlock("t", "todo", {"items": STEPS}, result)
    lines = [line.words.plain for line in block.body_lines(60)]
    shown = [f"{sign} {step['text']}" for sign, step in zip("✓▸○", STEPS, strict=True)]
    assert (lines == shown) == (status == "ok") and ("Kept: 1 of 3 done." in lines) == (status == "error")
