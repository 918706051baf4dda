"""Every fault a provider is known for, in each family's own stream, through the real litellm and the real agent: each ends in a
finished turn or in an error that says what it was, what had come is kept, and the next request is valid and answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ctxchat.agent.options import Options
from ctxchat.core.events import Failed, Retry, TurnFinished
from ctxchat.core.view import problems
from ctxchat.models.litellm_client import LitellmModel
from ctxchat.models.process import Worker
from ctxchat.models.settings import ModelSettings
from tests.agent.desk import Desk
from tests.agent.test_turn import of
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, breaks, says

pytestmark = pytest.mark.asyncio(loop_scope="session")

FAMILIES = {
    "openai": "openai/double",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "gemini/gemini-2.5-pro",
    "ollama": "ollama_chat/double",
}


def error_of(family: str, status: int, message: str) -> dict[str, object] | str:
    """An error as the family words it, in a body or in the stream."""
    kinds = {429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
    match family:
        case "anthropic":
            return {"type": "error", "error": {"type": kinds[status], "message": message}}
        case "gemini":
            names = {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 529: "UNAVAILABLE"}
            return {"error": {"code": status, "message": message, "status": names[status]}}
        case "ollama":
            return {"error": message}
        case _:
            return {"error": {"message": message, "type": kinds[status], "code": status}}


def refusal(status: int, retry_after: str = "") -> Callable[[str], Reply]:
    headers = {"retry-after": retry_after} if retry_after else {}
    return lambda family: Reply(status=status, error=error_of(family, status, "Try later, please"), headers=headers)


def broken(fault: str, after: int = 4, **more: object) -> Callable[[str], Reply]:
    return lambda family: breaks(fault, after=after, **more)  # type: ignore[arg-type]


def told(after: int) -> Callable[[str], Reply]:
    return lambda family: breaks("error_event", after=after, error=error_of(family, 529, "Overloaded, sorry"))


BEFORE: dict[str, Callable[[str], Reply]] = {
    "429 with Retry-After": refusal(429, "7"),
    "429 without": refusal(429),
    "500": refusal(500),
    "529": refusal(529),
    "reset before the first word": broken("reset", after=0),
    "slow first byte": lambda family: says("late", first_byte=5),
}
"""What passes by itself: it is tried again, and the turn is finished."""

AMID: dict[str, Callable[[str], Reply]] = {
    "reset": broken("reset"),
    "stalled": broken("stall"),
    "malformed chunk": broken("malformed"),
    "an error in a 200": told(after=4),
    "a clean end too early": broken("cut"),
}
"""What comes after the first words: they are kept."""


def desk_at(double: ModelDouble, worker: Worker, family: str) -> Desk:
    base = double.base_url if family == "openai" else double.root
    settings = ModelSettings(name=FAMILIES[family], api_base=base, api_key_env="KEY", timeout=0.5, window=50_000)
    model = LitellmModel(settings, worker, lambda name: "key")
    return Desk(model, options=Options(retries=1, consent="off", prepare=False))


async def works_on(desk: Desk, double: ModelDouble) -> None:
    """The next message is answered, by a request that is valid and holds what was said."""
    assert not problems(desk.conversation.view)
    events = await desk.say("go on")
    assert of(events, TurnFinished)[0].status == "done" and of(events, TurnFinished)[0].text == "All is well."
    assert "first question" in str(double.requests[-1].body)
    assert desk.folded() == desk.state


@pytest.mark.parametrize("fault", BEFORE)
@pytest.mark.parametrize("family", FAMILIES)
async def test_what_passes_by_itself_is_tried_again(worker: Worker, family: str, fault: str) -> None:
    async with ModelDouble([BEFORE[fault](family), says("All is well.")]) as double:
        desk = desk_at(double, worker, family)
        events = await desk.say("first question")
        assert of(events, TurnFinished)[0].status == "done", of(events, Failed)
        [retry] = of(events, Retry)
        assert retry.cause and (retry.after_seconds == 7) is (fault == "429 with Retry-After")
        assert len(double.requests) == 2
        await works_on(desk, double)


@pytest.mark.parametrize("fault", AMID)
@pytest.mark.parametrize("family", FAMILIES)
async def test_what_had_come_is_kept_and_the_next_request_is_valid(worker: Worker, family: str, fault: str) -> None:
    async with ModelDouble([AMID[fault](family), says("All is well.")]) as double:
        desk = desk_at(double, worker, family)
        events = await desk.say("first question")
        [failed] = of(events, Failed)
        assert failed.text and failed.hint
        assert failed.kind == "interrupted"
        assert ("Overloaded, sorry" in failed.text) is (fault == "an error in a 200")
        last = desk.state.ledger.messages()[-1]
        assert last.role == "assistant" and last.interrupted and last.text
        assert "Half an answer that never ends".startswith(last.text)
        assert len(double.requests) == 1, "nothing is sent again behind somebody's back"
        await works_on(desk, double)
        assert last.text.strip() in str(double.requests[-1].body)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reply", [breaks("nothing", after=0), says("")], ids=["empty body", "no words"])
async def test_an_empty_reply_is_told(worker: Worker, family: str, reply: Reply) -> None:
    async with ModelDouble([reply, reply, says("All is well.")]) as double:
        desk = desk_at(double, worker, family)
        [failed] = of(await desk.say("first question"), Failed)
        assert failed.kind == "empty" and failed.hint
        while len(double.requests) < 2:  # where it was not tried again by itself
            await desk.say("again")
        await works_on(desk, double)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_slow_first_byte_within_the_time_is_no_fault(worker: Worker, family: str) -> None:
    async with ModelDouble([says("All is well.", first_byte=0.2)]) as double:
        events = await desk_at(double, worker, family).say("first question")
    assert of(events, TurnFinished)[0].text == "All is well." and not of(events, Retry)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_reply_without_faults_for_comparison(worker: Worker, family: str) -> None:
    reply = replace(says("All is well."), reasoning="Let me see.", cached=40)
    async with ModelDouble([reply]) as double:
        desk = desk_at(double, worker, family)
        events = await desk.say("first question")
    assert of(events, TurnFinished)[0].text == "All is well."
    assert not desk.session.figures.cost_usd < 0
