"""Five hundred tools of servers do not fill a window: what fits is described, the others are named, found and called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.tools_on_demand import SHOWN, run, share
from ctxchat.core.budget import Window
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.core.tool_share import CALL_TOOL, FIND_TOOL, MAX_TOOLS_SHARE, MAX_TOOLS_TOKENS, ON_DEMAND, afford
from ctxchat.core.view import ToolSpec
from ctxchat.tools.mcp.finding import FindTools
from tests.agent.desk import Desk, Echo
from tests.agent.test_append_only import Guests
from tests.doubles.scripted import ScriptedModel, says


def heavy(server: str, many: int) -> list[Echo]:
    return [Echo(f"{server}__tool_{number}") for number in range(many)]


async def test_tools_that_are_too_heavy_are_named_and_described_on_demand() -> None:
    model = ScriptedModel([says("one"), says("two")], window=Window(12_000, "configured"))
    guests = [*heavy("huge", 500), *heavy("small", 3)]
    desk = Desk(model, tools=[Echo(), *guests])
    await desk.say("hello")
    await desk.say("and")
    first, last = model.views
    assert [tool.name for tool in last.tools] == ["echo", "small__tool_0", "small__tool_1", "small__tool_2"]
    assert first.tools == last.tools and last.items[: len(first.items)] == first.items
    head = desk.conversation.ledger.head
    assert head is not None
    [names] = [block.text for block in head.context if block.source_id == ON_DEMAND]
    assert "huge" in names and FIND_TOOL in names and "small" not in names


async def test_all_are_sent_where_there_is_room() -> None:
    model = ScriptedModel([says("one")], window=Window(200_000, "configured"))
    desk = Desk(model, tools=[Echo(), *heavy("huge", 100)])
    await desk.say("hello")
    assert len(model.views[-1].tools) == 101


async def test_of_a_server_that_comes_late_the_names_are_told_and_the_head_stays() -> None:
    model = ScriptedModel([says("one"), says("two")], window=Window(200_000, "configured"))
    guests = Guests()
    desk = Desk(model, tools=[Echo(), FindTools(lambda: [tool.spec for tool in guests.offered])], servers=guests)
    await desk.say("hello")
    guests.offered = [*heavy("huge", 100), *heavy("small", 2)]
    await desk.say("and")
    first, last = model.views
    assert first.tools == last.tools and last.items[: len(first.items)] == first.items
    note = "\n".join(item.message.text for item in last.items[len(first.items) :])
    assert '"small__tool_1"' in note and "- huge__tool_7: " in note and '"huge__tool_7"' not in note
    assert desk.conversation.counter.count_text(note) < 2_000


names = st.from_regex(r"[ab](__[a-z]{1,2})?", fullmatch=True)


@given(st.dictionaries(names, st.integers(1, 500)), st.integers(1, 4000), st.sets(names))
def test_what_is_sent_fits_and_what_was_told_stays(weights: dict[str, int], limit: int, told: set[str]) -> None:
    tools = [ToolSpec(name, "", {}) for name in weights]
    afforded = afford(tools, lambda tool: weights[tool.name], len, limit, told)
    sent = [tool.name for tool in afforded.tools]
    theirs = [name for name in sent if "__" in name and name not in told]
    assert sum(weights[name] for name in theirs) <= max(0, min(limit * MAX_TOOLS_SHARE, MAX_TOOLS_TOKENS))
    assert all(name in sent for name in weights if "__" not in name or name in told)
    assert not {name[0] for name in theirs} & {n[0] for n in weights if "__" in n and n not in sent}
    assert sent == [name for name in weights if name in sent]
    assert len(afforded.on_demand) <= limit * MAX_TOOLS_SHARE


@pytest.mark.parametrize("window", [8_000, 32_000, 200_000, 1_000_000])
def test_three_hundred_tools_cost_two_thousand_tokens_at_most(window: int) -> None:
    assert share(window)[1] <= min(2_000, window * MAX_TOOLS_SHARE)


def test_the_right_tool_is_among_the_first_five_for_95_of_100_questions() -> None:
    assert sum(0 < question.place <= SHOWN for question in run()) >= 95


async def test_what_was_found_is_called_and_a_name_finds_its_tool() -> None:
    specs = [tool.spec for tool in heavy("huge", 40)]
    tool = FindTools(lambda: specs)
    for wanted in ("huge__tool_7", "huge__tool_7, huge__tool_9"):
        [output] = [piece async for piece in tool.run({"wanted": wanted}, ToolContext("c", "/", "", 1000, 1.0))]
        assert isinstance(output, ToolOutput)
        assert specs[7].schema in output.text and CALL_TOOL in output.text
        assert (specs[9].schema in output.text) == ("_9" in wanted) and specs[8].schema not in output.text
