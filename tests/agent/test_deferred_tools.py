"""Tools that a Claude finds on demand are loaded by its own way, and nothing of what was sent changes; elsewhere they are told in
words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxchat.core.events import Event, Notice
from ctxchat.core.head import ToolSpec
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest
from ctxchat.core.tool_share import FIND_TOOL, description
from ctxchat.models.anthropic import loads_tools_late
from ctxchat.models.client import IN_WORDS, ModelClient
from ctxchat.models.direct import Connections, DirectTransport, server_of
from ctxchat.models.settings import ModelSettings
from ctxchat.tools.mcp.finding import FindTools
from tests.agent.desk import Desk, Echo
from tests.agent.test_append_only import Guests
from tests.doubles.requests import READ_FILE, listen, view_of
from tests.doubles.strict import StrictClaude, answers, appended, says, thought, use
from tests.doubles.strict.script import Answer

HEAVY = [Echo(f"huge__tool_{number}") for number in range(400)]
LATE = [Echo(f"late__tool_{number}") for number in range(400)]
KNOWN = ToolSpec("files__put", "Puts.", {"type": "object", "properties": {"text": {"type": "string"}}})


def model_of(server: StrictClaude, connections: Connections, name: str = "anthropic/claude-fable-5-2") -> ModelClient:
    settings = ModelSettings(name, api_base=server.root, window=100_000, timeout=30)
    way = server_of(settings, {})
    assert way is not None
    return ModelClient(settings, DirectTransport(settings, way, connections), lambda _: "key", loads_late=True)


def finds(wanted: str) -> Answer:
    return answers(thought("Which?"), use(FIND_TOOL, wanted=wanted))


def found_and_called(server: str, number: int) -> list[Answer]:
    name = f"{server}__tool_{number}"
    return [finds(f"{name} and {server}__tool_1"), answers(thought("That."), use(name, text=f"ran {number}"))]


async def lived(server: StrictClaude, said: Sequence[str], guests: Guests) -> tuple[Desk, list[Event]]:
    """A session in which a server of many tools is there, and another one joins after the first message."""
    connections = Connections()
    finder = FindTools(lambda: [tool.spec for tool in guests.offered])
    desk = Desk(
        model_of(server, connections),
        tools=[Echo(), finder],
        servers=guests,
        options=Options(auto_compact="off", prepare=False, retries=0),
        mode="all",
        system="Be brief. " * 500,
    )
    events: list[Event] = []
    for text in said:
        events += await desk.say(text)
        guests.offered = [*HEAVY, *LATE]
    await connections.close()
    return desk, events


async def test_what_a_claude_finds_is_loaded_and_its_head_stays_as_it_was_sent() -> None:
    guests = Guests(*HEAVY)
    script = [*found_and_called("huge", 7), says("One."), *found_and_called("late", 9), says("Two."), says("Three.")]
    async with StrictClaude(script) as server:
        desk, events = await lived(server, ["first", "then", "and"], guests)
        last = server.exchanges[-1]
    assert [e.refused for e in server.exchanges] == [""] * 7 and not server.mismatches
    assert not appended(server.exchanges) and server.read_share() > 0.9
    assert not [e for e in events if isinstance(e, Notice) and e.level == "warning"]
    assert HEAVY[7].ran == [{"text": "ran 7"}] and LATE[9].ran == [{"text": "ran 9"}]
    late = [tool["name"] for tool in last.body["tools"] if tool.get("defer_loading")]
    assert sorted(late) == ["huge__tool_1", "huge__tool_7", "late__tool_1", "late__tool_9"]
    results = [g.messages[1].text for g in desk.state.ledger.groups if g.kind == "round"]
    assert HEAVY[7].spec.schema in results[0], "the record has it in words, for whoever goes on with the session"
    assert abs(desk.session.context_usage.used - last.prompt) < 0.03 * last.prompt


async def test_a_server_that_takes_no_references_is_told_in_words_and_a_person_that_it_is() -> None:
    guests = Guests(*HEAVY)
    script = [*found_and_called("huge", 7), says("One."), finds("huge__tool_3"), says("Two.")]
    async with StrictClaude(script, loads_late=False) as server:
        _, events = await lived(server, ["first", "then"], guests)
    assert ["defer_loading" in e.refused for e in server.exchanges] == [False, True, *[False] * 4]
    assert HEAVY[7].ran[-1] == {"text": "ran 7"} and not server.mismatches
    told = [e.text for e in events if isinstance(e, Notice) and e.text.startswith(IN_WORDS)]
    assert len(told) == 1 and "Extra inputs" in told[0]


@pytest.mark.parametrize(
    ("found", "loaded"),
    [
        ([[KNOWN]], ["files__put"]),
        ([[KNOWN, READ_FILE]], []),  # the head has it
        ([[KNOWN], [ToolSpec("files__put", "Puts.", {})]], ["files__put"]),  # another by now
    ],
)
async def test_what_is_sent_as_references(found: list[list[ToolSpec]], loaded: list[str]) -> None:
    said = [Message(0, "system", "Be brief."), Message(1, "user", "Put it there.")]
    for number, tools in enumerate(found):
        said += [Message(2, "assistant", "", (ToolCall(f"c{number}", FIND_TOOL, "{}"),))]
        said += [Message(3, "tool", description(tools), call_id=f"c{number}")]
    connections = Connections()
    async with StrictClaude([says("ok")], binds=False) as server:
        await listen(model_of(server, connections), ModelRequest(view_of(*said)))
        body = server.exchanges[-1].body
    await connections.close()
    assert [tool["name"] for tool in body["tools"] if tool.get("defer_loading")] == loaded
    kinds = [type(block["content"]) for message in body["messages"][2::2] for block in message["content"]]
    assert kinds == [list if loaded and not number else str for number in range(len(found))]


@pytest.mark.parametrize(
    ("model", "base", "late"),
    [
        ("anthropic/claude-haiku-4-5", "", True),
        ("anthropic/claude-opus-7-1", "", True),  # in no list yet
        ("anthropic/claude-opus-5-5", "https://gateway.example.org", False),
        ("anthropic/kimi-k3", "", False),
        ("bedrock/anthropic.claude-opus-5-5", "", False),
        ("openai/gpt-6.2-sol", "", False),
    ],
)
def test_who_is_sent_references(model: str, base: str, late: bool) -> None:
    assert loads_tools_late(ModelSettings(model, api_base=base)) == late


async def test_a_definition_that_is_refused_is_no_end_of_the_conversation() -> None:
    said = [Message(0, "system", "Be brief."), Message(1, "user", "Put it there.")]
    said += [Message(2, "assistant", "", (ToolCall("c", FIND_TOOL, "{}"),))]
    said += [Message(3, "tool", description([KNOWN]), call_id="c")]
    wrong = "tools.1.custom.input_schema: JSON schema is invalid."
    connections = Connections()
    async with StrictClaude([Answer(status=400, error=("invalid_request_error", wrong)), says("ok")]) as server:
        heard = await listen(model_of(server, connections), ModelRequest(view_of(*said)))
    await connections.close()
    assert heard.text == "ok" and heard.end is not None and wrong in heard.end.notes.remark
    assert [len(e.body["tools"]) for e in server.exchanges] == [2, 1]


async def test_a_definition_that_is_refused_changes_nothing_that_was_accepted_before() -> None:
    guests = Guests(*HEAVY)
    wrong = "tools.5.custom.input_schema: JSON schema is invalid."
    refusal = Answer(status=400, error=("invalid_request_error", wrong))
    script = [
        *found_and_called("huge", 7),
        says("One.", "hm"),
        finds("late__tool_9"),
        refusal,
        says("Two.", "h2"),
        says("3"),
    ]
    async with StrictClaude(script) as server:
        await lived(server, ["first", "then", "and"], guests)
    assert server.mismatches == [] and [bool(e.refused) for e in server.exchanges].count(True) == 1
    again = next(n for n, e in enumerate(server.exchanges) if e.refused) + 1
    assert server.exchanges[again].read >= server.exchanges[again - 2].prompt - 50, "what was held is read"
