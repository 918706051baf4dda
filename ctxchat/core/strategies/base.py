"""What every compaction strategy is: a small pure object that turns a view into a plan, changes nothing and waits for nothing.

A preview shows a plan, a dry run works out what it would leave; `ctxchat.agent.compaction.run` is the one executor.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Edit, Ledger
from ctxchat.core.view import View


class Spill(msgspec.Struct, frozen=True):
    """A text to be saved before the swap, under `name` in the session's folder (`tool-results/m12.txt`)."""

    name: str
    text: str


DEFERRED = "deferred"
"""The step that does what the person put off until the next compaction; whatever the strategy, it comes first."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of a plan that can be ticked on its own.

    `edits` are ready to apply. `fold` names the groups (in the order of the record) that a summary, still to be made, will
    stand for; such a step needs a model. `tokens_freed` is in the view's raw tokens and already counts what takes the
    groups' place; for a summary that is `summary_tokens` (its text), `evidence_tokens` (the facts kept by code) and
    `files_tokens` (the files beside it, 0 for as many as usual) at most.
    """

    name: str
    tokens_freed: int
    groups: int
    edits: tuple[Edit, ...] = ()
    fold: tuple[str, ...] = ()
    summary_tokens: int = 0
    evidence_tokens: int = 0
    files_tokens: int = 0
    spills: tuple[Spill, ...] = ()

    @property
    def needs_summary(self) -> bool:
        """True when somebody has to write a summary first."""
        return bool(self.fold)


class Plan(msgspec.Struct, frozen=True):
    """What a strategy would do. `before`, `after` and the `target` that was asked for (0 where nobody did) in the view's raw
    tokens; `keep_recent` is what was used, in messages."""

    strategy: str
    steps: tuple[Step, ...]
    before: int
    after: int
    keep_recent: int = 0
    target: int = 0

    @property
    def asked_for(self) -> bool:
        """It only does what the person put off: that is done however little it frees."""
        return {step.name for step in self.steps} == {DEFERRED}

    @property
    def covers(self) -> tuple[str, ...]:
        """Every group the plan touches."""
        return tuple(dict.fromkeys(g for s in self.steps for g in (*(c for e in s.edits for c in e.covers), *s.fold)))


class Strategy(Protocol):
    """A compaction strategy."""

    @property
    def name(self) -> str:
        """As in settings and records: `truncate`, `pipeline`, …"""
        ...

    @property
    def label(self) -> str:
        """What it does, in a few words, as the preview tells a person."""
        ...

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        """The steps down to `budget.target`, or None when there is nothing to free.

        `budget` is in the view's raw tokens. The same state gives the same plan; a plan applied leaves nothing for a
        second run over the same state. Pinned groups, system groups and the current user message are never touched.
        """
        ...
