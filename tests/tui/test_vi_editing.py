"""Vi's keys in the composer: esc begins commands, i goes back to writing, enter sends in both."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ctxchat.config.schema import Settings
from tests.doubles.scripted import says
from tests.tui.chatting import idle, until, words
from tests.tui.real import talking

VI = Settings(interface=msgspec.structs.replace(Settings().interface, editing="vi"))


async def test_a_message_is_edited_with_vis_keys_and_sent(tmp_path: Path) -> None:
    script = [says("one"), says("two")]
    async with talking(tmp_path, script, settings=VI) as (app, pilot, desk):
        prompt = app.chat.composer.prompt
        await pilot.press(*"hello wrold now")
        await pilot.press("escape")
        await until(pilot, lambda: "normal" in words(app))
        await pilot.press(*"bb", *"cw", *"world")
        assert prompt.text == "hello world now"
        await pilot.press("escape", *"0dwu", "ctrl+r", "u", "A", "!", "escape", "enter")
        await until(pilot, lambda: "one" in words(app))
        assert desk.state.ledger.groups[0].first.text == "hello world now!"
        await until(pilot, lambda: "normal" not in words(app))
        await idle(app, pilot)
        await pilot.press(*"next", "escape", "0", "k")
        assert prompt.text == "hello world now!", "above the first line lies what was sent before"


async def test_the_second_esc_stops_the_turn_and_usual_editing_knows_nothing_of_it(tmp_path: Path) -> None:
    async with talking(tmp_path, [says("slow words", delay=5)], settings=VI) as (app, pilot, _):
        await pilot.press(*"go", "enter")
        await until(pilot, lambda: app.controller.busy)
        await pilot.press("x", "escape")
        await pilot.pause(0.05)
        assert app.controller.busy
        await pilot.press("escape")
        await idle(app, pilot)
        app.chat.composer.prompt.edit_by("usual")
        await pilot.press("x", "x")
        assert app.chat.composer.draft.endswith("xx")
