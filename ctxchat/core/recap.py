"""What code says of folded groups: the person's messages word for word, and what was done last. No model, no clock.

Made anew from the record each time, so that a recap of recaps cannot blur.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.clip import clip
from ctxchat.core.facts import Memory, carries, plain, turns_down
from ctxchat.core.messages import Group, Message, attached, own_words
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import first_line, gist, use_of, words_of_answer, words_of_refusal

MAX_ACTIVITY_TOKENS = 24
LENGTHS = tuple(int(2_000 * 0.9**step) for step in range(40))
"""Tokens up to which a message of the person stays whole, tried in turn until all of them fit."""

UNCUT_MESSAGE_TOKENS = 200
"""Tokens up to which no message is cut while one stands there of which nothing came."""

BRIEF_MESSAGE_TOKENS = 60
"""Tokens up to which none is cut at all: half of a sentence may say something else. It stands whole or gives way."""

EMPTY_MESSAGE_CHARS = 8
"""Characters of a message that tells nothing by itself."""

MIN_CUT_TOKENS = 30
"""Tokens of a message that is cut, at least: it gets half of what one may have that stays whole, so that more do."""

RULE_WEIGHT = 4
"""The worth of what the person wants to hold from then on."""

MAX_SENTENCE_TOKENS = 120
"""Tokens of a sentence that is still one, and no paste."""

_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?=\S)[^.!?。！？\n]*)*[.!?。！？]*")

_HEAD = "The person's messages, word for word:"
_CUT = " [… {tokens} tokens left out …] "
_LEFT_OUT = "- {} messages are left out here"
_FINDS = "; recall finds them"


class _Statement(msgspec.Struct, frozen=True):
    """What the person said in one place: in a message, while they refused a call, or to a question that one asked. `worth` as in
    `_worths`, 4 for a rule, a refusal, a correction or an answer."""

    id: str
    seq: int
    text: str
    worth: int


def person_said(
    groups: Sequence[Group],
    max_tokens: int,
    count: Count,
    memory: Memory | None = None,
    but: Collection[str] = (),
    *,
    recall: bool = True,
) -> str:
    """What the person said among these groups of the record (`but` for some), oldest first, in at most `max_tokens`; what they
    said while they refused a call or when they were asked is among it. The longest are cut, as few as it takes, and never inside
    a sentence that holds from then on; before one of `UNCUT_MESSAGE_TOKENS` tokens is cut, those go of which nothing came. Where
    even that is too much others behind the first go: agreement before wishes, wishes before rules, refusals and corrections, the
    oldest first. How many are left out is told. `memory` has the facts found so far; `recall`: the reader has that tool for the
    rest."""
    memory = memory or Memory()
    said = _all_said(groups, memory, but)
    room = max_tokens - count(_HEAD) - count(f"{_LEFT_OUT}{_FINDS}.") - 8
    weights = {one.id: memory.once(count, one.text) + 6 for one in said}  # 6: its id, its mark, the line end
    longest = _fitting(weights.values(), room, UNCUT_MESSAGE_TOKENS)
    if not longest:
        kept = [one for one in said if one.worth or one in {said[0], said[-1]}]
        longest = _fitting([weights[one.id] for one in kept], room, BRIEF_MESSAGE_TOKENS) or BRIEF_MESSAGE_TOKENS
    lines: dict[str, str] = {}
    behind = sorted(said[1:-1], key=lambda one: (-one.worth, -one.seq))
    rules = [one for one in behind if one.worth >= RULE_WEIGHT]
    for one in [*rules, *said[:1], *said[1:][-1:], *behind[len(rules) :]]:
        cut = weights[one.id] > longest + 6
        if (MIN_CUT_TOKENS // 2 if cut else weights[one.id] - 6) > room:
            continue
        for text in memory.once(_cut_forms, (one.text, longest, count)) if cut else (one.text,):
            if memory.once(count, text) > room:
                continue
            line = f"- {one.id}: {text}"
            if (tokens := count(line) + 1) <= room:
                room -= tokens
                lines[one.id] = line
                break
    shown = [lines[one.id] for one in said if one.id in lines]
    if len(shown) < len(said) and shown:
        shown.insert(1, f"{_LEFT_OUT.format(len(said) - len(shown))}{_FINDS if recall else ''}.")
    return "\n".join([_HEAD, *shown]) if shown else ""


def _all_said(groups: Sequence[Group], memory: Memory, but: Collection[str]) -> list[_Statement]:
    """All that the person said, in the order of the record."""
    heard = memory.gathered(_heard, groups)
    worth = _worths(heard)
    return [
        _Statement(name, seq, text, worth.get(group, RULE_WEIGHT))
        for group, name, seq, text in heard.said
        if group not in but
    ]


class _Heard(msgspec.Struct, frozen=True):
    """What the person said up to a place of the record, each as group, message, its place and text, and what came of it up to
    there: see `_worths`. Of the last ones that they `asked` it is open what comes."""

    said: Sequence[tuple[str, str, int, str]] = ()
    worth: Mapping[str, int] = {}
    only_answered: Mapping[str, int] = {}
    brief: Sequence[str] = ()
    asked: Sequence[str] = ()
    answered: bool = True


def _heard(memory: Memory, before: _Heard | None, groups: Sequence[Group]) -> _Heard:
    """What the person said up to the end of these groups, where that before them is known."""
    before = before or _Heard()
    said, worth, only_answered = [*before.said], {**before.worth}, {**before.only_answered}
    brief, asked, answered = [*before.brief], [*before.asked], before.answered
    for group in groups:
        if group.kind == "user":
            if text := _message_line(group.first):
                said.append((group.id, group.first.id, group.first.seq, text))
            asked = [*([] if answered else asked), group.id]
            answered = False
            exact = {fact.kind for fact in memory.find_facts(group).facts}
            holds = "rule" in exact or turns_down(group.first.text)
            worth[group.id] = RULE_WEIGHT if holds else 3 if "decision" in exact else 1
            only_answered[group.id] = min(worth[group.id], len(exact)) if not holds else RULE_WEIGHT
            if len(group.first.text) <= EMPTY_MESSAGE_CHARS:
                brief.append(group.id)
            continue
        answered = True
        if group.kind == "round":
            said += [(group.id, *told) for told in _said_to_calls(group)]
            for name in asked:
                worth[name] = max(worth[name], 1 + memory.find_facts(group).done)
                only_answered.pop(name, None)
    return _Heard(said, worth, only_answered, brief, asked, answered)


def _worths(heard: _Heard) -> dict[str, int]:
    """What came of each message of the person, which says what it was in any language: 4 where it is a rule or turns something
    down, 3 where it is a choice, 2 where something was done, 1 where something was looked up or it tells something exact, 0 where
    it was only answered, as remarks and thanks are. A word or two tell nothing, whatever was done then."""
    still = () if heard.answered else heard.asked
    answers = {name: told for name, told in heard.only_answered.items() if name not in still}
    return {**heard.worth, **answers, **{name: 0 for name in heard.brief if heard.worth[name] != 3}}


def _said_to_calls(group: Group) -> Iterator[tuple[str, int, str]]:
    """What the person said while they refused calls of this round, and what they answered to its questions."""
    for call, result in zip(group.first.calls, group.messages[1:], strict=False):
        if words := words_of_answer(call, result):
            asked = first_line(str((fields_of(call.arguments) or {}).get("question", "")), 100)
            yield result.id, result.seq, f"(asked: {asked}) {words}"
        elif words := words_of_refusal(result):
            about = f"{call.name} {first_line(use_of(call).target, 60)}".rstrip()
            yield result.id, result.seq, f"(refusing {about}) {words}"


def _standing_sentences(text: str, count: Count) -> list[str]:
    """The sentences of a message that hold from then on."""
    sentences = (plain(found[0]) for found in _SENTENCE.finditer(text))
    return [s for s in sentences if carries(s) and count(s) <= MAX_SENTENCE_TOKENS]


def _cut_forms(asked: tuple[str, int, Count]) -> tuple[str, ...]:
    """What can stand for a message of more than so many tokens, longest first: it in brief, its standing sentences alone."""
    text, longest, count = asked
    held = _standing_sentences(text, count)
    return (_in_brief(text, _cut(longest), longest, count), *([f"[…] {' […] '.join(held)}"] if held else []))


def _in_brief(text: str, max_tokens: int, most: int, count: Count) -> str:
    """A long message in about `max_tokens`: its head and tail, and between them the sentences that hold from then on, whole as
    far as they fit into `most`."""
    held = _standing_sentences(text, count)
    while len(held) > 1 and sum(map(count, held)) > most:
        held.pop(0)
    if held and sum(map(count, held)) + 2 * MIN_CUT_TOKENS > most:
        return f"[…] {' […] '.join(held)}"
    room = max(MIN_CUT_TOKENS, max_tokens - sum(count(s) + 4 for s in held))
    ends = clip(text, room, count, _CUT)
    flat = plain(ends)
    missing = [s for s in held if s not in flat]
    if not missing:
        return ends
    start, mark, end = ends.rpartition(" left out …] ")
    if not mark:
        return f"{ends} […] {' […] '.join(missing)}"
    return f"{start}{mark}{' […] '.join(missing)} […] {end}"


def _fitting(weights: Iterable[int], room: int, least: int) -> int:
    """Up to how many tokens messages may stay whole for all to fit; 0 where that is less than the least."""
    some = sorted(weights)
    whole = [0, *accumulate(some)]  # of the shortest, so many

    def needed(longest: int) -> int:
        short = bisect_right(some, longest + 6)
        return whole[short] + (len(some) - short) * (_cut(longest) + 6)

    return next((n for n in LENGTHS if n >= least and needed(n) <= room), 0)


def _cut(longest: int) -> int:
    return max(MIN_CUT_TOKENS, longest // 2)


def _message_line(message: Message) -> str:
    along = [a.name or a.kind for a in attached(message.content)]
    text = own_words(message).replace("\n", "\n  ")
    return f"{text} [with {', '.join(along)}]".strip() if along else text


def recap(groups: Sequence[Group], max_tokens: int, count: Count) -> str:
    """Recent activity of these groups of the record, in at most `max_tokens`. Where room is short the oldest lines go first."""
    done = [line for g in groups[-MAX_ACTIVITY_TOKENS:] for line in _activity(g)][-MAX_ACTIVITY_TOKENS:]
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
