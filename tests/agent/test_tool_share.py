"""Five hundred tools of servers do not fill a window: what fits is sent, and it is said what does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.budget import Window
from ctxchat.core.events import Notice
from ctxchat.core.tool_share import MAX_TOOLS_SHARE, afford
from ctxchat.core.view import ToolSpec
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, says


def heavy(server: str, many: int) -> list[Echo]:
    return [Echo(f"{server}__tool_{number}") for number in range(many)]


async def test_a_server_with_too_many_tools_is_left_out_and_named_once() -> None:
    model = ScriptedModel([says("one"), says("two")], window=Window(12_000, "configured"))
    desk = Desk(model, tools=[Echo(), *heavy("huge", 500), *heavy("small", 3)])
    events = [*await desk.say("hello"), *await desk.say("and")]
    sent = [tool.name for tool in model.views[-1].tools]
    assert sent == ["echo", "small__tool_0", "small__tool_1", "small__tool_2"]
    [notice] = [n.text for n in of(events, Notice) if "huge" in n.text]
    assert "500 tools" in notice and "small" not in notice and "/mcp" in notice


async def test_all_are_sent_where_there_is_room() -> None:
    model = ScriptedModel([says("one")], window=Window(200_000, "configured"))
    desk = Desk(model, tools=[Echo(), *heavy("huge", 100)])
    assert not [n for n in of(await desk.say("hello"), Notice) if "huge" in n.text]
    assert len(model.views[-1].tools) == 101


names = st.from_regex(r"[ab](__[a-z]{1,2})?", fullmatch=True)


@given(st.dictionaries(names, st.integers(1, 500)), st.integers(1, 4000))
def test_what_is_sent_fits_and_servers_stay_whole(weights: dict[str, int], limit: int) -> None:
    tools = [ToolSpec(name, "", {}) for name in weights]
    sent = [tool.name for tool in afford(tools, lambda tool: weights[tool.name], limit).tools]
    theirs = [name for name in sent if "__" in name]
    assert sum(weights[name] for name in theirs) <= limit * MAX_TOOLS_SHARE
    assert all(name in sent for name in weights if "__" not in name or name[0] in {n[0] for n in theirs})
    assert sent == [name for name in weights if name in sent]
