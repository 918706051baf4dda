"""The strategies that come with ctxchat, by name. Third parties add theirs by entry point, elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from ctxchat.core.strategies.base import Strategy
from ctxchat.core.strategies.drop_superseded import DropSuperseded
from ctxchat.core.strategies.drop_tool_calls import DropToolCalls
from ctxchat.core.strategies.oversize import KEPT, KEPT_LABEL, Oversize
from ctxchat.core.strategies.pipeline import Pipeline
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.strategies.reactive import ReactiveFull, ReactiveMicro
from ctxchat.core.strategies.shrink_tool_results import ShrinkToolResults
from ctxchat.core.strategies.sliding_window import SlidingWindow
from ctxchat.core.strategies.strip_reasoning import StripReasoning
from ctxchat.core.strategies.summarize import Summarize
from ctxchat.core.strategies.token_budget import TokenBudget
from ctxchat.core.strategies.truncate import Truncate

_SINGLE = (
    DropSuperseded,
    StripReasoning,
    ShrinkToolResults,
    Oversize,
    Summarize,
    Truncate,
    SlidingWindow,
    DropToolCalls,
    TokenBudget,
    ReactiveMicro,
    ReactiveFull,
)

LABELS: Mapping[str, str] = {strategy.name: strategy.label for strategy in _SINGLE} | {KEPT: KEPT_LABEL}
"""What each does, for people; a step of a plan has the name of its strategy."""

LOSSLESS = ("drop_superseded", "strip_reasoning", "shrink_tool_results", "oversize")
"""Steps whose full text stays a pointer away, in the order the pipeline takes them."""


def builtin_strategies(options: PlanOptions) -> dict[str, Strategy]:
    """Every built-in strategy by its name, the pipeline included (lossless steps, then a summary)."""
    found: dict[str, Strategy] = {strategy.name: strategy for strategy in (made(options) for made in _SINGLE)}
    return found | {"pipeline": Pipeline([found[name] for name in (*LOSSLESS, "summarize")], options.counter)}
