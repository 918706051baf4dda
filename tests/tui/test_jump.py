"""Jump marks: a letter over each thing that can be clicked, and what typing it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Static

from ctxchat.tui.panels.jump import LETTERS, MAX_TARGETS, JumpScreen, Target, click, marks, targets_of
from ctxchat.tui.transcript.tool_block import ToolBlock
from tests.agent.desk import Echo
from tests.doubles.scripted import calls, says
from tests.tui.chatting import blocks, idle, until, words
from tests.tui.real import say, talking


@given(st.integers(0, MAX_TARGETS))
def test_no_mark_begins_another(number: int) -> None:
    found = marks(number)
    assert len(set(found)) == number and len({len(mark) for mark in found}) <= 1
    assert set("".join(found)) <= set(LETTERS)


async def opened(app, pilot) -> dict[object, str]:
    """The marks by what they are for."""
    await pilot.press("ctrl+f9")
    await until(pilot, lambda: isinstance(app.screen, JumpScreen) and app.screen.query(".mark"))
    return {target.press: mark for mark, target in app.screen._targets.items()}


@pytest.mark.parametrize("size", [(100, 36), (40, 20)])
async def test_a_mark_unfolds_a_call_and_other_keys_leave(tmp_path: Path, size: tuple[int, int]) -> None:
    script = [calls(("echo", {"text": "hello"})), says("See https://example.org, `src/app.py:10`.")]
    async with talking(tmp_path, script, tools=[Echo()], mode="all", size=size) as (app, pilot, _):
        await say(app, pilot, "go")
        await idle(app, pilot)
        await pilot.press(*"draft")
        found = await opened(app, pilot)
        assert {("fold", ""), ("place", "src/app.py:10")} <= set(found) and len(found) >= 4
        [call] = blocks(app, ToolBlock)
        await pilot.press(found["fold", ""])
        await until(pilot, lambda: app.screen is app.chat and call.unfolded)

        await opened(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        await opened(app, pilot)
        await pilot.press("1")
        await until(pilot, lambda: app.screen is app.chat)
        assert app.chat.composer.draft == "draft" and call.unfolded


async def test_marks_stand_where_their_targets_begin_and_a_command_runs(tmp_path: Path) -> None:
    async with talking(tmp_path, [says("fine")]) as (app, pilot, _):
        await say(app, pilot, "go")
        await idle(app, pilot)
        where = {target.press: target.offset for target in targets_of(app.chat)}
        found = await opened(app, pilot)
        shown = {str(label.render()): label.region.offset for label in app.screen.query(".mark").results(Static)}
        assert {press: shown[mark] for press, mark in found.items()} == where
        [key] = [press for press in found if press[0] == "key" and press[1] == "f3"]
        await pilot.press(*found[key])
        await until(pilot, lambda: type(app.screen).__name__ == "ArchiveScreen")


async def test_what_has_gone_meanwhile_is_said(tmp_path: Path) -> None:
    async with talking(tmp_path, [says("fine")]) as (app, _pilot, _desk):
        assert not click(app.chat, Target(app.chat.region.offset, ("place", "gone.py:1")))


CODE = "def tide(hour):\n    return table[hour]  # " + "long " * 40
ANSWER = f"Like *this*:\n\n```python\n{CODE}\n```\n\nand `that`."


async def test_blocks_and_the_code_in_them_are_copied_as_they_were_written(tmp_path: Path) -> None:
    script = [
        calls(("echo", {"text": "hello \x1b[2J"})),
        says(ANSWER),
        says("\n".join(["```", *map(str, range(200)), "```"])),
    ]
    async with talking(tmp_path, script, tools=[Echo()], mode="all", size=(80, 36)) as (app, pilot, _):

        async def offered() -> dict[str, str]:
            """The texts that can be copied, with their marks."""
            if app.screen is app.chat:
                await pilot.press("ctrl+f10")
            await until(pilot, lambda: isinstance(app.screen, JumpScreen) and app.screen.query(".mark"))
            return {str(target.press): mark for mark, target in app.screen._targets.items()}

        async def copied(text: str) -> str:
            """What is on the clipboard after the mark of this text was typed."""
            await pilot.press(*(await offered())[text])
            await until(pilot, lambda: app.screen is app.chat)
            return app.clipboard

        await say(app, pilot, "go")
        await idle(app, pilot)
        assert "hello" in await copied(next(t for t in await offered() if "hello" in t))
        for text in (CODE, ANSWER, "go"):
            assert await copied(text) == text
        await say(app, pilot, "more")
        await idle(app, pilot)
        numbers = "\n".join(map(str, range(200)))  # its beginning is far above
        assert await copied(numbers) == numbers
        app.chat.composer.set_draft("/copy-block")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JumpScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_without_anything_to_copy_it_says_so(tmp_path: Path) -> None:
    async with talking(tmp_path, []) as (app, pilot, _):
        await pilot.press("ctrl+f10")
        await until(pilot, lambda: "nothing here to copy" in words(app))
