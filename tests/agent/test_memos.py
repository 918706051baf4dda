"""A memo from the call to the request: word for word through compactions, changed by the person, undone."""

from __future__ import annotations

from itertools import repeat

from ctxchat.core.budget import Window
from ctxchat.core.memos import memos_of
from ctxchat.core.options import Options
from ctxchat.core.ports import ToolPort
from ctxchat.core.record import CompactionRecord
from ctxchat.tools.memos import WriteMemo
from tests.agent.desk import Desk
from tests.agent.test_long_turns import Writer
from tests.agent.test_turn import of
from tests.doubles.scripted import Reply, ScriptedModel, calls, says

WHY = "SQLite: no server may run on the pier.\nPostgres was weighed, and turned down."
LONG = "the tide gauge at pier seven reports every ninety seconds to the logger cormorant " * 25


def memo_tool(desks: list[Desk]) -> ToolPort:
    """The tool over the record of the only one of these, as soon as it is there."""
    return WriteMemo(lambda: {m.name: m.text for d in desks for m in memos_of(d.state.ledger).values()})


def wrote(*memos: tuple[str, str]) -> list[Reply]:
    """A round that writes these, and answers to what is said then."""
    return [calls(*(("memo", {"name": name, "text": text}) for name, text in memos)), *repeat(says(LONG), 8)]


def sent(desk: Desk) -> str:
    return "\n".join(item.message.text for item in desk.session.view.items)


async def test_it_stands_word_for_word_after_compactions_and_a_change_of_it_is_undone() -> None:
    desks: list[Desk] = []
    script = wrote(("store", WHY), ("store", "x" * 1_001), ("gone", ""))
    model = ScriptedModel(script, window=Window(6_000, "loaded"))
    options = Options(keep_recent=2, strategy="summarize", prepare=False)
    desk = Desk(model, tools=[memo_tool(desks)], options=options, summariser=Writer())
    desks.append(desk)
    await desk.say("begin")
    results = [m.text for m in desk.state.ledger.messages() if m.role == "tool"]
    assert results[0] == "Kept. 1 memo, 82 of 6,000 characters."
    assert "at most 1,000" in results[1] and "no memo 'gone'" in results[2]
    for _ in range(2):
        await desk.say(LONG)
        await desk.say(LONG)
        assert of(await desk.free_up(), CompactionRecord)[-1].outcome == "compacted"
        assert sent(desk).count(WHY) == 1
    before = desk.state.ledger.live()
    await desk.session.changes.memo("store", "Postgres")
    assert sent(desk).endswith('[The person changed your memo "store". From now on it says:]\nPostgres')
    await desk.session.changes.undo()
    assert memos_of(desk.state.ledger)["store"].text == WHY and "From now on" not in sent(desk)
    assert desk.state.ledger.live()[:-1] == before and desk.folded() == desk.state
    await desk.session.close()
