"""What a plan would leave, told before its summary is written: the plan tried out with a stand-in of the size to be expected.

Blocking, to be run off the event loop. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from ctxchat.agent.trial import Trial, tried
from ctxchat.core.clip import head
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import Count
from ctxchat.core.view import View

SHARE = 0.3
"""Tokens of a summary for each token it stands for, where little is folded."""

USUAL = 1_200
"""Tokens that summaries seldom exceed, however much is folded and allowed."""


def expected_summary(source: int, most: int) -> int:
    """Tokens a summary of `source` tokens will probably take where it may take `most`."""
    return max(1, min(int(source * SHARE), USUAL, most))


def estimated(
    ledger: Ledger, view: View, plan: Plan, options: PlanOptions, compiled: Callable[[Ledger], View], text: str = ""
) -> Trial:
    """The trial of a plan with this summary, or one of the size to be expected where nobody has written it yet. Raises
    LedgerError for a plan that the ledger does not take."""
    folding = next((step for step in plan.steps if step.needs_summary), None)
    text = text or _stand_in(_expected(folding, ledger, view) if folding else 0, options.meter.text)
    return tried(ledger, plan, "estimate", options, compiled, summary=text, at="")


def unneeded(plan: Plan, ledger: Ledger, view: View) -> int:
    """Tokens that a plan sets aside for summaries and that they will probably not take."""
    return sum(s.summary_tokens - _expected(s, ledger, view) for s in plan.steps if s.needs_summary)


def _expected(step: Step, ledger: Ledger, view: View) -> int:
    folded = set(step.fold)
    shown = {e.group.id for e in ledger.live() if e.group and not folded.isdisjoint(e.covers)}
    source = sum(item.tokens for item in view.items if item.group in shown)
    return expected_summary(source, step.summary_tokens)


def _stand_in(tokens: int, count: Count) -> str:
    return head("word " * tokens * 2, tokens, count) or "…"
