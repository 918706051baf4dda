"""A recap of folded groups made by code: what was asked for, and what was done last. No model, no clock."""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.clip import head
from ctxchat.core.messages import Group
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import exit_code, first_line, use_of

REQUESTS = 12
ACTIVITY = 24


def recap(groups: Sequence[Group], max_tokens: int, count: Count) -> str:
    """Goal, later requests and recent activity of these groups of the record, in at most `max_tokens`.

    Made anew from the record each time, so that recaps of recaps cannot blur. Where room is short the oldest lines go first.
    """
    asked = [g for g in groups if g.kind == "user" and not g.first.empty]
    goal = f"First request ({asked[0].first.id}): {head(asked[0].first.text, max_tokens // 3, count)}" if asked else ""
    requests = [f"- {g.first.id}: {first_line(g.first.text, 160)}" for g in asked[1:][-REQUESTS:]]
    done = [line for g in groups[-ACTIVITY:] for line in _activity(g)][-ACTIVITY:]
    while True:
        text = _page(goal, requests, done)
        if count(text) <= max_tokens or not (goal or requests or done):
            return text
        if len(done) > max(2, len(requests)):
            done = done[1:]
        elif requests:
            requests = requests[1:]
        elif done:
            done = done[1:]
        else:
            goal = ""


def _page(goal: str, requests: Sequence[str], done: Sequence[str]) -> str:
    blocks = [goal] if goal else []
    if requests:
        blocks.append("\n".join(["Later requests:", *requests]))
    if done:
        blocks.append("\n".join(["Done last:", *done]))
    return "\n\n".join(blocks)


def _activity(group: Group) -> list[str]:
    match group.kind:
        case "round":
            lines: list[str] = []
            for call, result in zip(group.first.calls, group.messages[1:], strict=False):
                target = first_line(use_of(call).target or call.arguments, 100)
                code = exit_code(result.text)
                outcome = f"exit {code}" if code is not None else first_line(result.text, 80)
                lines.append(f"- {result.id} {call.name} {target} → {outcome}")
            return lines
        case "reply":
            return [f"- {group.first.id} answered: {first_line(group.first.text, 200)}"]
        case "note" | "stray":
            return [f"- {group.first.id} noted: {first_line(group.first.text, 120)}"]
        case _:
            return []
