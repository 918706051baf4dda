"""A skill from its call to the request after compactions, and command files: what they run is asked for like anything else."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat

from ctxchat.core.budget import Window
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import ApprovalRequested, TurnStarted
from ctxchat.core.options import Options
from ctxchat.core.permissions import Answer
from ctxchat.core.ports import ToolOutput
from ctxchat.core.prompt_files import PromptArgument, PromptFile
from ctxchat.core.record import CompactionRecord
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.shell import Shell
from ctxchat.tools.skills import ReadSkill
from tests.agent.desk import Desk
from tests.agent.test_long_turns import Writer
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says

RULE = "Every tag is signed by the harbour master, and no other way is right."
LONG = "the tide gauge at pier seven reports every ninety seconds to the logger cormorant " * 25
SHIP = PromptFile("ship", "skill", "how to ship", RULE, "/skills/ship.md")
BOAT = PromptFile("boat", "skill", "how to sail", "Sail only at high tide.", "/skills/boat.md")


def sent(desk: Desk) -> str:
    return "\n".join(item.message.text for item in desk.session.view.items)


async def test_skills_in_use_stand_once_after_any_number_of_compactions() -> None:
    script = [calls(("skill", {"name": "ship"})), *repeat(says(LONG), 12)]
    options = Options(keep_recent=2, strategy="summarize", prepare=False)
    model = ScriptedModel(script, window=Window(8_000, "loaded"))
    desk = Desk(
        model, tools=[ReadSkill(lambda: [SHIP, BOAT])], options=options, summariser=Writer(), prompts=[SHIP, BOAT]
    )
    await desk.say("cut a release")
    await desk.say("/boat now")
    for _ in range(2):
        await desk.say(LONG)
        await desk.say(LONG)
        assert of(await desk.free_up(), CompactionRecord)[-1].outcome == "compacted"
        assert sent(desk).count(RULE) == 1 and sent(desk).count("Sail only at high tide.") == 1
    await desk.session.changes.undo()
    assert sent(desk).count(RULE) == 1 and desk.folded() == desk.state
    await desk.session.close()


async def test_what_a_command_file_runs_is_asked_for_and_a_no_sends_nothing() -> None:
    status = PromptFile("status", "command", "", "Now: !`echo status $1`!", "/status.md")
    desk = Desk(
        ScriptedModel(repeat(says("well"), 3)), tools=[Shell(Sandbox(), {}, asks_everything=True)], prompts=[status]
    )
    asked: list[ApprovalRequested] = []
    for verdict in ("deny", "once"):
        try:
            async for stamped in desk.session.send("/status core"):
                if isinstance(event := stamped.event, ApprovalRequested):
                    asked.append(event)
                    desk.session.permissions.answer(event.call_id, Answer(verdict))
                assert not isinstance(event, TurnStarted) or verdict == "once"
        except CtxchatError as problem:
            assert verdict == "deny" and "`echo status core` was not allowed" in problem.text
            assert not desk.state.ledger.groups
    assert len(asked) == 2
    text = next(m for m in desk.state.ledger.messages() if m.role == "user").text
    assert text.startswith("/status core") and "command /status" in text and "!`" not in text
    await desk.session.close()


class Library:
    """A server that is up, with its prompts, once somebody has waited for it."""

    def __init__(self) -> None:
        self.prompts: list[PromptFile] = []
        self.waited: list[str] = []

    async def await_server(self, name: str) -> None:
        self.waited.append(name)
        arguments = (PromptArgument("topic", required=True),)
        self.prompts = [PromptFile("shelf:review", "prompt", "", origin="server", arguments=arguments)]

    async def get_prompt(self, prompt: PromptFile, arguments: Mapping[str, str]) -> ToolOutput:
        return ToolOutput(f"Look at {arguments['topic']}.")


async def test_a_prompt_that_is_called_before_its_server_is_up_is_waited_for_and_nothing_else_is() -> None:
    library = Library()
    desk = Desk(ScriptedModel(repeat(says("well"), 3)), server_prompts=library)
    await desk.say("/etc/hosts: what is it?")
    await desk.say("/plain words")
    assert not library.waited
    await desk.say("/shelf:review the wall")
    assert library.waited == ["shelf"]
    last = desk.state.ledger.groups[-2].first
    assert last.text == "/shelf:review the wall\n```prompt /shelf:review\nLook at the wall.\n```"
    await desk.session.close()
