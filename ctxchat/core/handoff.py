"""Writes the first message of a fresh session that continues the work of another one: from that one's record (all its messages)
by code, or around a summary that a model wrote. Pure.
"""

from __future__ import annotations

from ctxchat.core.clip import clip
from ctxchat.core.facts import render
from ctxchat.core.ledger import Ledger, open_end
from ctxchat.core.memos import memos_of
from ctxchat.core.messages import Group
from ctxchat.core.pending import asked_now
from ctxchat.core.recap import person_said, recap
from ctxchat.core.summaries import earlier, evidence_after, merged_digest
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import failed, is_to_do

ANSWER, LIST, DONE = 600, 300, 700
"""The most tokens for the last answer, the to-do list and the last actions."""


def handoff(
    ledger: Ledger,
    session: str,
    goal: str,
    max_tokens: int,
    count: Count,
    *,
    written: str = "",
) -> str:
    """The message, in about `max_tokens`: the goal, the summary so far, memos, the person's messages, exact facts, and how far
    the work is. Empty where the person has said nothing yet.

    `session` is the old session's id, by which its messages can be recalled. `goal` is empty for the last request. `written` is a
    summary that a model wrote just now; it takes the place of the earlier summary and of the last actions.
    """
    groups = [g for g in ledger.groups_in_force if g.kind not in {"system", "summary", "note"}]
    asked = [g.first.text.strip() for g in groups if g.kind == "user" and not g.first.empty]
    if not asked:
        return ""
    known = merged_digest(earlier(ledger))
    record = written.strip() or known.summary.strip()
    memos = memos_of(ledger).values()
    parts = [
        f"Go on with this work: {goal.strip() or clip(asked[-1], 200, count, ' […] ')}",
        asked_now(ledger, 600, count),
        f"It was begun in session {session}; what follows was taken from there. Ids such as m12 are that session's: recall them "
        f"as {session}/m12; recall with words finds the rest.",
        f"# The record so far\n{record}" if record else "",
        "\n".join(["# Memos", *(f"- {m.name}: {m.text}" for m in memos)]) if memos else "",
    ]
    left = max(400, max_tokens - sum(map(count, parts)))
    said = person_said(groups, left // 2, count)
    evidence = evidence_after(ledger, [g.id for g in groups])
    state = "" if written.strip() else _state(ledger, groups, count)
    left -= count(said) + count(state)
    facts = render(evidence, max(200, left), count, "\n".join((record, said, state)))
    parts += [said, f"# Facts\n{facts}" if facts else "", state]
    return "\n\n".join(part for part in parts if part)


def _state(ledger: Ledger, groups: list[Group], count: Count) -> str:
    """How far the work is: the last actions, the last answer, the to-do list, and whether the last turn was cut short."""
    end = open_end(ledger)
    answer = next((g for g in reversed(groups) if g.kind == "reply" and g.first.text.strip()), None)
    lists = (
        result.text
        for g in reversed(groups)
        if g.kind == "round"
        for call, result in zip(g.first.calls, g.messages[1:], strict=False)
        if is_to_do(call) and not failed(result)
    )
    to_do = next(lists, "")
    parts = [
        recap([g for g in groups if g is not answer], DONE, count),
        f"The last answer ({answer.first.id}): {clip(answer.first.text, ANSWER, count)}" if answer else "",
        f"The to-do list:\n{clip(to_do, LIST, count)}" if to_do else "",
        "The last turn was cut short: what it was about is not finished." if end else "",
    ]
    shown = [part for part in parts if part]
    return "\n\n".join(["# How it stands", *shown]) if shown else ""
