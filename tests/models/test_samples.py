"""Servers of one's own are asked how they count before the first message; those that do not say cost nothing."""

from __future__ import annotations

import pytest

from ctxchat.core.calibration import DOUBT, Calibration, Mix
from ctxchat.models.samples import sampled, tokens_in
from ctxchat.models.settings import ModelSettings
from tests.doubles.http_model import ModelDouble


def count(text: str) -> int:
    return max(1, len(text) // 2)


async def test_a_server_that_tells_tokens_is_believed_in_part() -> None:
    async with ModelDouble(tokenize=lambda text: list(range(2 * count(text)))) as double:
        told = await sampled(ModelSettings(name="openai/x", api_base=double.base_url), count)
    assert told.samples == 0, "no reply has confirmed it"
    assert 1_800 < told.part(Mix(1_000)) < 2_200 and 1_800 < told.part(Mix(0, 1_000)) < 2_200
    assert told.doubts[0] >= DOUBT[0] / 3


@pytest.mark.parametrize("base", ["", "http://127.0.0.1:1/v1"])
async def test_nobody_there_to_ask(base: str) -> None:
    assert (await sampled(ModelSettings(name="openai/x", api_base=base), count)).rates == Calibration().rates


async def test_a_server_that_does_not_know_the_question() -> None:
    async with ModelDouble() as double:
        told = await sampled(ModelSettings(name="openai/x", api_base=double.base_url), count)
    assert told.rates == Calibration().rates


@pytest.mark.parametrize("answer", [None, [], {"tokens": 3}, {"error": "no"}, "x"])
def test_other_answers_say_nothing(answer: object) -> None:
    assert tokens_in(answer) == 0
