"""The figure before a request goes out, against what the server then counts: the real agent, the real litellm, a server that
counts by a published format."""

from __future__ import annotations

import pytest

from benchmarks.calibration import Server, double, session
from benchmarks.texts import KINDS
from ctxchat.models.process import Worker
from ctxchat.models.tokenizers import counter
from tests.doubles.counting import anthropic_prompt, openai_prompt

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPENAI = Server("OpenAI's", "openai/gpt-4o", openai_prompt, counter("gpt-4o"), images=True)
OTHER = Server("another's", "openai/other", openai_prompt, lambda text: round(1.17 * counter("gpt-4o")(text)))
ANTHROPIC = Server("Anthropic's", "anthropic/claude-sonnet-4-5", anthropic_prompt, counter("gpt-4o"), images=True)


@pytest.mark.parametrize("server", [OPENAI, OTHER, ANTHROPIC], ids=lambda s: s.title)
@pytest.mark.parametrize("kind", [*KINDS, "images"])
async def test_after_two_replies_the_figure_is_within_two_per_cent(worker: Worker, server: Server, kind: str) -> None:
    if kind == "images" and not server.images:
        pytest.skip("is shown none")
    async with double(server, kind) as settings:
        sent = await session(settings, worker, "prose" if kind == "images" else kind, 3, images=kind == "images")
    assert len(sent) == 8
    assert [s.error for s in sent[2:] if s.error > 0.02] == []
    assert sent[1].error < 0.06
    assert sum(abs(s.shown - s.real) <= s.band for s in sent[1:]) >= 5, "the band says how sure it is"
