"""What freeing up context would do, ready to be drawn: the plan in the gauge's tokens, the price, who would see the text."""

from __future__ import annotations

import msgspec

from ctxchat.core.figures import Figures
from ctxchat.core.strategies.base import Plan


class PreviewStep(msgspec.Struct, frozen=True):
    """One step to tick: its name in words, tokens freed, groups touched, and whether a model must write a summary."""

    name: str
    label: str
    tokens_freed: int
    groups: int
    needs_model: bool = False


class Preview(msgspec.Struct, frozen=True):
    """A pass that has not been run.

    Tokens as the gauge counts them; `seconds` and `cost_usd` are estimates for the summary call; `model` is who would write
    it (empty: no model), `other_provider` True when that is not the provider in use; `cache_lost` are the cached tokens that a
    rewrite of the prefix loses. `plan` is None when there is nothing to free; `reason` then says why in a sentence.
    `changes` are the changes that were in force: the plan holds while they are.
    """

    before: Figures
    after_used: int
    steps: tuple[PreviewStep, ...]
    plan: Plan | None
    reason: str = ""
    keep_recent: int = 0
    pinned: int = 0
    facts: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0
    model: str = ""
    other_provider: bool = False
    cache_lost: int = 0
    instructions: str = ""
    changes: tuple[str, ...] = ()
