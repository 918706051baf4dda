"""Writes, without a model, what a compaction says about the groups of messages that it folds: the person's messages word for word
(`person_said`), and the last actions (`recap`). Uses no clock.

Where not all messages fit, a rank decides which are kept: what the person demanded or decided comes before what only led to an
answer (`_Asked.worth_now`). Both texts are written from the record and never from an earlier text, so repeated compactions lose
no detail.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.clip import clip
from ctxchat.core.facts import Memory, carries, plain, turns_down
from ctxchat.core.messages import Group, Message, attached, own_words
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import first_line, gist, use_of, words_of_answer, words_of_refusal

MAX_ACTIVITY_LINES = 24
LENGTHS = tuple(int(2_000 * 0.9**step) for step in range(40))
"""Candidate limits, in tokens, up to which a message of the person stays uncut; tried from the largest until all messages fit."""

UNCUT_MESSAGE_TOKENS = 200
"""Messages of at most this many tokens are cut only after all messages that led to nothing have been left out."""

BRIEF_MESSAGE_TOKENS = 60
"""Messages of at most this many tokens are never cut, since half a sentence may mean something else: they are kept whole or left
out."""

EMPTY_MESSAGE_CHARS = 8
"""A message of at most this many characters is too short to mean anything by itself."""

MIN_CUT_TOKENS = 30
"""Minimum tokens of a cut message. A cut message gets half of the limit for uncut ones, so that more messages stay uncut."""

RULE_WEIGHT, CHOICE_WEIGHT = 4, 3
"""Ranks of statements: a lasting rule, a refusal or a correction has the first; a choice has the second."""

MAX_SENTENCE_TOKENS = 120
"""A longer "sentence", in tokens, is taken for pasted text."""

_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?=\S)[^.!?。！？\n]*)*[.!?。！？]*")

_HEAD = "The person's messages, word for word:"
_CUT = " [… {tokens} tokens left out …] "
_LEFT_OUT = "- {} messages are left out here"
_FINDS = "; recall finds them"


_MARK_TOKENS = 6
"""Tokens that each line needs besides the message: its bullet, its id and the line end."""

MAX_MISSED = 200
"""After this many consecutive messages that do not fit, no further ones are tried."""


class _Statement(msgspec.Struct, frozen=True, gc=False):
    """One thing the person said: in a message, while refusing a call, or in answer to a question that a call asked. `place` is
    its index among all statements, `group` and `id` are the group and the message that hold it."""

    place: int
    group: str
    id: str
    text: str


def person_said(
    groups: Sequence[Group],
    max_tokens: int,
    count: Count,
    memory: Memory | None = None,
    but: Collection[str] = (),
    *,
    recall: bool = True,
) -> str:
    """The person's statements in these groups of the record, oldest first, as a list in at most `max_tokens`: their messages,
    what they said while refusing a call, and their answers to questions.

    Where they do not all fit, the longest are cut, as few as possible and never inside a sentence that states a lasting rule.
    Before a message of `UNCUT_MESSAGE_TOKENS` tokens or fewer is cut, the messages that led to nothing are left out. If that is
    still too much, others except the first are left out: agreement before wishes, and wishes before rules, refusals and
    corrections; of equal ones the oldest first. The list says how many are missing.

    `but` are ids of groups to leave out, `memory` holds the facts found so far, and `recall` says that the reader has the tool
    `recall`, which finds the missing messages.
    """
    memory = memory or Memory()
    heard = memory.gathered(_statements_up_to, groups)
    statements = [each for each in heard.said if each.group not in but] if but else heard.said
    ends, ranked = [*statements[:1], *statements[1:][-1:]], heard.by_worth_now()
    room = max_tokens - count(_HEAD) - count(f"{_LEFT_OUT}{_FINDS}.") - 8

    def weight(statement: _Statement) -> int:
        return memory.once(count, statement.text) + _MARK_TOKENS

    # the length up to which statements stay uncut: so that all fit, else all that led to something
    longest = 0
    if len(statements) * _MARK_TOKENS <= room:
        longest = _fitting(map(weight, statements), room, UNCUT_MESSAGE_TOKENS)
    if not longest and sum(len(same) for worth, same in ranked.items() if worth) * _MARK_TOKENS <= room:
        worthy = {each.place: each for worth, same in ranked.items() if worth for each in same if each.group not in but}
        kept = worthy | {each.place: each for each in ends}
        longest = _fitting(map(weight, kept.values()), room, BRIEF_MESSAGE_TOKENS)
    longest = longest or BRIEF_MESSAGE_TOKENS
    lines: dict[int, str] = {}
    missed = 0
    for statement in _dearest_first(ranked, ends, but):
        cut = weight(statement) > longest + _MARK_TOKENS
        missed += 1
        if missed > MAX_MISSED:
            break
        if (MIN_CUT_TOKENS // 2 if cut else weight(statement) - _MARK_TOKENS) > room:
            continue
        for text in memory.once(_cut_forms, (statement.text, longest, count)) if cut else (statement.text,):
            if memory.once(count, text) > room:
                continue
            line = f"- {statement.id}: {text}"
            if (tokens := count(line) + 1) <= room:
                room -= tokens
                lines[statement.place] = line
                missed = 0
                break
    shown = [lines[place] for place in sorted(lines)]
    if len(shown) < len(statements) and shown:
        shown.insert(1, f"{_LEFT_OUT.format(len(statements) - len(shown))}{_FINDS if recall else ''}.")
    return "\n".join([_HEAD, *shown]) if shown else ""


_Ranked = Mapping[int, Sequence[_Statement]]
"""Statements by rank; those of one rank in the order in which they were said."""


def _dearest_first(ranked: _Ranked, ends: Sequence[_Statement], but: Collection[str]) -> Iterator[_Statement]:
    """The statements in the order in which they get room: rules, then the first and the last statement (`ends`), then the others
    by rank; within a rank the newest first."""
    end_places = {each.place for each in ends}

    def newest_first(worth: int) -> Iterator[_Statement]:
        return (each for each in reversed(ranked[worth]) if each.place not in end_places and each.group not in but)

    yield from newest_first(RULE_WEIGHT) if RULE_WEIGHT in ranked else ()
    yield from ends
    for worth in sorted(ranked, reverse=True):
        yield from newest_first(worth) if worth < RULE_WEIGHT else ()


class _Asked(msgspec.Struct, frozen=True):
    """A message of the person and its rank by what it has led to so far.

    `worth` is that rank, and `alone` the rank it has if it only gets an answer (None once a call followed). `statement` is None
    where the message has no text; `brief` marks a message of at most `EMPTY_MESSAGE_CHARS` characters."""

    statement: _Statement | None
    worth: int
    alone: int | None
    brief: bool

    def worth_now(self, answered: bool) -> int:
        """The rank by what the message led to, which works in any language: 4 for a rule or a refusal, 3 for a choice, 2 where
        something was done, 1 where something was looked up or the message states something exact, 0 where it was only answered,
        as remarks and thanks are. A brief message ranks 0 whatever was done after it, unless it is a choice."""
        worth = self.alone if answered and self.alone is not None else self.worth
        return 0 if self.brief and self.worth != CHOICE_WEIGHT else worth


class _Heard(msgspec.Struct, frozen=True):
    """The person's statements up to a certain group of the record.

    `said` are all of them in order. `by_worth` has them by rank, without the messages `asked` last: their rank still depends on
    what follows. `answered`: something has followed those."""

    said: Sequence[_Statement] = ()
    by_worth: _Ranked = {}
    asked: Sequence[_Asked] = ()
    answered: bool = True

    def by_worth_now(self) -> dict[int, list[_Statement]]:
        """All statements by the rank they have now."""
        ranked = {worth: [*same] for worth, same in self.by_worth.items()}
        _put_among(ranked, self.asked, self.answered)
        return ranked


def _put_among(ranked: dict[int, list[_Statement]], asked: Iterable[_Asked], answered: bool) -> None:
    """Add messages to the ranked statements, by the rank they have now, in the order in which they were said."""
    for message in asked:
        if message.statement:
            insort(ranked.setdefault(message.worth_now(answered), []), message.statement, key=attrgetter("place"))


def _statements_up_to(memory: Memory, before: _Heard | None, groups: Sequence[Group]) -> _Heard:
    """The person's statements up to the end of these groups, continuing from those `before` them."""
    before = before or _Heard()
    said, asked, answered = [*before.said], [*before.asked], before.answered
    by_worth = {worth: [*same] for worth, same in before.by_worth.items()}

    def statement(group: Group, name: str, text: str) -> _Statement:
        said.append(_Statement(len(said), group.id, name, text))
        return said[-1]

    for group in groups:
        if group.kind == "user":
            if answered:
                _put_among(by_worth, asked, answered)
                asked, answered = list[_Asked](), False
            text = _message_line(group.first)
            exact = {fact.kind for fact in memory.find_facts(group).facts}
            holds = "rule" in exact or turns_down(group.first.text)
            worth = RULE_WEIGHT if holds else CHOICE_WEIGHT if "decision" in exact else 1
            alone = RULE_WEIGHT if holds else min(worth, len(exact))
            brief = len(group.first.text) <= EMPTY_MESSAGE_CHARS
            asked.append(_Asked(statement(group, group.first.id, text) if text else None, worth, alone, brief))
            continue
        answered = True
        if group.kind == "round":
            to_calls = [statement(group, *words) for words in _said_to_calls(group)]
            if to_calls:
                by_worth.setdefault(RULE_WEIGHT, []).extend(to_calls)
            led_to = 1 + memory.find_facts(group).done
            asked = [msgspec.structs.replace(each, worth=max(each.worth, led_to), alone=None) for each in asked]
    return _Heard(said, by_worth, asked, answered)


