"""What code says of folded groups: the person's messages word for word, and what was done last. No model, no clock.

Made anew from the record each time, so that a recap of recaps cannot blur.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.attachments import attached, spoken
from ctxchat.core.clip import clip
from ctxchat.core.messages import Group, Message
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import first_line, gist, use_of

ACTIVITY = 24
LENGTHS = tuple(int(2_000 * 0.9**step) for step in range(40))
"""Tokens up to which a message of the person stays whole, tried in turn until all of them fit."""

LEAST = 30
"""Tokens of a message that is cut, at least: it gets half of what one may have that stays whole, so that more do."""

_HEAD = "The person's messages, word for word:"
_CUT = " [… {tokens} tokens left out …] "
_LEFT_OUT = "- {} messages are left out here; recall finds them."


def person_said(groups: Sequence[Group], max_tokens: int, count: Count) -> str:
    """Every message of the person among these groups of the record, oldest first, in at most `max_tokens`. The longest are cut in
    the middle, as few as it takes; where even that is too much those behind the first go, the oldest first, and their number is
    told."""
    asked = [m for g in groups if g.kind == "user" and not (m := g.first).empty]
    room = max_tokens - count(_HEAD) - count(_LEFT_OUT) - 8
    texts = {m.id: _words(m) for m in asked}
    weights = [count(text) + 6 for text in texts.values()]  # 6: its id, its mark, the line end
    longest = next((n for n in LENGTHS if sum(w if w <= n + 6 else _cut(n) + 6 for w in weights) <= room), LENGTHS[-1])
    lines: dict[str, str] = {}
    for message in [*asked[:1], *asked[:0:-1]]:
        text = texts[message.id]
        line = f"- {message.id}: {text if count(text) <= longest else clip(text, _cut(longest), count, _CUT)}"
        room -= count(line) + 1
        if room < 0:
            break
        lines[message.id] = line
    shown = [lines[m.id] for m in asked if m.id in lines]
    if len(shown) < len(asked) and shown:
        shown.insert(1, _LEFT_OUT.format(len(asked) - len(shown)))
    return "\n".join([_HEAD, *shown]) if shown else ""


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
