"""A disk that refuses while tools are at work: what ran is not said not to have run, and no round ends over it."""

from __future__ import annotations

from ctxchat.core.errors import StorageError
from ctxchat.core.events import Failed, Notice, ToolFinished, TurnFinished
from ctxchat.core.journal import Partial
from ctxchat.core.options import Options
from tests.agent.desk import Desk, Echo, MemoryJournal
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says


class NoFiles(MemoryJournal):
    """Takes records, but no file."""

    async def spill(self, name: str, text: str) -> str:
        raise StorageError("The disk is full.", "Free some space.")


class NoResults(MemoryJournal):
    """Keeps no unsealed round that has results."""

    async def keep(self, partial: Partial) -> None:
        if partial.results:
            raise StorageError("The disk is full.")
        await super().keep(partial)


def results(desk: Desk) -> list[str]:
    return [m.text for m in desk.state.ledger.messages() if m.role == "tool"]


async def test_a_long_result_that_cannot_be_saved_stays_as_far_as_it_fits_and_is_told():
    model = ScriptedModel([calls(("shell", {"text": "line\n", "times": 100_000})), says("ok")])
    desk = Desk(model, tools=[Echo("shell", writes=True)], mode="all", journal=NoFiles())
    events = await desk.say("go")
    assert of(events, TurnFinished)[0].status == "done"
    (text,) = results(desk)
    assert text.startswith("line\n") and text.endswith("line\n") and "could not be saved" in text
    assert of(events, ToolFinished)[0].spilled == ""
    assert any("shell" in n.text and "The disk is full." in n.text for n in of(events, Notice))


async def test_a_round_that_cannot_be_kept_before_it_is_sealed_goes_on():
    model = ScriptedModel([calls(("echo", {"text": "a"}), ("echo", {"text": "b"})), says("ok")])
    desk = Desk(model, tools=[Echo()], journal=NoResults())
    events = await desk.say("go")
    assert of(events, TurnFinished)[0].status == "done" and not of(events, Failed)
    assert results(desk) == ["a", "b"]


async def test_a_call_that_ran_before_the_turn_failed_is_said_to_have_run():
    class Broken(NoFiles):
        async def spill(self, name: str, text: str) -> str:
            raise ZeroDivisionError("a bug of the store")

    script = [calls(("shell", {"text": "line\n", "times": 100_000}), ("shell", {"text": "b"})), says("ok")]
    shell = Echo("shell", writes=True)
    desk = Desk(ScriptedModel(script), tools=[shell], mode="all", journal=Broken())
    assert of(await desk.say("go"), Failed)
    first, second = results(desk)
    assert "this ran" in first and "not run" not in first
    # The second may have begun while the first one's result was being kept.
    assert ("this ran" in second) == (len(shell.ran) == 2) and ("not run" in second) == (len(shell.ran) == 1)


async def test_calls_after_the_last_round_are_not_said_to_have_failed():
    model = ScriptedModel([calls(("echo", {"text": "x"})) for _ in range(2)])
    desk = Desk(model, tools=[Echo()], options=Options(max_rounds=2))
    await desk.say("go")
    assert results(desk)[-1].startswith("[not run") and "error" not in results(desk)[-1]
