"""Background commands of a whole session: begun through its tools, told to the model by a note, and gone when it is closed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ctxchat.core.events import ToolFinished
from tests.bootstrap.scripted_program import program, say
from tests.doubles.scripted import ScriptedModel, calls, says


def sent(model: ScriptedModel) -> str:
    """All the text of the newest request."""
    return "\n".join(item.message.text for item in model.views[-1].items)


async def test_a_server_goes_on_between_turns_and_its_end_is_told(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    made = program(
        tmp_path / "work",
        tmp_path / "config",
        calls(("shell", {"command": "echo up; until test -e stop; do sleep 0.1; done; exit 3", "background": True})),
        says("It runs."),
        says("Still."),
        calls(("job", {"id": "j1", "action": "wait"})),
        says("It ended."),
        says("Well."),
    )
    session = await made.open(interactive=False)
    try:
        begun = next(e for e in await say(session, "serve") if isinstance(e, ToolFinished))
        assert begun.output.startswith("[j1: running") and "up" in begun.output
        await say(session, "and now?")
        assert sent(made.script).count("j1 `echo up; until test -e stop; do sleep 0.1; done; exit 3`: running") == 1
        assert session.background and [row.running for row in session.background.rows] == [True]
        (tmp_path / "work" / "stop").write_text("")
        while session.background.rows[0].running:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        ended = next(e for e in await say(session, "look") if isinstance(e, ToolFinished))
        assert "ended with exit code 3" in ended.output
        notes = sent(made.script)
        assert "ended with exit code 3" in notes, "said before it was looked at"
        await say(session, "thanks")
        assert made.script.views[-1].items[: len(made.script.views[-2].items)] == made.script.views[-2].items
    finally:
        await session.close()
        await made.close()
    assert session.background.rows[0].state == "ended with exit code 3"
