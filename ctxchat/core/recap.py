"""What code says of folded groups: the person's messages word for word, and what was done last. No model, no clock.

Made anew from the record each time, so that a recap of recaps cannot blur.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from ctxchat.core.clip import clip
from ctxchat.core.facts import Memory
from ctxchat.core.messages import Group, Message, attached, spoken
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import first_line, gist, use_of

ACTIVITY = 24
LENGTHS = tuple(int(2_000 * 0.9**step) for step in range(40))
"""Tokens up to which a message of the person stays whole, tried in turn until all of them fit."""

UNCUT = 200
"""Tokens up to which no message is cut while one stands there of which nothing came."""

BRIEF = 8
"""Characters of a message that tells nothing by itself."""

LEAST = 30
"""Tokens of a message that is cut, at least: it gets half of what one may have that stays whole, so that more do."""

_HEAD = "The person's messages, word for word:"
_CUT = " [… {tokens} tokens left out …] "
_LEFT_OUT = "- {} messages are left out here; recall finds them."


def person_said(groups: Sequence[Group], max_tokens: int, count: Count, memory: Memory | None = None) -> str:
    """What the person said among these groups of the record, oldest first, in at most `max_tokens`. The longest messages are cut
    in the middle, as few as it takes; before one of `UNCUT` tokens is, those go of which nothing came. Where even that is too
    much others behind the first go, by what came of them, the oldest first. How many are left out is told. `memory` has the facts
    found so far."""
    asked = [g for g in groups if g.kind == "user" and not g.first.empty]
    room = max_tokens - count(_HEAD) - count(_LEFT_OUT) - 8
    texts = {g.id: _words(g.first) for g in asked}
    weights = {name: count(text) + 6 for name, text in texts.items()}  # 6: its id, its mark, the line end
    worth = _worths(groups, memory or Memory())
    longest = _fitting(weights.values(), room, UNCUT)
    if not longest:
        kept = [g for g in asked if worth[g.id] or g in {asked[0], asked[-1]}]
        longest = _fitting([weights[g.id] for g in kept], room, 0) or LENGTHS[-1]
    lines: dict[str, str] = {}
    behind = sorted(asked[1:-1], key=lambda g: (-worth[g.id], -g.first.seq))
    for group in [*asked[:1], *asked[1:][-1:], *behind]:
        text, cut = texts[group.id], weights[group.id] > longest + 6
        line = f"- {group.first.id}: {clip(text, _cut(longest), count, _CUT) if cut else text}"
        tokens = count(line) + 1
        if tokens <= room:
            room -= tokens
            lines[group.id] = line
    shown = [lines[g.id] for g in asked if g.id in lines]
    if len(shown) < len(asked) and shown:
        shown.insert(1, _LEFT_OUT.format(len(asked) - len(shown)))
    return "\n".join([_HEAD, *shown]) if shown else ""


def _fitting(weights: Iterable[int], room: int, least: int) -> int:
    """Up to how many tokens messages may stay whole for all to fit; 0 where that is less than the least."""
    some = sorted(weights)
    whole = [0, *accumulate(some)]  # of the shortest, so many

    def needed(longest: int) -> int:
        short = bisect_right(some, longest + 6)
        return whole[short] + (len(some) - short) * (_cut(longest) + 6)

    return next((n for n in LENGTHS if n >= least and needed(n) <= room), 0)


def _worths(groups: Sequence[Group], memory: Memory) -> dict[str, int]:
    """What came of each message of the person, which says what it was in any language: 3 where it is a rule or a decision, 2
    where something was done, 1 where something was looked up or it tells something exact, 0 where it was only answered, as
    remarks and thanks are. A word or two tell nothing, whatever was done then."""
    worth: dict[str, int] = {}
    only_answered: dict[str, int] = {}
    asked: list[str] = []
    answered = True
    for group in groups:
        if group.kind == "user":
            asked = [*([] if answered else asked), group.id]
            answered = False
            exact = {fact.kind for fact in memory.look(group).facts}
            worth[group.id] = 3 if exact & {"rule", "decision"} else 1
            only_answered[group.id] = min(worth[group.id], len(exact))
            continue
        answered = True
        if group.kind == "round":
            for name in asked:
                worth[name] = max(worth[name], 1 + memory.look(group).done)
                only_answered.pop(name, None)
    brief = (g for g in groups if g.kind == "user" and len(g.first.text) <= BRIEF and worth[g.id] < 3)
    answers = {name: told for name, told in only_answered.items() if name not in asked or answered}
    return worth | answers | {group.id: 0 for group in brief}


def _cut(longest: int) -> int:
    return max(LEAST, longest // 2)


def _words(message: Message) -> str:
    along = [a.name or a.kind for a in attached(message.content)]
    text = spoken(message).strip().replace("\n", "\n  ")
    return f"{text} [with {', '.join(along)}]" if along else text


def recap(groups: Sequence[Group], max_tokens: int, count: Count) -> str:
    """Recent activity of these groups of the record, in at most `max_tokens`. Where room is short the oldest lines go first."""
    done = [line for g in groups[-ACTIVITY:] for line in _activity(g)][-ACTIVITY:]
    while done and count("\n".join(["Done last:", *done])) > max_tokens:
        done = done[1:]
    return "\n".join(["Done last:", *done]) if done else ""


def _activity(group: Group) -> list[str]:
    match group.kind:
        case "round":
            lines: list[str] = []
            for call, result in zip(group.first.calls, group.messages[1:], strict=False):
                if result.synthetic and lines and lines[-1].endswith(result.text):
                    continue  # one line tells of a whole batch that was cut off
                target = first_line(use_of(call).target or call.arguments, 100)
                lines.append(f"- {result.id} {call.name} {target} → {gist(call, result, 120)}")
            return lines
        case "reply":
            return [f"- {group.first.id} answered: {first_line(group.first.text, 200)}"]
        case "note" | "stray":
            return [f"- {group.first.id} noted: {first_line(group.first.text, 120)}"]
        case _:
            return []
