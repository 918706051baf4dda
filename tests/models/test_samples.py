"""What is known of a model before its first reply: by its family, and what servers of one's own say of the samples."""

from __future__ import annotations

import pytest

from ctxchat.core.calibration import DOUBT, Calibration
from ctxchat.core.tokens import TokenCounter
from ctxchat.models.dialects import LOCAL
from ctxchat.models.samples import SAMPLES, sampled, tokens_in
from ctxchat.models.settings import ModelSettings
from ctxchat.models.tokenizers import counter
from ctxchat.models.vocabularies import VOCABULARIES, assumed, table_of, vocabulary_of
from tests.doubles.http_model import ModelDouble

TOLD = [v for v in VOCABULARIES if v.told]


async def told(name: str, tokens: dict[str, int]) -> Calibration:
    async with ModelDouble(tokenize=lambda text: list(range(tokens[text]))) as double:
        return await sampled(ModelSettings(name=f"openai/{name}", api_base=double.base_url), LOCAL)


async def test_a_vocabulary_that_nobody_measured_is_believed_in_part() -> None:
    count = counter("x")
    found = await told("x", {text: 2 * count(text) for text in SAMPLES})
    assert found.samples == 0, "no reply has confirmed it"
    for text in SAMPLES:
        assert 1.7 < found.part(TokenCounter(count).text_mix(text)) / count(text) < 2.3
    assert found.doubts[0] >= DOUBT[0] / 3


@pytest.mark.parametrize("known", TOLD, ids=lambda v: v.name)
@pytest.mark.parametrize("name", ["house-model", "gemma-3-27b-it", "llama3"])
async def test_a_measured_vocabulary_is_found_by_its_counts_whatever_the_model_is_called(known, name: str) -> None:
    found = await told(name, dict(zip(SAMPLES, known.told, strict=True)))
    if table_of(name) in {known.table, "cl100k_base"}:
        assert found == assumed(known, table_of(name), LOCAL)
        assert found.doubts[0] < DOUBT[0] / 3
    else:
        assert found == assumed(None, table_of(name), LOCAL), "its rates to the other table are not known"


@pytest.mark.parametrize("base", ["", "http://127.0.0.1:1/v1"])
@pytest.mark.parametrize("name", ["openai/x", "openai/qwen3-32b"])
async def test_nobody_there_to_ask(base: str, name: str) -> None:
    found = await sampled(ModelSettings(name=name, api_base=base), LOCAL)
    assert found == assumed(vocabulary_of(name), table_of(name), LOCAL)
    assert (found == Calibration()) is (name == "openai/x")


async def test_a_server_that_does_not_know_the_question() -> None:
    async with ModelDouble() as double:
        found = await sampled(ModelSettings(name="openai/x", api_base=double.base_url), LOCAL)
    assert found == Calibration()


@pytest.mark.parametrize("answer", [None, [], {"tokens": 3}, {"error": "no"}, "x"])
def test_other_answers_say_nothing(answer: object) -> None:
    assert tokens_in(answer) == 0
