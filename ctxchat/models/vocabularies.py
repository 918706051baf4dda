"""A table of how the tokenizers of model families count compared with ours, measured on their public vocabularies
(`benchmarks/vocabularies.py`), for the time before a server has counted anything.

A calibration holds such rates with their doubts (standard deviations), and learns further from replies (`core.calibration`).
Pure; reads no vocabulary itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ctxchat.core.calibration import DOUBT, LEAST_DOUBT, Calibration
from ctxchat.models.dialects import ANTHROPIC, GEMINI, OPENAI, Dialect

OLDER, NEWER = "cl100k_base", "o200k_base"
"""The tokenizer tables that we can count with (`tokenizers`)."""

Rates = tuple[float, ...]
"""How a family counts, against one of our tables: its tokens for one of ours, in Latin text and in other scripts; then tokens in
addition for each digit, punctuation mark, Chinese character, kana, accented letter, capital and indented line."""

SAME: Rates = (1.0, 1.0, *[0.0] * 7)

MEASURED = (0.02, 0.06, 0.05, 0.04, 0.05, 0.05, 0.3, 0.06, 0.15)
"""Doubts about the rates of a measured vocabulary: texts of one kind still differ."""

SUPPOSED = (0.08, 0.25, 0.2, 0.12, 0.2, 0.2, 0.5, 0.15, 0.3)
"""Doubts about the rates of a vocabulary that is not public."""

EXACT = (*LEAST_DOUBT[:2], *LEAST_DOUBT[4:-1])
"""Doubts about the rates of a vocabulary that is our table itself."""


class Vocabulary(msgspec.Struct, frozen=True):
    """The vocabulary of a model family.

    `pattern` matches the names of its models. `table` is our table that counts their texts best, `rates` how they count against
    that one, and `older` how against the table `OLDER`, which is used where a name tells nothing. `doubts` are the standard
    deviations of the rates. `told` is the number of tokens of each of `samples.SAMPLES`, by which the vocabulary is recognised.
    """

    name: str
    pattern: str
    table: str = OLDER
    rates: Rates = SAME
    older: Rates = SAME
    doubts: Sequence[float] = MEASURED
    told: tuple[int, ...] = ()


VOCABULARIES = (
    Vocabulary(
        "o200k",
        r"^(?:gpt-4o|gpt-4\.[15]|gpt-[5-9]|gpt-oss|chatgpt|o[1-9](?:$|[-:.]))",
        NEWER,
        older=(0.94, 0.67, 0.06, 0.1, 0.03, 0.04, -0.74, 0.02, -0.09),
        doubts=EXACT,
        told=(81, 99, 169, 91, 88),
    ),
    Vocabulary("cl100k", r"^(?:gpt-4|gpt-3\.?5|phi-?4)", doubts=EXACT, told=(82, 99, 169, 134, 132)),
    Vocabulary(
        "Llama 3",
        r"llama-?v?3|distill-llama|deepseek-r1:(?:8|70)b",
        rates=(1.03, 0.76, -0.03, -0.05, -0.03, -0.11, -0.88, -0.01, 0.04),
        told=(82, 99, 169, 95, 87),
    ),
    Vocabulary(
        "Llama 2",  # and the first of Mistral's
        r"llama-?v?2|codellama|tinyllama|mixtral|mistral-?7b|^mistral(?::|$)|vicuna|phi-?3",
        rates=(1.06, 1.07, 0.22, 0.33, -0.04, 0.04, 0.16, 0.13, 0.15),
        told=(87, 123, 218, 122, 141),
    ),
    Vocabulary(
        "Qwen",
        r"qwen|qwq|qvq|deepseek-r1:(?:1\.5|7|14|32)b",
        NEWER,
        rates=(1.04, 1.15, 0.45, -0.12, -0.20, -0.18, 0.50, 0.00, 0.28),
        older=(1.01, 0.78, 0.49, -0.06, -0.18, -0.15, -0.35, 0.01, 0.24),
        told=(82, 99, 213, 76, 81),
    ),
    Vocabulary(
        "Mistral",
        r"mi(?:ni)?stral|devstral|magistral|pixtral",
        NEWER,
        rates=(1.01, 1.02, 0.48, -0.05, 0.21, -0.10, 0.07, 0.10, 0.42),
        older=(0.96, 0.69, 0.53, 0.04, 0.23, -0.06, -0.69, 0.11, 0.34),
        told=(82, 104, 213, 104, 91),
    ),
    Vocabulary(
        "Gemma",  # and Gemini, by Google's own offline counter
        r"gemma|gemini",
        NEWER,
        rates=(0.99, 0.91, 0.39, 0.17, -0.05, -0.20, -0.14, 0.05, 0.71),
        older=(0.93, 0.61, 0.45, 0.27, -0.02, -0.17, -0.85, 0.07, 0.64),
        told=(83, 113, 217, 80, 67),
    ),
    Vocabulary(
        "DeepSeek",
        r"deepseek",
        NEWER,
        rates=(0.99, 1.08, -0.20, 0.11, -0.23, -0.11, 0.62, 0.08, 0.08),
        older=(0.95, 0.73, -0.15, 0.19, -0.21, -0.07, -0.16, 0.10, 0.02),
        told=(81, 103, 169, 70, 85),
    ),
    Vocabulary(
        "Claude",  # a tenth to a third above OpenAI's by public comparisons
        r"claude",
        rates=(1.10, 1.15, 0.0, 0.20, -0.15, -0.10, 0.30, 0.05, 0.0),
        doubts=SUPPOSED,
    ),
    Vocabulary(
        "another newer one",  # the mean of the measured ones of 2024 and later, and how they differ
        r"grok|kimi|moonshot|glm-|minimax|llama-?4|command|nova-",
        NEWER,
        rates=(1.02, 1.04, 0.18, 0.0, -0.05, -0.12, 0.17, 0.04, 0.27),
        doubts=(0.04, 0.09, 0.33, 0.13, 0.17, 0.08, 0.34, 0.05, 0.29),
    ),
)
"""All known vocabularies. The first that matches a name counts, since a distilled model has the vocabulary of the model it was
made of."""


def vocabulary_of(name: str) -> Vocabulary | None:
    """The vocabulary of a model by litellm's name of it; None where the name tells nothing."""
    model = name.rpartition("/")[2].lower()
    return next((v for v in VOCABULARIES if re.search(v.pattern, model)), None)


