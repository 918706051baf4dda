"""Describes a compaction before it runs: its steps, the tokens they free, the price, and which model reads the text."""

from __future__ import annotations

import msgspec

from ctxchat.core.cache import rewrite
from ctxchat.core.cache_state import PrefixRewrite
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.record import FactCount
from ctxchat.core.strategies.base import Plan
from ctxchat.core.view import View


class PreviewStep(msgspec.Struct, frozen=True):
    """One step of a compaction, which the person can leave out.

    `label` is its name in words, `groups` how many it touches, `turns` the first and the last turn that these belong to.
    `affected_groups` are the ids of groups in the view that it takes away or shortens. `why_nothing` says why it frees nothing;
    empty where it frees something.
    """

    name: str
    label: str
    tokens_freed: int
    groups: int
    needs_model: bool = False
    turns: tuple[int, int] = (0, 0)
    affected_groups: frozenset[str] = frozenset()
    unchanged: frozenset[int] = frozenset()
    why_nothing: str = ""


class Preview(msgspec.Struct, frozen=True):
    """What a compaction would do, in tokens as the gauge counts them.

    `before` is the gauge as it is, `after` as it would be, without a draft; `after_range` the least and the most it may show:
    they differ while no summary of this model has been seen. `steps` are those of the plan. `plan` is None when there is
    nothing to free; `reason` then says why in a sentence. `other_steps` are no part of the plan: what each would free besides,
    or why it frees nothing. `seconds` and `cost_usd` are estimates for the summary call; `model` is the one that would write it
    (empty: none is needed), `other_provider` True when that is not the provider in use. `rewrite` is the part of the last
    request that the compaction changes. `pinned` counts groups that stay as they are. `facts_text` is what the model would read
    of the facts. `after_messages` counts the messages of the view then, `folded_messages` those touched for the first time.
    `files` would be shown as they are on disk now. `changes` are the ids of the changes in force: the plan holds while they
    stay the same. `missed` says in a sentence by how much the target is missed and why; empty where it is met.
    """

    before: ContextUsage
    after: ContextUsage
    steps: tuple[PreviewStep, ...] = ()
    other_steps: tuple[PreviewStep, ...] = ()
    plan: Plan | None = None
    reason: str = ""
    keep_recent: int = 0
    pinned: int = 0
    facts: FactCount = FactCount(0, 0)
    seconds: float = 0.0
    cost_usd: float = 0.0
    model: str = ""
    other_provider: bool = False
    rewrite: PrefixRewrite = PrefixRewrite()
    instructions: str = ""
    changes: tuple[str, ...] = ()
    facts_text: str = ""
    after_messages: int = 0
    folded_messages: int = 0
    files: tuple[str, ...] = ()
    missed: str = ""
    after_range: tuple[int, int] = (0, 0)

    @property
    def all_steps(self) -> tuple[PreviewStep, ...]:
        """The steps of the plan, then the others."""
        return (*self.steps, *self.other_steps)

    @property
    def freed(self) -> int:
        """Tokens that would be freed; negative where the view would grow. The draft is counted neither before nor after."""
        return self.before.used - self.before.tokens("draft") - self.after.used


def rewrite_of(
    plan: Plan, view: View, context_usage: ContextUsage, *, binds: bool, head: bool = False
) -> PrefixRewrite:
    """How much of the last request's beginning a plan changes; `binds` as in `rewrite`; `head`: the head changes as well."""
    changed = {
        group
        for step in plan.steps
        for group in (*step.fold, *(covered for edit in step.edits for covered in edit.covers))
    }
    places = (place for place, item in enumerate(view.items) if item.group in changed)
    first = 0 if head else next(places, len(view.items))
    return rewrite(view, first, context_usage.used - context_usage.tokens("draft"), changed, binds=binds)
