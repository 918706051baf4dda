"""The figure before a request goes out, against what the server then counts: the real agent, both ways to a model, a server that
counts by a published format."""

from __future__ import annotations

import pytest

from benchmarks.calibration import SYSTEM, Server, answering, double, session
from benchmarks.texts import KINDS, Texts
from ctxchat.models.client import ModelClient
from ctxchat.models.direct import Connections
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from ctxchat.models.tokenizers import counter
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.sandbox import Sandbox
from tests.agent.desk import Desk
from tests.doubles.counting import anthropic_prompt, openai_prompt
from tests.doubles.http_model import ModelDouble
from tests.models.served import lane

pytestmark = pytest.mark.asyncio(loop_scope="session")

NEWER = counter("gpt-4o")

KNOWN = Server("the table we count with", "openai/gpt-4o", openai_prompt, NEWER, images=True)
NOTHING = Server("another's", "openai/other", openai_prompt, lambda text: round(1.17 * NEWER(text)))
SUPPOSED = Server("Anthropic's", "anthropic/claude-sonnet-4-5", anthropic_prompt, NEWER, images=True)


@pytest.mark.parametrize("server", [KNOWN, NOTHING, SUPPOSED], ids=lambda s: s.title)
@pytest.mark.parametrize("kind", [*KINDS, "tools", "images"])
async def test_after_one_reply_the_figure_is_within_two_per_cent(
    worker: ModelProcess, connections: Connections, server: Server, kind: str
) -> None:
    if kind == "images" and not server.images:
        pytest.skip("is shown none")
    async with double(server, kind) as settings:
        way = lane(settings, worker if server is SUPPOSED else connections)
        sent = await session(settings, way, "prose" if kind == "images" else kind, 3, images=kind == "images")
    assert len(sent) == (16 if kind == "tools" else 8)
    # The first large JSON to a vocabulary nobody knows is a guess by a third of it; the band says so.
    most = 0.03 if (server, kind) == (NOTHING, "tools") else 0.02
    assert [s.error for s in sent[2:] if s.error > most] == []
    assert sent[1].error <= (0.05 if server is NOTHING else 0.02)
    assert sum(abs(s.shown - s.real) <= s.band for s in sent[1:]) >= len(sent) - 2, "the band says how sure it is"


async def test_where_the_vocabulary_is_known_a_kind_never_seen_before_is_no_surprise(connections: Connections) -> None:
    async with double(KNOWN, "mixed") as settings:
        sent = await session(settings, lane(settings, connections), "mixed", 3)
    assert max(s.error for s in sent[1:]) < 0.005


@pytest.mark.parametrize("factor", [1.0, 1.2])
async def test_the_head_is_held_for_about_what_it_is_counted_after_a_switch_of_model(
    connections: Connections, factor: float
) -> None:
    """No count tells it before it is read by itself: by kind of text and with what tools cost besides it is nearer than by our
    own tokens."""
    counted = Server("", "anthropic/claude-opus-5-5", anthropic_prompt, lambda text: round(factor * NEWER(text)))
    script = answering("prose", anthropic_prompt, counted.count)
    async with ModelDouble(script) as http, double(KNOWN, "prose") as before:
        settings = ModelSettings(name=counted.name, api_base=http.root, window=128_000)
        claude = ModelClient(settings, lane(settings, connections))
        first = ModelClient(before, lane(before, connections))
        tools = standard_tools(sandbox=Sandbox("none"), environ={})
        desk = Desk(first, others={claude.name: claude}, tools=tools, system=SYSTEM, mode="read-only")
        for text in (Texts(3).take("prose", 3_000), Texts(4).take("code", 3_000)):
            await desk.say(text)
        await desk.session.setup.switch_model(claude.name)
        await desk.say("Go on.")
        body = http.requests[-1].body
    whole, head = (anthropic_prompt(b, counted.count) for b in (body, {**body, "messages": []}))
    held = whole * desk.state.sent[claude.name].marked[0].share
    assert abs(held - head) / head < 0.23