def vocabulary_told(told: Sequence[int]) -> Vocabulary | None:
    """The vocabulary whose counts of the samples are those that a server `told`, to within two tokens each; None for an unknown
    one."""
    return next((v for v in VOCABULARIES if v.told and _counts_alike(v.told, told)), None)


def _counts_alike(known: Sequence[int], told: Sequence[int]) -> bool:
    return len(known) == len(told) and all(abs(a - b) <= 2 for a, b in zip(known, told, strict=True))


def table_of(name: str) -> str:
    """The name of the table that counts a model's texts best; `OLDER` for an unknown model, since it rather counts too much in
    Chinese, Japanese and Korean."""
    known = vocabulary_of(name)
    return known.table if known else OLDER


def assumed(known: Vocabulary | None, table: str, dialect: Dialect) -> Calibration:
    """The calibration before the first reply, for texts counted with `table`: by the vocabulary where it is known, else with the
    usual doubts. The rates for tools depend on the provider's format (`dialect`) instead."""
    if known and (known.table == table or table == OLDER):
        rates, doubts = (known.rates, known.doubts) if known.table == table else (known.older, MEASURED)
    else:
        rates, doubts = SAME, _of_text(DOUBT)
    tools, tools_doubt, besides, besides_doubt = _TOOLS.get(dialect.name, (1.0, DOUBT[2], 0.0, DOUBT[-1]))
    images_doubt = 0.1 if dialect in {OPENAI, ANTHROPIC, GEMINI} else DOUBT[3]  # where the rule is published
    return Calibration(
        (*rates[:2], tools, 1.0, *rates[2:], besides),
        (*doubts[:2], tools_doubt, images_doubt, *doubts[2:], besides_doubt),
    )


def _of_text(numbers: Sequence[float]) -> Sequence[float]:
    """Of the numbers of a calibration, those about text: without tools, images and the fixed overhead."""
    return (*numbers[:2], *numbers[4:-1])


_TOOLS = {
    OPENAI.name: (0.7, 0.25, 0.0, 30.0),
    ANTHROPIC.name: (1.0, 0.3, 346.0, 60.0),
}
"""How dialects count tools: tokens for one of ours in a schema's JSON, and its doubt; tokens that a request with tools has in
addition, and its doubt. OpenAI converts schemas to a shorter form (its cookbook counts it); Anthropic documents 346 tokens for
the use of tools."""
