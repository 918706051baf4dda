"""What freeing up context would do, ready to be drawn: the plan in the gauge's tokens, the price, who would see the text."""

from __future__ import annotations

import msgspec

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.record import FactCount
from ctxchat.core.strategies.base import Plan
from ctxchat.core.view import View


class PreviewStep(msgspec.Struct, frozen=True):
    """One step to tick: its name in words, tokens freed, groups touched, whether a model must write a summary, the first and the
    last turn it touches, and `goes`: the groups of the view that it takes away or shortens. `nothing` says why it frees nothing,
    where it does not."""

    name: str
    label: str
    tokens_freed: int
    groups: int
    needs_model: bool = False
    turns: tuple[int, int] = (0, 0)
    goes: frozenset[str] = frozenset()
    nothing: str = ""


class Preview(msgspec.Struct, frozen=True):
    """A compaction that has not been run. Tokens as the gauge counts them.

    `after` is the gauge as it would be, without a draft; `between` the figures it may come out at, apart where nobody has seen
    how long summaries of this model are. `plan` is None when there is nothing to free; `reason` then says why in
    a sentence. `others` are the steps that are no part of the plan: what each would free besides, or why it frees nothing.
    `seconds` and `cost_usd` are estimates for the summary call; `model` is who would write it (empty: no model),
    `other_provider` True when that is not the provider in use. `cache_lost` are the cached tokens that a rewrite of the prefix
    loses. `facts_text` is what the model would read of the facts. `after_messages` is what the view would hold,
    `folded_messages` what would be touched for the first time. `files` would be shown as they are on disk now. `changes` are the
    changes that were in force: the plan holds while they are. `missed` says in a sentence by how much the target is missed and
    what stands in the way; empty where it is met.
    """

    before: ContextUsage
    after: ContextUsage
    steps: tuple[PreviewStep, ...] = ()
    others: tuple[PreviewStep, ...] = ()
    plan: Plan | None = None
    reason: str = ""
    keep_recent: int = 0
    pinned: int = 0
    facts: FactCount = FactCount(0, 0)
    seconds: float = 0.0
    cost_usd: float = 0.0
    model: str = ""
    other_provider: bool = False
    cache_lost: int = 0
    instructions: str = ""
    changes: tuple[str, ...] = ()
    facts_text: str = ""
    after_messages: int = 0
    folded_messages: int = 0
    files: tuple[str, ...] = ()
    missed: str = ""
    between: tuple[int, int] = (0, 0)

    @property
    def offered(self) -> tuple[PreviewStep, ...]:
        """Every step there is, those of the plan first."""
        return (*self.steps, *self.others)

    @property
    def freed(self) -> int:
        """Tokens that would go; negative where the view would grow."""
        return self.before.used - self.before.tokens("draft") - self.after.used


def cache_lost(plan: Plan, view: View, context_usage: ContextUsage) -> int:
    """Cached tokens that the next request pays in full again where this plan is run: those behind the first message that
    changes. What stands before it (the system prompt, the tools) stays cached."""
    changed = {
        group
        for step in plan.steps
        for group in (*step.fold, *(covered for edit in step.edits for covered in edit.covers))
    }
    first = next((place for place, item in enumerate(view.items) if item.group in changed), None)
    if first is None or not view.raw:
        return 0
    before = sum(view.tool_tokens) + sum(item.tokens for item in view.items[:first])
    cached = min(context_usage.cached, context_usage.used)
    return max(0, cached - round(before * (context_usage.used - context_usage.tokens("draft")) / view.raw))
