"""Every fault a provider is known for, in each family's own stream, through the real litellm and the real agent: each ends in a
finished turn or in an error that says what it was, what had come is kept, and the next request is valid and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest

from ctxchat.core.events import Failed, Retry, TurnFinished
from ctxchat.core.options import Options
from ctxchat.core.view import problems
from tests.agent.desk import Desk
from tests.agent.test_turn import of
from tests.doubles.forms import FORMS
from tests.doubles.http_model import ModelDouble
from tests.doubles.replies import Reply, breaks, says
from tests.models.served import FAMILIES, Way, led_to, model_at, served

pytestmark = pytest.mark.asyncio(loop_scope="session")


def error_of(family: str, status: int, message: str) -> dict[str, object]:
    return FORMS[FAMILIES[family].form].error(status, message)


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
    "an error for a stream": told(after=0),
}
"""What passes by itself: it is tried again, and the turn is finished."""

AMID: dict[str, Callable[[str], Reply]] = {
    "reset": broken("reset"),
    "malformed chunk": broken("garbled"),
    "an error in a 200": told(after=4),
    "a clean end too early": broken("cut"),
}
"""What comes after the first words: they are kept."""


OWN = {"openai", "responses", "anthropic", "gemini", "ollama", "cohere", "bedrock"}
"""Those with a stream of their own; the others differ from OpenAI's in fields, and are shown what fields can change."""

EVERYWHERE = {"429 with Retry-After", "500", "reset", "malformed chunk", "an error in a 200"}


def cases(faults: Iterable[str]) -> list[tuple[str, str]]:
    """Each family with each fault that can differ there."""
    return [(family, fault) for family in FAMILIES for fault in faults if family in OWN or fault in EVERYWHERE]


PATIENCE = 2.0
"""Seconds for a server that does not answer; one that does has all the time a busy machine needs."""


def desk_at(double: ModelDouble, way: Way, family: str, patience: float = 30) -> Desk:
    model = model_at(double, way, family, timeout=patience)
    return Desk(model, options=Options(retries=1, auto_compact="off", prepare=False))


async def works_on(desk: Desk, double: ModelDouble) -> None:
    """The next message is answered, by a request that is valid and holds what was said."""
    assert not problems(desk.conversation.view)
    events = await desk.say("go on")
    assert of(events, TurnFinished)[0].status == "done" and of(events, TurnFinished)[0].text == "All is well."
    assert "first question" in str(double.requests[-1].body)
    assert desk.folded() == desk.state


async def tried_again(way: Way, family: str, fault: Reply, after: float | None = None, patience: float = 30) -> None:
    async with served(family, [fault, says("All is well.")]) as double:
        desk = desk_at(double, way, family, patience)
        events = await desk.say("first question")
        assert of(events, TurnFinished)[0].status == "done", of(events, Failed)
        [retry] = of(events, Retry)
        assert retry.cause and (after is None or retry.after_seconds == after)
        assert len(double.requests) == 2
        await works_on(desk, double)


async def kept(way: Way, family: str, fault: Reply, patience: float = 30) -> Failed:
    async with served(family, [fault, says("All is well.")]) as double:
        desk = desk_at(double, way, family, patience)
        [failed] = of(await desk.say("first question"), Failed)
        assert failed.text and failed.hint and failed.kind == "interrupted"
        last = desk.state.ledger.messages()[-1]
        assert last.role == "assistant" and last.interrupted and last.text
        assert "Half an answer that never ends".startswith(last.text)
        assert len(double.requests) == 1, "nothing is sent again behind somebody's back"
        await works_on(desk, double)
        assert last.text.strip() in str(double.requests[-1].body)
    return failed


@pytest.mark.parametrize(("family", "fault"), cases(BEFORE))
async def test_what_passes_by_itself_is_tried_again(way: Way, family: str, fault: str) -> None:
    await tried_again(way, family, BEFORE[fault](family), 7 if fault == "429 with Retry-After" else None)


@pytest.mark.parametrize(("family", "fault"), cases(AMID))
async def test_what_had_come_is_kept_and_the_next_request_is_valid(way: Way, family: str, fault: str) -> None:
    failed = await kept(way, family, AMID[fault](family))
    assert ("Overloaded, sorry" in failed.text) is (fault == "an error in a 200")
    assert "litellm" not in failed.text and "{" not in failed.text, "words for people"


async def everywhere(way: Way, check: Callable[[str], Awaitable[object]]) -> None:
    """In all families at once, since each takes the time that is waited for."""
    families = sorted(led_to(way))
    ends = await asyncio.gather(*map(check, families), return_exceptions=True)
    assert {family: end for family, end in zip(families, ends, strict=True) if isinstance(end, BaseException)} == {}


async def test_a_stream_that_stalls_is_given_up(way: Way) -> None:
    await everywhere(way, lambda family: kept(way, family, breaks("stall", after=4), PATIENCE))


async def test_a_first_byte_that_is_late_is_asked_for_again(way: Way) -> None:
    await everywhere(way, lambda family: tried_again(way, family, says("late", first_byte=60), None, PATIENCE))


async def test_a_slow_first_byte_within_the_time_is_no_fault(way: Way) -> None:
    async def waits(family: str) -> None:
        async with served(family, [says("All is well.", first_byte=0.1)]) as double:
            events = await desk_at(double, way, family).say("first question")
        assert of(events, TurnFinished)[0].text == "All is well." and not of(events, Retry)

    await everywhere(way, waits)


@pytest.mark.parametrize("family", sorted(OWN))
@pytest.mark.parametrize("reply", [breaks("nothing", after=0), says("")], ids=["empty body", "no words"])
async def test_an_empty_reply_is_told(way: Way, family: str, reply: Reply) -> None:
    async with served(family, [reply, reply, says("All is well.")]) as double:
        desk = desk_at(double, way, family)
        [failed] = of(await desk.say("first question"), Failed)
        assert failed.kind == "empty" and failed.hint
        while len(double.requests) < 2:  # where it was not tried again by itself
            await desk.say("again")
        await works_on(desk, double)
