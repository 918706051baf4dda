"""`/init`, the command file that comes with the program."""

from __future__ import annotations

from pathlib import Path

from tests.bootstrap.scripted_program import program, say
from tests.doubles.scripted import says


async def test_init_is_a_command_file_of_the_program_and_ones_own_goes_before_it(tmp_path: Path) -> None:
    made = program(tmp_path, tmp_path / "config", says("written"), says("mine"))
    session = await made.open(interactive=False)
    await say(session, "/init the pumps")
    sent = made.script.views[0].items[-1].message.text
    assert sent.startswith("/init the pumps") and "AGENTS.md" in sent and "60 lines at most" in sent
    assert "the pumps" in sent.removeprefix("/init the pumps")
    await session.close()
    await made.close()
    own = tmp_path / "config/commands/init.md"
    own.parent.mkdir()
    own.write_text("Begin my way.")
    again = program(tmp_path, tmp_path / "config", says("mine"))
    session = await again.open(interactive=False)
    await say(session, "/init")
    assert "Begin my way." in again.script.views[0].items[-1].message.text
    await session.close()
    await again.close()
