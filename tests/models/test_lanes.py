"""The two ways to a server of OpenAI's form, side by side: what is sent, heard, counted and told of failures is the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from ctxchat.core.errors import ModelError
from ctxchat.models.direct import Connections
from ctxchat.models.process import ModelProcess
from tests.doubles.chaos import FAULTS
from tests.doubles.forms import FORMS
from tests.doubles.http_model import Seen
from tests.doubles.replies import OVERFLOWS, Reply, breaks, call, calls, says
from tests.doubles.requests import Heard, after_a_call, asks, listen
from tests.doubles.wire import without_nulls
from tests.models.served import FAMILIES, STRAIGHT, Way, model_at, served

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOOKS = calls(
    call("read_file", "call_00001", path="a long name.txt"),
    call("read_file", "call_00002", path="b [DONE].txt"),
    text="Looking.",
    reasoning="Both at once.",
    signature="c2ln",
    cached=40,
)


LOST_IN_EVENTS = {"error_event", "garbled", "malformed"}
"""Of Anthropic's events litellm loses the type of an error, making a status of 500 of it, and those that cannot be read."""


async def told(way: Way, family: str, reply: Reply, request: Any = None) -> tuple[dict[str, Any], Seen]:
    """Everything a caller learns of a reply."""
    heard = Heard()
    async with served(family, [reply]) as double:
        try:
            await listen(model_at(double, way, family), request or asks("hi"), heard)
            end: object = _settled(heard)
        except ModelError as error:
            end = (error.kind, error.status, error.code, error.retry_after, error.text)
            if family == "anthropic" and reply.fault in LOST_IN_EVENTS:
                end = error.kind
    return {"text": heard.text, "thought": heard.reasoning, "end": end}, double.requests[0]


def _settled(heard: Heard) -> object:
    assert heard.end is not None
    made = re.compile(r"call_[0-9a-f]{24}")  # where the server gave no id
    usage = heard.end.usage
    if usage is not None:  # litellm makes figures up where the server gave none, and rounds a little
        usage = None if usage.estimated else replace(usage, cost_usd=pytest.approx(usage.cost_usd))
    called = [(made.sub("made", c.id), c.name, c.arguments) for c in heard.end.calls]
    blocks = heard.end.received.blocks if heard.end.received else ""
    if (
        blocks.endswith(":null}") or '"thinking"' not in blocks
    ):  # litellm has one field for all thoughts, and joins texts
        blocks = ""
    return heard.end.finish, called, blocks, usage


async def alike(worker: ModelProcess, connections: Connections, family: str, reply: Reply, request: Any = None) -> None:
    through, asked = await told(worker, family, reply, request)
    straight, sent = await told(connections, family, reply, request)
    assert straight == through
    assert (sent.path, _meant(sent.body)) == (asked.path, _meant(asked.body))
    assert _told_of_us(sent) == _told_of_us(asked)


def _meant(body: dict[str, Any]) -> dict[str, Any]:
    """litellm leaves a content out that is null: strict servers refuse that."""
    return {**body, "messages": without_nulls(body["messages"])} if "messages" in body else body


def _told_of_us(seen: Seen) -> dict[str, str]:
    headers = {name.lower(): value for name, value in seen.headers.items()}
    return {name: headers[name] for name in headers.keys() & {"authorization", *ANTHROPICS}}


ANTHROPICS = {"x-api-key", "anthropic-version", "anthropic-beta"}


@pytest.mark.parametrize("family", sorted(STRAIGHT))
async def test_replies(worker: ModelProcess, connections: Connections, family: str) -> None:
    await alike(worker, connections, family, LOOKS)
    apart = "" if family == "anthropic" else "Monday."  # litellm joins it with the results
    await alike(worker, connections, family, says("Forty-two.", cached=12, chunk=3), after_a_call(injected=apart))
    await alike(worker, connections, family, says("Half", finish="length"))


@pytest.mark.parametrize("family", sorted(STRAIGHT))
async def test_failures(worker: ModelProcess, connections: Connections, family: str) -> None:
    error = FORMS[FAMILIES[family].form].error
    await alike(worker, connections, family, Reply(status=429, error=error(429, "Wait"), headers={"retry-after": "7"}))
    await alike(worker, connections, family, Reply(status=401, error=error(401, "Wrong key")))
    await alike(worker, connections, family, breaks("error_event", after=4, error=error(529, "Overloaded, sorry")))
    await alike(worker, connections, family, breaks("cut", after=4))
    await alike(worker, connections, family, breaks("reset", after=4))
    await alike(worker, connections, family, breaks("garbled", after=4))


LOST_BY_LITELLM = {"pieces: content a list", "pieces: a list for a chunk", "status 422"}
"""What only the straight way can read; with a 422 litellm asks again by itself."""


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - LOST_BY_LITELLM))
async def test_odd_replies(worker: ModelProcess, connections: Connections, fault: str) -> None:
    await alike(worker, connections, "openai", FAULTS[fault])


@pytest.mark.parametrize("server", OVERFLOWS)
async def test_refusals_as_too_long(worker: ModelProcess, connections: Connections, server: str) -> None:
    await alike(worker, connections, "openai", OVERFLOWS[server])
