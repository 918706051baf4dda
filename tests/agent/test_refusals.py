"""What a refusal teaches: how the server counts, where it says so, rather than a window smaller than it has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Event, Failed, Notice, Retry, TurnFinished
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest
from ctxchat.core.quantities import short
from ctxchat.core.record import CompactionRecord
from tests.agent.desk import Desk
from tests.agent.test_compaction import LONG
from tests.agent.test_turn import of
from tests.doubles.scripted import Reply, ScriptedModel, fails, says

WINDOW = 12_000
DENSE = 1.8
"""Tokens of the server for one of ours."""


def desk_at(words: str, *, claims: int = WINDOW, window: int = WINDOW) -> tuple[Desk, list[int]]:
    """A server that counts denser than we do and words its refusals with `{prompt}` and `{window}`, and the counts it made.
    It reports no usage, so that only refusals can teach."""
    counts: list[int] = []

    def reply(request: ModelRequest) -> Reply:
        counts.append(int(request.view.raw * DENSE))
        if counts[-1] <= window:
            return says("fine", usage=None)
        text = words.format(prompt=counts[-1], window=window)
        return fails(ModelError(text, kind="bad_request", status=400))

    script: list[Callable[[ModelRequest], Reply]] = [reply] * 60
    options = Options(auto_compact="off", keep_recent=4, prepare=False)
    return Desk(ScriptedModel(script, window=Window(claims, "catalogue")), options=options), counts


async def until_refused(desk: Desk) -> list[Event]:
    for number in range(40):
        events = await desk.say(f"question {number} {LONG}")
        if of(events, Retry):
            return events
    raise AssertionError("it always fitted")


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens.",
        "prompt is too long: {prompt} tokens > {window} maximum",
        "request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it",
    ],
)
async def test_a_stated_count_teaches_how_the_server_counts_and_no_smaller_window(words: str) -> None:
    desk, counts = desk_at(words)
    events = await until_refused(desk)
    assert of(events, TurnFinished)[0].status == "done" and len(of(events, Retry)) == 1
    context_usage = desk.session.context_usage
    assert (context_usage.window, context_usage.window_source) == (WINDOW, "catalogue")
    passed = of(events, CompactionRecord)[0]
    assert passed.before.used == counts[-2], "the gauge showed what the server counted"
    assert abs(context_usage.used - counts[-1]) < 0.15 * counts[-1], "and counts like the server from then on"
    assert any(f"refused {short(counts[-2])} tokens" in n.text for n in of(events, Notice))
    assert desk.folded() == desk.state
    later = [await desk.say(f"more {n} {LONG}") for n in range(3)]
    assert not any(of(events, Failed) for events in later)


async def test_a_count_above_the_window_we_know_learns_no_other_window() -> None:
    desk, counts = desk_at("The prompt is too long: {prompt} tokens.")
    events = await until_refused(desk)
    assert of(events, TurnFinished)[0].status == "done"
    assert desk.session.context_usage.window == WINDOW and counts[-2] > WINDOW


async def test_a_count_below_the_window_we_believed_in_learns_one_below_it() -> None:
    desk, counts = desk_at("The prompt is too long: {prompt} tokens.", claims=60_000)
    await until_refused(desk)
    context_usage = desk.session.context_usage
    assert context_usage.window_source == "learned" and context_usage.window == int(counts[-2] * 0.9)


async def test_a_count_that_cannot_be_of_this_prompt_teaches_nothing() -> None:
    desk, _ = desk_at("prompt is too long: 99{prompt}00 tokens > {window} maximum")
    events = await until_refused(desk)
    assert of(events, CompactionRecord)[0].before.used < WINDOW
    assert all(c.samples == 0 for c in desk.state.calibrations.values())


async def test_a_shorter_reply_is_told_and_the_count_is_learned_too() -> None:
    def reply(request: ModelRequest) -> Reply:
        if request.max_output <= 1_000:
            return says("short", usage=None)
        text = (
            f"This model's maximum context length is 4200 tokens. However, you requested {3200 + request.max_output} tokens "
            f"(3200 in the messages, {request.max_output} in the completion)."
        )
        return fails(ModelError(text, kind="bad_request", status=400))

    model = ScriptedModel([reply] * 4, window=Window(WINDOW, "catalogue"))
    desk = Desk(model, options=Options(auto_compact="off", prepare=False, output_reserved=2_000))
    events = await desk.say("word " * 2_400)
    assert of(events, TurnFinished)[0].text == "short" and not of(events, CompactionRecord)
    assert model.requests[0].max_output > 2_000 and model.requests[1].max_output == 1_000
    assert any("this reply may have 1.0k tokens" in n.text for n in of(events, Notice))
    assert desk.state.calibrations["scripted/model"].samples == 1
