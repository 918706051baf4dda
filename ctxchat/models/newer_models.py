"""A table of models that are newer than litellm's list: for each, a listed model with the same abilities, and the prices that its
provider states. For models in neither list, a listed model of the same family."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

import msgspec

STATED = datetime.date(2026, 11, 25)
"""The day on which these prices were read from the providers' pages."""


class NewerModel(msgspec.Struct, frozen=True):
    """A model that litellm does not list yet. `like` is a listed model with the same window and abilities; `fields` are its
    prices in US dollars per token, under litellm's names."""

    like: str
    fields: Mapping[str, float]


def _claude(new: float, out: float, cached: float) -> dict[str, float]:
    """Prices of a Claude, from US dollars per million tokens. Writing to the cache costs 1.25 times the price of new tokens,
    writing for an hour twice."""
    return {
        "input_cost_per_token": new / 1e6,
        "output_cost_per_token": out / 1e6,
        "cache_read_input_token_cost": cached / 1e6,
        "cache_creation_input_token_cost": 1.25 * new / 1e6,
        "cache_creation_input_token_cost_above_1hr": 2 * new / 1e6,
    }


def _gpt(new: float, out: float, cached: float) -> dict[str, float]:
    """Prices of a GPT, from US dollars per million tokens. Writing to the cache costs 1.25 times the price of new tokens, writing
    for twelve hours 2.5 times. Above 272,000 tokens, the whole prompt costs twice as much and the reply 1.5 times."""
    usual = {
        "input_cost_per_token": new / 1e6,
        "cache_read_input_token_cost": cached / 1e6,
        "cache_creation_input_token_cost": 1.25 * new / 1e6,
        "cache_creation_input_token_cost_above_12hr": 2.5 * new / 1e6,
    }
    above = {f"{name}_above_272k_tokens": 2 * price for name, price in usual.items()}
    reply = {"output_cost_per_token": out / 1e6, "output_cost_per_token_above_272k_tokens": 1.5 * out / 1e6}
    return usual | above | reply


NEWER = {
    "claude-fable-5-2": NewerModel("claude-fable-5-1", _claude(8, 40, 0.20)),
    "gpt-6.2-astra": NewerModel("gpt-6-astra", _gpt(8, 40, 0.40)),
    "gpt-6.2-sol": NewerModel("gpt-6.1-sol", _gpt(2, 10, 0.10)),
}

_MAKERS = {"claude": "anthropic", "gpt": "openai"}
"""The provider that makes the models whose names begin so; with the prefix of another provider, the table's prices do not
hold."""

_FAMILIES = (
    (r"claude-(?:fable|mythos)-\d", "claude-fable-5-1"),
    (r"claude-opus-[5-9]", "claude-opus-5-5"),
    (r"claude-haiku-[5-9]", "claude-haiku-5-5"),
    (r"claude-[a-z]+-[5-9]", "claude-sonnet-5-5"),
    (r"gpt-[6-9](?![\d-]*oss)", "gpt-6.1-sol"),
    (r"gpt-5\.[6-9]", "gpt-5.6-sol"),
    (r"gemini-[4-9]", "gemini/gemini-4-argon"),
    (r"gemini-3", "gemini/gemini-3.8-flash"),
    (r"grok-(?:4\.[7-9]|[5-9])", "xai/grok-4.7"),
    (r"deepseek-v[4-9]", "deepseek/deepseek-v4-pro"),
    (r"kimi-k[3-9]", "moonshot/kimi-k3"),
    (r"glm-5\.[3-9]|glm-[6-9]", "zai/glm-5.3"),
    (r"qwen(?:3\.8|-?[4-9])-?(?:max|plus|flash)", "dashscope/qwen3.8-max"),
)
"""The beginning of the names in a family (without a provider's prefix), and the listed model that stands for it; the first match
counts."""


def newer_model(name: str) -> NewerModel | None:
    """The entry of the table for a model, by litellm's name; None for other models, and where another provider than its maker
    serves it, which has prices of its own."""
    head, slash, rest = name.replace("/responses/", "/").partition("/")
    if not slash:
        return NEWER.get(name)
    return NEWER.get(rest) if _MAKERS.get(rest.split("-")[0]) == head else None


def family(name: str) -> str:
    """The name of the listed model that stands for a model's family, whoever serves it; empty where none does."""
    model = name.rpartition("/")[2].lower()
    return next((like for begins, like in _FAMILIES if re.match(begins, model)), "")
