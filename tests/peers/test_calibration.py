"""The figure before a request goes out, against what llama.cpp counts with the vocabularies and templates of real families."""

from __future__ import annotations

import pytest

from benchmarks.calibration import session
from benchmarks.texts import KINDS
from ctxchat.models.process import ModelProcess
from ctxchat.models.settings import ModelSettings
from tests.peers.servers import VOCABULARIES

pytestmark = [pytest.mark.peer, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("kind", [*KINDS, "mixed"])
@pytest.mark.parametrize("family_server", VOCABULARIES, indirect=True)
async def test_the_figure_is_near_from_the_second_request_on(
    family_server: tuple[str, str], worker: ModelProcess, kind: str
) -> None:
    name, root = family_server
    sent = await session(ModelSettings(name=f"openai/{name}", api_base=f"{root}/v1"), worker, kind, 2)
    assert len(sent) == 8
    errors = sorted(s.error for s in sent[2:])
    assert errors[-1] < 0.02, [f"{error:.1%}" for error in errors]
    assert sent[1].error < 0.08, "the server was asked for samples before"
    assert sum(abs(s.shown - s.real) <= s.band for s in sent[1:]) >= 6, "where it is further off, the band says so"
