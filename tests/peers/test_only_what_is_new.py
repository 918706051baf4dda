"""llama.cpp's server evaluates only what is new in each request: rounds of calls, messages, notes about what changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
import pytest_asyncio

from ctxchat.core.events import Usage
from ctxchat.core.head import ContextBlock, ToolSpec
from ctxchat.core.journal import Measured
from ctxchat.core.options import Options
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.agent.desk import Around, Desk, Echo
from tests.models.served import Way, lane
from tests.peers.conftest import WINDOW

pytestmark = [pytest.mark.peer, pytest.mark.asyncio(loop_scope="session")]

AT_LEAST_AGAIN = 8
"""Tokens a server may evaluate again: the last one always, and the template's opening of a reply where the reply now stands."""


class ReadFile(Echo):
    """What the peer calls again and again."""

    @property
    def spec(self) -> ToolSpec:
        schema: dict[str, object] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        return ToolSpec("read_file", "Reads a file.", schema)


@pytest_asyncio.fixture(loop_scope="session", params=["straight", "through litellm"])
async def way(request: pytest.FixtureRequest, worker: ModelProcess) -> AsyncIterator[Way]:
    if request.param == "through litellm":
        yield worker
        return
    connections = Connections()
    yield connections
    await connections.close()


def model_at(root: str, way: Way) -> ModelClient:
    settings = ModelSettings("openai/peer", api_base=f"{root}/v1", window=WINDOW)
    return ModelClient(settings, lane(settings, way))


def counted(desk: Desk) -> Sequence[Usage]:
    return [entry.usage for entry in desk.journal.records if isinstance(entry, Measured) and not entry.usage.estimated]


def evaluated_again(usages: Sequence[Usage]) -> list[int]:
    """For each request but the first: tokens that were evaluated though the request before had brought them."""
    return [later.prompt - later.cached - (later.prompt - before.prompt) for before, later in pairwise(usages)]


async def test_rounds_of_calls(tool_server: str, way: Way) -> None:
    model = model_at(tool_server, way)
    desk = Desk(model, tools=[ReadFile()], options=Options(max_rounds=6, prepare=False, auto_compact="off"))
    await desk.say("read it")
    usages = counted(desk)
    assert len(usages) >= 5 and all(again <= AT_LEAST_AGAIN for again in evaluated_again(usages)), usages


async def test_messages_while_the_folder_changes(text_server: str, way: Way) -> None:
    model = model_at(text_server, way)
    around = Around([ContextBlock("memory", "Be brief.\n")], [ContextBlock("git", "branch main")])
    desk = Desk(model, around=around, options=Options(prepare=False, auto_compact="off"))
    for number in range(6):
        around.context = (ContextBlock("git", f"branch main, {number} files changed"),)
        if number == 3:
            around.memory = (ContextBlock("memory", "Be brief.\nUse tabs.\n"),)
        await desk.say(f"Question {number}?")
    usages = counted(desk)
    assert len(usages) == 6 and all(again <= AT_LEAST_AGAIN for again in evaluated_again(usages)), usages
    assert usages[-1].prompt > usages[0].prompt
