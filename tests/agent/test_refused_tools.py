"""Tools that a real server on loopback refuses without saying which: found, told of in words, and the session goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from ctxchat.agent.turn.refused_tools import MAX_PROBES
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Failed, Notice, TurnFinished, Usage
from ctxchat.core.head import ToolSpec
from ctxchat.core.journal import Record
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections, DirectTransport, server_of
from ctxchat.models.settings import ModelSettings
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, call, calls, refuses, says
from tests.doubles.scripted import ScriptedModel
from tests.doubles.scripted import says as speaks

pytestmark = pytest.mark.asyncio(loop_scope="module")

REFUSALS = {
    "llama.cpp": refuses(400, "Failed to initialize samplers: failed to parse grammar", type="invalid_request_error"),
    "llama.cpp, older": refuses(500, "JSON schema conversion failed:\\nUnrecognized schema: {}", type="server_error"),
    "kimi": refuses(
        400,
        "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: "
        "<At path 'properties.depth': type is not defined>",
        type="invalid_request_error",
    ),
    "vllm": refuses(
        400, "The provided JSON schema contains features not supported by xgrammar.", type="BadRequestError"
    ),
    "sglang": refuses(400, "Invalid grammar request: grammar is not supported", type="BadRequest"),
}

BAD: dict[str, object] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "depth": {"type": "integer", "description": "how deep"}},
    "required": ["text"],
}


class Bad(Echo):
    """A tool with an argument that the server takes no description of; it goes on with its arguments in words."""

    @property
    def spec(self) -> ToolSpec:
        return msgspec.structs.replace(super().spec, parameters=BAD)


def strict(
    refusal: Reply, then: Callable[[dict[str, Any]], Reply], fault: Callable[[dict[str, Any]], bool]
) -> Callable[[dict[str, Any]], Reply]:
    """A server that refuses each request with a tool of which `fault` is true."""

    def answer(body: dict[str, Any]) -> Reply:
        functions = [tool["function"] for tool in body.get("tools") or ()]
        return refusal if any(fault(function) for function in functions) else then(body)

    return answer


def deep(function: dict[str, Any]) -> bool:
    return "depth" in function["parameters"].get("properties", {})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def connections() -> AsyncIterator[Connections]:
    connections = Connections()
    yield connections
    await connections.close()


def desk_at(double: ModelDouble, connections: Connections, tools: list[Echo], records: list[Record] = []) -> Desk:  # noqa: B006
    settings = ModelSettings(name="openai/double", api_base=double.base_url, window=400_000, timeout=30)
    server = server_of(settings, {})
    assert server is not None
    model = ModelClient(settings, DirectTransport(settings, server, connections), find=lambda name: "key")
    return Desk(model, tools=tools, records=records, mode="all")


def many(*bad: int, of: int = 40) -> list[Echo]:
    return [Bad(f"s__bad{n}") if n in bad else Echo(f"s__t{n}") for n in range(of)]


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_the_refused_tool_is_found_and_told_of_in_words(connections: Connections, refusal: Reply) -> None:
    async with ModelDouble(strict(refusal, lambda body: says("hello"), deep)) as double:
        desk = desk_at(double, connections, many(23))
        events = await desk.say("hi")
        assert of(events, TurnFinished)[0].status == "done"
        assert "s__bad23: in words from now on" in " ".join(n.text for n in of(events, Notice))
        assert len(double.requests) <= 16
        sent = {t["function"]["name"]: t["function"] for t in double.requests[-1].body["tools"]}
        assert len(sent) == 40 and "how deep" in sent["s__bad23"]["description"]
        assert sent["s__bad23"]["parameters"]["additionalProperties"] is True
        assert len(desk.session.state.ledger.groups) == 2  # nothing of the search is in the record
        asked = len(double.requests)
        await desk.say("and now?")
        again = desk_at(double, connections, many(23), desk.journal.records)
        await again.say("after a restart?")
        assert len(double.requests) == asked + 2


async def test_a_tool_in_words_is_called_as_any_other(connections: Connections) -> None:
    def then(body: dict[str, Any]) -> Reply:
        told = body["messages"][-1]["role"] == "tool" or len(body["messages"]) == 1
        return says("done") if told else calls(call("s__bad0", text="so", depth=3))

    async with ModelDouble(strict(REFUSALS["kimi"], then, deep)) as double:
        desk = desk_at(double, connections, tools := many(0, of=3))
        assert of(await desk.say("hi"), TurnFinished)[0].status == "done"
        assert tools[0].ran == [{"text": "so", "depth": 3}]


async def test_one_that_is_refused_in_words_too_is_left_out(connections: Connections) -> None:
    async with ModelDouble(strict(REFUSALS["vllm"], lambda _: says("ok"), lambda f: "bad" in f["name"])) as double:
        desk = desk_at(double, connections, many(1, 6, of=9))
        events = await desk.say("hi")
        assert of(events, TurnFinished)[0].status == "done"
        assert "s__bad1, s__bad6: left out" in of(events, Notice)[-1].text
        assert len(double.requests[-1].body["tools"]) == 7


async def test_so_many_requests_and_no_more(connections: Connections) -> None:
    everyone = many(*range(64), of=64)
    async with ModelDouble(strict(REFUSALS["llama.cpp"], lambda _: says("ok"), deep)) as double:
        events = await desk_at(double, connections, everyone).say("hi")
        assert of(events, TurnFinished)[0].status == "done" and len(double.requests) == MAX_PROBES + 2
        assert all(not deep(tool["function"]) for tool in double.requests[-1].body["tools"])


async def test_tools_that_are_only_refused_together_all_are_in_words(connections: Connections) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        described = sum(deep(tool["function"]) for tool in body.get("tools") or ())
        return refuses(400, "grammar too large") if described > 2 else says("ok")

    async with ModelDouble(answer) as double:
        assert of(await desk_at(double, connections, many(0, 1, 2, of=3)).say("hi"), TurnFinished)[0].status == "done"


async def test_where_no_tool_is_at_fault_the_refusal_is_told(connections: Connections) -> None:
    refusal = refuses(400, "failed to parse grammar")
    async with ModelDouble(lambda body: refusal) as double:
        desk = desk_at(double, connections, many(of=9))
        assert "failed to parse grammar" in of(await desk.say("hi"), Failed)[0].text and len(double.requests) == 2
        assert not desk.session.state.reduced_tools


async def test_where_nobody_answers_the_search_it_is_ended() -> None:
    refused = ModelError("No.", kind="bad_request", status=400, body="failed to parse grammar")
    busy = ModelError("Later.", kind="auth", status=401)
    model = ScriptedModel([[refused], speaks("ok"), [refused], [busy], speaks("hello")])
    desk = Desk(model, tools=many(0, of=4))
    assert of(await desk.say("hi"), TurnFinished)[0].status == "done"
    assert [len(names) for names in desk.session.state.reduced_tools.values()] == [4]


async def test_what_the_search_costs_is_booked() -> None:
    refused = ModelError("No.", kind="bad_request", status=400, body="failed to parse grammar")
    paid = speaks("ok", usage=Usage(900, 1, cost_usd=0.25))
    model = ScriptedModel([[refused], paid, [refused], [refused], paid, speaks("hello")])
    desk = Desk(model, tools=many(0, of=2))
    assert of(await desk.say("hi"), TurnFinished)[0].status == "done"
    assert [len(names) for names in desk.session.state.reduced_tools.values()] == [1]
    assert desk.session.state.cost_usd == 0.5
    await desk.conversation.flush()
    assert desk.folded() == desk.state
