"""More offers at once than a small window holds: the composer keeps its line, and its keys are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.core.events import CompactionSuggested
from ctxchat.models.discovery import FoundModel, Offer
from ctxchat.tui.chat.offers import FirstChoice
from tests.tui.chatting import chatting, until
from tests.tui.fakes import FakeSession

HERE = FoundModel("ollama_chat/qwen3:8b", "Ollama", True, 40_960, "loaded", 0.0, 0.0, "at 127.0.0.1:11434")


@pytest.mark.parametrize("size", [(20, 20), (20, 9), (40, 12), (80, 16)], ids=str)
async def test_two_offers_leave_the_composer_its_line(tmp_path: Path, size: tuple[int, int]) -> None:
    async with chatting(tmp_path, FakeSession(), size) as (app, pilot):
        await until(pilot, lambda: app.services.warmed)
        await app.chat.questions.choose_model(FirstChoice([Offer(HERE, 0), Offer(HERE, 1)]))
        await app.chat.questions.suggest(CompactionSuggested(50_000, 60_000, 0.83, 20_000))
        prompt, gauge = app.chat.composer.prompt, app.chat.gauge
        await until(pilot, lambda: prompt.region.height and app.chat.composer.region.bottom == gauge.region.y)
        assert app.chat.key_line.region.height == 1