def _said_to_calls(group: Group) -> Iterator[tuple[str, str]]:
    """What the person said while refusing calls of this round and in answer to its questions, each with the id of the result."""
    for call, result in zip(group.first.calls, group.messages[1:], strict=False):
        if words := words_of_answer(call, result):
            asked = first_line(str((fields_of(call.arguments) or {}).get("question", "")), 100)
            yield result.id, f"(asked: {asked}) {words}"
        elif words := words_of_refusal(result):
            about = f"{call.name} {first_line(use_of(call).target, 60)}".rstrip()
            yield result.id, f"(refusing {about}) {words}"


def _lasting_sentences(text: str, count: Count) -> list[str]:
    """The sentences of a message that state a lasting rule."""
    sentences = (plain(found[0]) for found in _SENTENCE.finditer(text))
    return [s for s in sentences if carries(s) and count(s) <= MAX_SENTENCE_TOKENS]


def _cut_forms(asked: tuple[str, int, Count]) -> tuple[str, ...]:
    """The shorter forms of a message that exceeds a limit of tokens, longest first: cut, and its lasting sentences alone. Takes
    one tuple of text, limit and counter, as `Memory.once` needs."""
    text, longest, count = asked
    held = _lasting_sentences(text, count)
    return (_in_brief(text, _cut(longest), longest, count), *([f"[…] {' […] '.join(held)}"] if held else []))


