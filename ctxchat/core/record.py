"""What is written down of every compaction: why, how, with what gain, and the facts that were carried over."""

from __future__ import annotations

from typing import Literal

import msgspec

Reason = Literal[
    "manual", "auto", "reactive_micro", "reactive_full", "context_overflow", "model_switch", "hook", "offline"
]
Outcome = Literal["compacted", "noop", "rejected", "failed"]


class StepGain(msgspec.Struct, frozen=True):
    """One step of a pass: its name, the tokens it freed and how many groups it touched."""

    name: str
    tokens_freed: int
    groups: int


class SideFigures(msgspec.Struct, frozen=True, omit_defaults=True):
    """One side of a pass: tokens in use, messages in the view, and tokens by section."""

    used: int
    messages: int
    sections: dict[str, int] = {}


class FactCount(msgspec.Struct, frozen=True):
    """Facts found in what was folded, and how many of them the view still holds."""

    found: int
    kept: int


class CompactionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record of one pass (SPEC 2.14). Tokens are integers, `seconds` wall time, `cost_usd` US dollars.

    `steps` are what was done in order. `folded` are the ids of the groups that left the view. `detail` is one sentence for
    people. `evidence` is the ledger of facts as text, `tools`, `memory` and `recent_calls` are the snapshots a resumed session can
    be checked against.
    """

    id: str
    reason: Reason
    strategy: str
    outcome: Outcome
    at: str = ""
    steps: tuple[StepGain, ...] = ()
    model: str = ""
    before: SideFigures = SideFigures(0, 0)
    after: SideFigures = SideFigures(0, 0)
    folded: tuple[str, ...] = ()
    folded_messages: int = 0
    keep_recent: int = 0
    facts: FactCount = FactCount(0, 0)
    seconds: float = 0.0
    cost_usd: float = 0.0
    attempts: int = 0
    summary: str = ""
    evidence: str = ""
    detail: str = ""
    tools: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    recent_calls: tuple[str, ...] = ()
