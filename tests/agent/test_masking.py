"""What a call brings back, on its way into the conversation: masked whatever way it takes, and never written back as a mark."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest

from ctxchat.agent.turn.approvals import Approvals
from ctxchat.agent.turn.tool_runner import CallOutcome, ToolRunner, Workplace
from ctxchat.core.errors import ToolError
from ctxchat.core.events import Event, ToolProgress
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.masked_record import MaskedRecord
from ctxchat.core.messages import ToolCall
from ctxchat.core.openai import from_wire
from ctxchat.core.permissions import Access, AccessRequest
from ctxchat.core.ports import SummaryTask, ToolContext, ToolOutput, ToolPiece, ToolText
from ctxchat.core.secrets import Masking, marks_in
from ctxchat.core.view import ToolSpec
from tests.agent.desk import Desk, StillClock
from tests.doubles.planted import planted
from tests.doubles.scripted import ScriptedModel, says

KEY, OTHER = (each.secret for each in planted(5) if each.kind in {"OpenAI, project", "Anthropic"})


class Says:
    """Gives these pieces, then fails where it is told to."""

    def __init__(self, *pieces: ToolPiece, access: Access = "read", fails: str = "") -> None:
        self._pieces, self._access, self._fails = pieces, access, fails

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("says", "", {"type": "object", "properties": {}})

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        return AccessRequest(self._access)

    def reads(self, arguments: Mapping[str, object]) -> bool:
        return True

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolPiece]:
        for piece in self._pieces:
            yield piece
        if self._fails:
            raise ToolError(self._fails)


async def ran(tool: Says, arguments: str = "{}") -> tuple[CallOutcome, list[Event], ToolRunner]:
    box = ToolRunner([tool], Approvals("all"), StillClock(), Workplace("/"), mask=Masking(b"k" * 32))
    events: list[Event] = []
    outcomes: list[CallOutcome] = []

    async def tell(event: Event) -> None:
        events.append(event)

    async def ended(outcome: CallOutcome) -> None:
        outcomes.append(outcome)

    await box.run([ToolCall("1", "says", arguments)], tell, ended)
    [outcome] = outcomes
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


OLD = [
    {"role": "user", "content": f"my own {OTHER}"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "function": {"name": "shell", "arguments": '{"command": "cat .env"}'}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": f"Error: no such key: {KEY}\n" + "a line of it\n" * 400},
    {"role": "assistant", "content": "So it is."},
    *({"role": "user" if n % 2 == 0 else "assistant", "content": f"word {n} " * 200} for n in range(12)),
]


def old_desk(mask: Masking, model: ScriptedModel, summariser: Reads | None = None) -> Desk:
    """A session from before anything was masked, as an earlier version left it."""
    groups = group_messages([from_wire(wire, seq) for seq, wire in enumerate(OLD, 1)])
    masked = MaskedRecord(mask, lambda: (mask.on, mask.allowed))
    return Desk(model, records=[Sealed((group,)) for group in groups], masked=masked, summariser=summariser)


class Reads:
    """Writes down what a summariser is given."""

    model = "scripted/summariser"

    def __init__(self) -> None:
        self.tasks: list[SummaryTask] = []

    async def summarise(self, task: SummaryTask) -> AsyncIterator[str]:
        self.tasks.append(task)
        yield "What was done so far."


async def test_a_result_stored_before_there_was_masking_is_masked_in_requests_and_whole_in_the_record() -> None:
    model = ScriptedModel([says("ok")])
    desk = old_desk(Masking(b"k" * 32), model)
    await desk.say("go on")
    await desk.say("and on")
    for request in model.requests:
        sent = str(request.view.items)
        assert KEY not in sent and OTHER in sent and "no such key: [masked " in sent
    first, second = (request.view.items for request in model.requests)
    assert [item.message for item in first] == [item.message for item in second[: len(first)]], "the prefix stays"
    assert sum(item.tokens for item in second) + sum(model.requests[1].view.tool_tokens) == model.requests[1].view.raw
    context_usage = desk.session.context_usage
    assert sum(section.tokens for section in context_usage.sections) == context_usage.window
    assert KEY in str(desk.folded().ledger) and KEY in str(desk.state.ledger)


@pytest.mark.parametrize("steps", [None, ["shrink_tool_results"]])
async def test_nothing_that_a_pass_makes_of_an_old_result_holds_its_secret(steps: list[str] | None) -> None:
    model = ScriptedModel([says("ok")])
    summariser = Reads()
    desk = old_desk(Masking(b"k" * 32), model, summariser)
    await desk.session.measure()
    await desk.free_up(steps)
    change = desk.state.ledger.changes[-1]
    made = str(summariser.tasks if steps is None else change)
    assert "no such key: [masked " in made and KEY not in str((change, summariser.tasks))
    await desk.say("go on")
    assert KEY not in str(model.requests[-1].view)


async def test_what_is_allowed_from_now_on_is_sent_from_now_on() -> None:
    mask, model = Masking(b"k" * 32), ScriptedModel([says("ok")])
    desk = old_desk(mask, model)
    await desk.say("go on")
    mask.allowed = tuple(mask.seen)
    await desk.say("and on")
    assert KEY not in str(model.requests[0].view) and KEY in str(model.requests[1].view)
