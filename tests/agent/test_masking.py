"""What a call brings back, on its way into the conversation: masked whatever way it takes, and never written back as a mark."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ctxchat.agent.gate import Gate
from ctxchat.agent.toolbox import Outcome, Toolbox
from ctxchat.core.errors import ToolError
from ctxchat.core.events import Event, ToolProgress
from ctxchat.core.messages import ToolCall
from ctxchat.core.permissions import Access, Demand
from ctxchat.core.ports import ToolContext, ToolOutput, ToolPiece, ToolText
from ctxchat.core.secrets import Masking, marks_in
from ctxchat.core.view import ToolSpec
from tests.agent.desk import StillClock
from tests.doubles.planted import planted

KEY, OTHER = (each.secret for each in planted(5) if each.kind in {"OpenAI, project", "Anthropic"})


class Says:
    """Gives these pieces, then fails where it is told to."""

    parallel = True

    def __init__(self, *pieces: ToolPiece, access: Access = "read", fails: str = "") -> None:
        self._pieces, self._access, self._fails = pieces, access, fails

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("says", "", {"type": "object", "properties": {}})

    def demand(self, arguments: dict[str, object], context: ToolContext) -> Demand:
        return Demand(self._access)

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolPiece]:
        for piece in self._pieces:
            yield piece
        if self._fails:
            raise ToolError(self._fails)


async def ran(tool: Says, arguments: str = "{}") -> tuple[Outcome, list[Event], Toolbox]:
    box = Toolbox([tool], Gate("all"), StillClock(), workspace="/", mask=Masking(b"k" * 32))
    events: list[Event] = []
    outcome: Outcome | None = None
    async for item in box.run([ToolCall("1", "says", arguments)]):
        if isinstance(item, Outcome):
            outcome = item
        else:
            events.append(item)
    assert outcome
    return outcome, events, box


async def test_a_result_and_its_diff_are_masked_and_the_text_around_is_whole() -> None:
    outcome, _, _ = await ran(Says(ToolOutput(f"before\n{KEY}\nafter {OTHER}", diff=f"+{KEY}\n")))
    marks = marks_in(outcome.output.text)
    assert outcome.output.text == f"before\n{marks[0]}\nafter {marks[1]}" and outcome.output.diff == f"+{marks[0]}\n"


async def test_what_a_call_shows_at_work_is_masked_across_its_pieces() -> None:
    pieces = [ToolText(text) for text in ("start\n", KEY[:20], KEY[20:60], f"{KEY[60:]}\nmore", OTHER[:30])]
    outcome, events, box = await ran(Says(*pieces, ToolOutput("done")))
    shown = "".join(event.text for event in events if isinstance(event, ToolProgress))
    assert shown.startswith("start\n[masked ") and KEY[20:60] not in shown and outcome.output.text == "done"
    assert KEY[20:60] not in box.begun["1"] and "more" in box.begun["1"]


async def test_an_error_is_masked() -> None:
    outcome, _, _ = await ran(Says(fails=f"no such key: {KEY}"))
    assert outcome.output.status == "error" and outcome.output.text.startswith("no such key: [masked ")


async def test_a_mark_is_not_written_over_the_secret_it_stands_for() -> None:
    mark = Masking(b"k" * 32)(KEY)
    for access in ("write", "run", "network"):
        outcome, _, _ = await ran(Says(ToolOutput("written"), access=access), f'{{"content": "a = {mark}"}}')
        assert outcome.output.status == "error" and "stands for a secret" in outcome.output.text
    outcome, _, _ = await ran(Says(ToolOutput("found")), f'{{"pattern": "{mark}"}}')
    assert outcome.output.text == "found", "looking for one does no harm"
