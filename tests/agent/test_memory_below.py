"""Memory files below the folder: a note in the middle of the turn in which work goes there; nothing sent before it changes."""

from __future__ import annotations

from pathlib import Path

from ctxchat.context.gather import WorkspaceSources
from ctxchat.tools.read_file import ReadFile
from tests.agent.desk import Desk
from tests.doubles.scripted import ScriptedModel, calls, says


async def test_it_is_told_once_where_work_goes_there_and_again_only_when_it_changes(tmp_path: Path) -> None:
    below = tmp_path / "src"
    below.mkdir()
    (below / "AGENTS.md").write_text("In src: no tabs.")
    (below / "a.py").write_text("x = 1")
    reads = calls(("read_file", {"path": "src/a.py"}))
    model = ScriptedModel([reads, reads, says("done"), says("well"), says("again"), says("so")])

    def desk() -> Desk:
        around = WorkspaceSources(tmp_path, tmp_path / "none", [])
        return Desk(model, tools=[ReadFile()], around=around, workspace=tmp_path, records=records)

    records: list[object] = []
    first = desk()
    await first.say("look at it")
    await first.say("and now?")
    told = [sum("no tabs" in item.message.text for item in request.view.items) for request in model.requests]
    assert told == [0, 1, 1, 1]
    records = list(first.journal.records)
    await first.session.close()
    (below / "AGENTS.md").write_text("In src: no tabs, no spaces.")
    second = desk()
    await second.say("go on")
    assert model.requests[-1].view.items[-1].message.text.count("no spaces") == 1
    await second.say("go on")
    assert sum("no spaces" in item.message.text for item in model.requests[-1].view.items) == 1
    assert not any("gone" in item.message.text for item in model.requests[-1].view.items)
    await second.session.close()
