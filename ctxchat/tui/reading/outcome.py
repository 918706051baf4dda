"""What the gauge would show after a pass that has not been run, or after some of its steps. Pure, and an estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from ctxchat.agent.preview import Preview
from ctxchat.core.figures import Figures
from ctxchat.core.ledger import Edit, Ledger
from ctxchat.core.messages import Message
from ctxchat.core.sections import OUTSIDE, SECTIONS, Section, SectionName
from ctxchat.core.strategies.base import Step
from ctxchat.core.tokens import apportion
from ctxchat.core.view import View

Weights = Counter[SectionName]
Stock = dict[str, Weights]
"""Raw tokens by section of each thing in the view, by the id of its group; what belongs to none is under the empty id."""

BY_ROLE: dict[str, SectionName] = {"user": "user", "assistant": "assistant", "tool": "tool_results", "system": "system"}
SUMMARY = "the new summary"


def after(preview: Preview, ticked: Collection[str], view: View, ledger: Ledger) -> Figures:
    """The figures after the ticked steps, without the draft. `view` and `ledger` are those the preview was made of.

    With all steps ticked `used` is the preview's own; steps that build on one another are reckoned anew without the others.
    """
    figures = preview.before
    start = figures.used - figures.tokens("draft")
    scale = start / max(1, view.raw)
    everything = {step.name for step in preview.steps}
    spare = round(sum(_remaining(preview, everything, view, ledger).values()) - preview.after_used / max(scale, 0.01))
    whole = _remaining(preview, everything, view, ledger, spare)
    left = _remaining(preview, ticked, view, ledger, spare)
    more = max(0, sum(left.values()) - sum(whole.values()))
    used = min(start, preview.after_used + round(more * scale)) if ticked else start
    inside: list[SectionName] = [name for name in SECTIONS if name not in OUTSIDE]
    parts: dict[SectionName, int] = dict(zip(inside, apportion(used, [left[n] for n in inside]), strict=True))
    used = sum(parts.values())
    parts["reserved"] = figures.reserved_output
    parts["free"] = max(0, figures.limit - used)
    return msgspec.structs.replace(
        figures,
        used=used,
        estimated=True,
        pressure=used / max(1, figures.limit),
        sections=tuple(Section(name, parts[name], estimated=name != "reserved") for name in SECTIONS),
    )


def _remaining(preview: Preview, ticked: Collection[str], view: View, ledger: Ledger, spare: int = 0) -> Weights:
    """Raw tokens by section when the ticked steps are done one after another. `spare` is what a summary will not take of
    what is set aside for it."""
    shown = {g: entry.group.id for entry in ledger.live() if entry.group for g in entry.covers}
    stock: Stock = {"": Weights({"tools": sum(view.tool_tokens)})}
    for item in view.items:
        stock.setdefault(item.group, Weights())[item.section] += item.tokens
    for step in preview.plan.steps if preview.plan else ():
        if step.name in ticked:
            _take(stock, step, shown, ledger, spare)
    left = Weights()
    for weights in stock.values():
        left.update(weights)
    return left


def _take(stock: Stock, step: Step, shown: dict[str, str], ledger: Ledger, spare: int) -> None:
    """One step: what it folds gives way to a summary, what it edits gets shorter."""
    folded = [*step.fold, *(g for e in step.edits if e.kind == "digest" for g in e.covers)]
    if folded:
        gone = sum(sum(stock.pop(key, Weights()).values()) for key in {shown.get(g, g) for g in folded})
        size = step.summary_tokens + step.evidence_tokens or max(0, gone - step.tokens_freed)
        stock[SUMMARY] = Weights({"summary": max(1, size - spare)})
        return
    losses = [
        _Loss(shown.get(e.covers[0], e.covers[0]), name, n) for e in step.edits for name, n in _lost(e, ledger).items()
    ]
    for loss, tokens in zip(losses, apportion(step.tokens_freed, [loss.letters for loss in losses]), strict=True):
        if weights := stock.get(loss.key):
            weights[loss.section] = max(0, weights[loss.section] - tokens)


class _Loss(msgspec.Struct, frozen=True):
    key: str
    section: SectionName
    letters: int


def _lost(edit: Edit, ledger: Ledger) -> Weights:
    """How much text goes with an edit, by section: enough to share out a known sum of tokens."""
    lost = _letters(m for g in edit.covers for m in ledger.group(g).messages)
    lost.subtract(_letters(edit.replacement.messages if edit.replacement else ()))
    return +lost


def _letters(messages: Iterable[Message]) -> Weights:
    letters = Weights()
    for message in messages:
        letters[BY_ROLE[message.role]] += len(message.text) + sum(len(c.arguments) for c in message.calls)
        letters["assistant"] += len(message.reasoning.text) if message.reasoning else 0
    return letters
