"""The interface of a compaction strategy, and the values it returns: a `Plan` of `Step`s, each of which frees tokens.

A strategy is a small pure object that turns a view (what the model is sent) and a ledger (everything ever said, and the changes
in force) into a plan; it changes nothing and waits for nothing. A plan speaks of groups, messages that must stay together, by
their ids; to fold groups is to put one summary in their place. A preview shows a plan, a dry run works out what it would leave,
and only `ctxchat.agent.compaction.run` carries one out.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Edit, Ledger
from ctxchat.core.view import View


class Spill(msgspec.Struct, frozen=True):
    """A full text that must be saved before its short form is shown, as the file `name` in the session's folder
    (`tool-results/m12.txt`)."""

    name: str
    text: str


DEFERRED = "deferred"
"""The name of the step that makes the changes which the person put off until the next compaction. It comes first in every
plan."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of a plan, which a person can include or leave out.

    `edits` are ready to apply. `fold` are the ids of groups, oldest first, that a summary will stand for, which must be written
    first. `groups` is how many groups the step changes. `tokens_freed` is the net gain in raw tokens (our own counts, not
    corrected by the server's), with what takes the groups' place already subtracted. For a summary that is at most
    `summary_tokens` (its text), `evidence_tokens` (the exact facts that code adds) and `files_tokens` (the files shown beside it;
    0 means the usual number). `spills` are the texts to save before.
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
        """True where a summary has to be written before this step can be applied."""
        return bool(self.fold)


class Plan(msgspec.Struct, frozen=True):
    """What a strategy would do. `before` and `after` are the view's raw tokens, `target` is what `after` should be at most (0
    where none was given). `keep_recent` is the number of newest messages that the plan keeps."""

    strategy: str
    steps: tuple[Step, ...]
    before: int
    after: int
    keep_recent: int = 0
    target: int = 0

    @property
    def asked_for(self) -> bool:
        """True where the plan only makes changes that the person put off; these are made however little they free."""
        return {step.name for step in self.steps} == {DEFERRED}

    @property
    def covers(self) -> tuple[str, ...]:
        """The ids of all groups that the plan changes, each once."""
        return tuple(dict.fromkeys(g for s in self.steps for g in (*(c for e in s.edits for c in e.covers), *s.fold)))


class Strategy(Protocol):
    """A compaction strategy: a name and a way to make a plan."""

    @property
    def name(self) -> str:
        """Its name in settings and records: `truncate`, `pipeline`, …"""
        ...

    @property
    def label(self) -> str:
        """What it does, in a few words for a person."""
        ...

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        """The steps that bring the view down to `budget.target`, or None where nothing can be freed.

        `budget` is in raw tokens, as the view's counts are. The same state gives the same plan, and after a plan was applied the
        same strategy finds nothing more to do. Pinned groups, system groups and the current user message are never changed.
        """
        ...
