"""A request is the last one plus something at its end, whatever happens around a conversation; a break is told with its cause."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.conversation import UnexplainedBreak
from ctxchat.core.budget import Window
from ctxchat.core.changes import rewind_change
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Notice, TextDelta, TurnFinished
from ctxchat.core.head import ContextBlock
from ctxchat.core.journal import Changed, Measured
from ctxchat.core.options import Options
from ctxchat.core.ports import ToolPort
from ctxchat.core.view import Item, View
from tests.agent.desk import Around, Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import Reply, ScriptedModel, calls, fails, says
from tests.examples import examples

LOST = ModelError("connection lost", kind="connection")
WIDE = Window(200_000, "configured")


class Guests:
    """Fulfils `ToolServers`: the tools of a server that joins and leaves are those in `offered`."""

    def __init__(self, *offered: ToolPort) -> None:
        self.offered = list(offered)

    def tools(self) -> Sequence[ToolPort]:
        return self.offered

    async def settled(self, seconds: float) -> None:
        return None


def desk_with(
    model: ScriptedModel, around: Around, guests: Guests, other: ScriptedModel, records: Sequence[object] = ()
) -> Desk:
    return Desk(
        model,
        tools=[Echo()],
        servers=guests,
        around=around,
        records=records,  # type: ignore[arg-type]
        options=Options(auto_compact="off", prepare=False, retries=0),
        fallback_of=lambda name: other if name == model.name else None,
        others={other.name: other},
    )


def begins(later: View, earlier: View) -> bool:
    """The later request is the earlier one with something behind it."""
    shown = [(item.message, item.section) for item in later.items]
    return later.tools == earlier.tools and shown[: len(earlier.items)] == [
        (i.message, i.section) for i in earlier.items
    ]


STEPS = ("say", "tool", "parallel", "cut", "memory", "git", "day", "join", "leave", "restart", "fallback", "model late")


@examples(40, 300)
@given(st.lists(st.sampled_from(STEPS), min_size=2, max_size=14))
async def test_whatever_happens_a_request_begins_with_the_one_before(steps: list[str]) -> None:
    replies: list[Reply] = []
    model = ScriptedModel(
        (reply for reply in iter(lambda: replies.pop(0) if replies else says("ok"), None)), window=WIDE
    )
    other = ScriptedModel(itertools.repeat(says("in its place")), name="scripted/other", window=WIDE)
    around, guests = Around([ContextBlock("AGENTS.md", "be brief")], [ContextBlock("identity", "Date: 1")]), Guests()
    desk = desk_with(model, around, guests, other)
    for number, step in enumerate(steps):
        match step:
            case "say":
                await desk.say(f"question {number}")
            case "tool":
                replies += [calls(("echo", {"text": f"t{number}"}), text="looking", reasoning="hm"), says("seen")]
                await desk.say(f"look {number}")
            case "parallel":
                replies += [calls(*[("echo", {"text": f"{number}-{n}"}) for n in range(3)]), says("all seen")]
                await desk.say(f"look thrice {number}")
            case "cut":
                replies += [fails(LOST, after="half a ")]
                other._script = iter([])  # nobody else answers
                await desk.say(f"long {number}")
                other._script = itertools.repeat(says("in its place"))
                if desk.state.ledger.groups[-1].kind == "reply" and desk.state.ledger.groups[-1].first.interrupted:
                    _ = [event async for event in desk.session.resume()]
            case "memory":
                around.memory = (ContextBlock("AGENTS.md", f"{around.memory[0].text}\nrule {number}"),)
            case "git":
                around.context = (*around.context[:1], ContextBlock("workspace", f"Git branch: b{number}\n M a.py"))
            case "day":
                around.context = (ContextBlock("identity", f"Date: {number}"), *around.context[1:])
            case "join":
                guests.offered = [Echo(f"server__tool{number}")]
            case "leave":
                guests.offered = []
            case "restart":
                desk = desk_with(model, around, guests, other, desk.journal.records)
            case "fallback":
                replies += [fails(ModelError("down", kind="server"))]
                await desk.say(f"and you {number}")
            case _:
                await desk.session.measure()
    assert desk.folded() == desk.state
    for asked in (model, other):
        for before, after in itertools.pairwise(asked.views):
            assert begins(after, before)


def told(view: View, source: str) -> list[Item]:
    return [item for item in view.items if source in item.source]


async def test_after_a_restart_one_note_tells_all_that_has_changed() -> None:
    around = Around([ContextBlock("AGENTS.md", "be brief")], [ContextBlock("identity", "Date: 1")])
    desk = Desk(ScriptedModel([says("a")]), around=around)
    await desk.say("one")
    later = Around([ContextBlock("AGENTS.md", "be brief\nuse tabs")], [ContextBlock("identity", "Date: 2")])
    again = Desk(ScriptedModel([says("b"), says("c")], name="scripted/new"), around=later, records=desk.journal.records)
    shown = await again.session.measure()
    assert "use tabs" in again.session.view.items[-1].message.text, "it is weighed before it is sent"
    await again.say("two")
    notes = [g for g in again.state.ledger.groups if g.kind == "note"]
    assert len(notes) == 1 and notes[0].source == "context:AGENTS.md, identity, model"
    text = notes[0].first.text
    assert "+ use tabs" in text and "Date: 2" in text and "scripted/new" in text and "be brief" not in text
    assert shown.used <= again.session.context_usage.used
    await again.say("three")
    assert [g.kind for g in again.state.ledger.groups].count("note") == 1


async def test_a_source_that_was_late_is_not_told_to_be_gone() -> None:
    around = Around((), [ContextBlock("workspace", "Git branch: main")])
    desk = Desk(ScriptedModel([says("a"), says("b")]), around=around)
    await desk.say("one")
    around.context, around.late_sources = (), frozenset({"workspace"})
    await desk.say("two")
    assert not [g for g in desk.state.ledger.groups if g.kind == "note"]


async def test_a_tool_that_joins_late_is_told_and_called_by_way_of_call_tool() -> None:
    guests, late = Guests(), Echo("server__late", writes=True)
    script = [says("hi"), calls(("call_tool", {"name": "server__late", "arguments": {"text": "there"}})), says("done")]
    model = ScriptedModel([*script, calls(("call_tool", {"arguments": {}})), says("oh")], window=WIDE)
    desk = desk_with(model, Around(), guests, ScriptedModel([], name="scripted/other"))
    await desk.say("one")
    guests.offered = [late]
    events = await desk.say("two", answers=["once"])
    assert late.ran == [{"text": "there"}]
    assert [e.name for e in events if type(e).__name__ == "ToolStarted"] == ["server__late"]  # type: ignore[attr-defined]
    assert "server__late" in told(model.views[1], "context:tools")[0].message.text
    assert model.views[1].tools == model.views[0].tools and "server__late" not in {t.name for t in model.views[1].tools}
    await desk.say("three")
    assert "needs `name`" in model.views[-1].items[-1].message.text


async def test_a_provider_that_is_asked_for_every_request_is_at_the_end_and_its_cost_has_a_name() -> None:
    around = Around()
    around.always = (ContextBlock("clock", "12:00"),)
    desk = Desk(ScriptedModel([says("a"), says("b")]), around=around)
    await desk.say("one")
    around.always = (ContextBlock("clock", "12:01"),)
    await desk.say("two")
    view = desk.conversation.model.views[1]  # type: ignore[attr-defined]
    assert [i.message.text for i in view.items if i.source == "clock"] == [ContextBlock("clock", "12:01").attributed]
    broke = [r.broke for r in desk.journal.records if isinstance(r, Measured)]
    assert broke[0] is None and broke[1] and "clock, said with every request" in broke[1].cause


@pytest.mark.parametrize("kind", ["drop", "shrink", "compaction"])
async def test_a_break_is_told_with_its_cause_and_takes_bound_reasoning_out_for_good(kind: str) -> None:
    said = [says(f"answer {n}. " + "word " * 300, reasoning=f"thought {n}") for n in range(9)]
    model = ScriptedModel(said, window=WIDE, keeps_reasoning=True, binds_thinking=True)
    desk = Desk(
        model, options=Options(keep_recent=2, min_messages=1, prepare=False, auto_compact="off", strategy="truncate")
    )
    for number in range(5):
        await desk.say(f"question {number}")
    assert all(i.message.reasoning for i in model.views[-1].items if i.kind == "reply")
    if kind == "compaction":
        await desk.free_up()
    else:
        await getattr(desk.session.changes, kind)("g4")
    await desk.say("after")
    after = model.views[-1]
    place = next(r.broke for r in reversed(desk.journal.records) if isinstance(r, Measured))
    assert place and place.cause.startswith(kind) and place.lost > 0
    kept = [i.message.seq for i in after.items if i.message.reasoning]
    assert kept == ([2] if kind != "compaction" else []), "what stands before the first difference is not touched"
    await desk.say("and on")
    assert begins(model.views[-1], after) and desk.folded() == desk.state
    assert [i.message.seq for i in model.views[-1].items if i.message.reasoning and i.message.seq > 10]


async def test_undoing_the_last_turn_is_free() -> None:
    model = ScriptedModel([says("a"), says("b"), says("c")])
    desk = Desk(model)
    await desk.say("one")
    await desk.say("two")
    change = rewind_change(desk.state.ledger, "g3", "")
    await desk.conversation.write(Changed(change))
    await desk.say("three")
    broke = next(r.broke for r in reversed(desk.journal.records) if isinstance(r, Measured))
    assert broke and broke.lost == 0 and broke.cause.startswith("rewind")


async def test_a_refusal_for_a_changed_beginning_is_recovered_from_once_and_remembered() -> None:
    refusal = fails(ModelError("thinking is bound to a different conversation", kind="prefix_changed"))
    model = ScriptedModel(
        [says("a", reasoning="deep"), refusal, says("b", reasoning="deeper"), says("c")], keeps_reasoning=True
    )
    desk = Desk(model)
    await desk.say("one")
    events = await desk.say("two")
    assert of(events, TurnFinished)[0].status == "done" and "".join(e.text for e in of(events, TextDelta)) == "b"
    assert any("reasoning" in n.text for n in of(events, Notice))
    assert not [i for i in model.views[2].items if i.message.reasoning]
    again = Desk(model, records=desk.journal.records)
    await again.say("three")
    assert [i.message.reasoning.text for i in model.views[-1].items if i.message.reasoning] == ["deeper"]


async def test_a_second_refusal_is_the_end_of_the_turn_and_not_of_the_session() -> None:
    refusal = fails(ModelError("bound to a different conversation", kind="prefix_changed"))
    model = ScriptedModel([says("a", reasoning="x"), refusal, refusal, says("c")], keeps_reasoning=True)
    desk = Desk(model)
    await desk.say("one")
    assert of(await desk.say("two"), TurnFinished)[0].status == "error"
    assert of(await desk.say("three"), TurnFinished)[0].status == "done"


async def test_a_difference_that_nothing_explains_fails_a_strict_run() -> None:
    def forgetful(items: tuple[Item, ...]) -> tuple[Item, ...]:
        return items if len(items) < 3 else items[1:]

    desk = Desk(ScriptedModel([says("a"), says("b"), says("c")]), transforms=[forgetful])
    await desk.say("one")
    with pytest.raises(UnexplainedBreak):
        await desk.say("two")


async def test_another_agent_or_other_instructions_make_the_head_anew() -> None:
    model = ScriptedModel([says("a"), says("b"), says("c")])
    desk = Desk(model, configure=None)
    await desk.say("one")
    await desk.conversation.configure(msgspec.structs.replace(desk.config, system="Be bold."), desk.tool_runner.specs)
    await desk.say("two")
    assert model.views[1].items[0].message.text == "Be bold."
    broke = next(r.broke for r in reversed(desk.journal.records) if isinstance(r, Measured))
    assert broke and "the head" in broke.cause
    again = Desk(model, records=desk.journal.records)
    await again.say("three")
    assert model.views[2].items[0].message.text == "Be bold.", "as it was sent, not as it would be made now"