def _in_brief(text: str, max_tokens: int, most: int, count: Count) -> str:
    """A long message in about `max_tokens`: its head and tail, and between them its lasting sentences, uncut, as many as fit into
    `most` tokens."""
    held = _lasting_sentences(text, count)
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
    """The largest of `LENGTHS` up to which messages can stay uncut so that all fit into `room`; 0 where that is below `least`.
    `weights` are the tokens of each message's line."""
    ascending = sorted(weights)
    whole = [0, *accumulate(ascending)]  # whole[n]: the tokens of the n shortest

    def needed(longest: int) -> int:
        uncut = bisect_right(ascending, longest + 6)
        return whole[uncut] + (len(ascending) - uncut) * (_cut(longest) + 6)

    return next((n for n in LENGTHS if n >= least and needed(n) <= room), 0)


def _cut(longest: int) -> int:
    """The tokens of a cut message, where messages stay uncut up to `longest`."""
    return max(MIN_CUT_TOKENS, longest // 2)


def _message_line(message: Message) -> str:
    """What the person said in a message, with the names of its attachments."""
    along = [a.name or a.kind for a in attached(message.content)]
    text = own_words(message).replace("\n", "\n  ")
    return f"{text} [with {', '.join(along)}]".strip() if along else text


def recap(groups: Sequence[Group], max_tokens: int, count: Count) -> str:
    """The last actions in these groups of the record, a line each, in at most `max_tokens`; where room is short the oldest are
    left out."""
    done = [line for g in groups[-MAX_ACTIVITY_LINES:] for line in _activity(g)][-MAX_ACTIVITY_LINES:]
    while done and count("\n".join(["Done last:", *done])) > max_tokens:
        done = done[1:]
    return "\n".join(["Done last:", *done]) if done else ""


def _activity(group: Group) -> list[str]:
    """The lines that tell what happened in a group."""
    match group.kind:
        case "round":
            lines: list[str] = []
            for call, result in zip(group.first.calls, group.messages[1:], strict=False):
                if result.synthetic and lines and lines[-1].endswith(result.text):
                    continue  # one line is enough for a batch of calls that was cut off
                target = first_line(use_of(call).target or call.arguments, 100)
                lines.append(f"- {result.id} {call.name} {target} → {gist(call, result, 120)}")
            return lines
        case "reply":
            return [f"- {group.first.id} answered: {first_line(group.first.text, 200)}"]
        case "note" | "stray":
            return [f"- {group.first.id} noted: {first_line(group.first.text, 120)}"]
        case _:
            return []
