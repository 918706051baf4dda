"""Builds the group that a summary is shown as, finds and merges those in force, and judges whether a summary is too long.

A summary is recognised by its metadata (group kind, digest), never by its text: a user may type the same delimiter. Makes no
model call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import ceil

import msgspec

from ctxchat.core.carried import carried_text
from ctxchat.core.facts import Memory, collect, merged, render
from ctxchat.core.group_ids import Runs, pairs, runs, union
from ctxchat.core.ledger import Change, Edit, Entry, Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.overtaken import with_what_came_since
from ctxchat.core.pending import NOTHING_PENDING, Pending, pending
from ctxchat.core.ports import Written
from ctxchat.core.quantities import percent, short
from ctxchat.core.recap import MAX_ACTIVITY_LINES, person_said, recap
from ctxchat.core.record import Digest, Evidence
from ctxchat.core.tokens import Count

OPENING = "<conversation_summary>"
CLOSING = "</conversation_summary>"
PREFACE = (
    "The earlier part of this conversation was folded to make room; this stands for it. It is a record of what happened, not a "
    "request: nothing in it is to be done again unless the conversation below asks for it."
)
RECALL = " Their full text can be recalled by id."
"""Added where the agent has the recall tool."""

BACK = " What is written of messages {} stands in the conversation itself again, whole: that holds."
"""Added for messages that were put back after the summary was written, since code cannot take them out of its text."""

OLDER = "Written before what «Done last» tells; where they differ, the later holds:"
"""Put above an earlier summary that is followed by a recap made by code: the next steps it names may be done by now."""

AS_OF = "Written as of m{}; where what stands below differs, that holds."
"""Put above what a model wrote, since it did not read the messages that stay."""

MAX_ID_RANGES = 12
"""The largest number of ranges of message ids that a summary lists; of the rest it gives the number of messages."""

FACTS_HEADING = "Facts kept exactly:"

MAX_SAID_SHARE = 0.7
"""The largest share that the person's own messages may take of the tokens for what code keeps; the facts get the rest."""

MIN_GAIN_SHARE = 0.05
"""A compaction must free at least this share of the view, or it is refused."""

TOKENS_PER_WORD, MOST_PER_WORD = 2.1, 6.0
"""Tokens per word of a usual record, full of names, paths and values; and the number above which a text must be in a language
without spaces."""

SAMPLED_WORDS = 80
"""The least number of words in a text from which its own tokens per word are computed."""

TOLD_ROOM_SHARE = 0.92
"""The share of the room that a model is told it has, since it does not count its words exactly."""


def earlier(ledger: Ledger) -> tuple[Entry, ...]:
    """The summaries in force, as live entries: none or one, unless a compaction was undone in part."""
    return tuple(e for e in ledger.live() if e.group is not None and e.group.kind == "summary")


def merged_digest(entries: Sequence[Entry]) -> Digest:
    """The digests of several summaries as one, from which a new compaction starts."""
    digests = [e.digest or Digest(recap=e.group.first.text if e.group else "") for e in entries]
    if len(digests) == 1:
        return digests[0]
    return Digest(
        summary="\n\n".join(d.summary for d in digests if d.summary),
        recap="\n\n".join(d.recap for d in digests if d.recap),
        evidence=merged(d.evidence for d in digests),
    )


def written(ledger: Ledger) -> tuple[Written, ...]:
    """The texts written about the groups that the summaries in force cover. The first was written by a model that had read the
    originals, or by a person, and may be empty; those after it, by code or another agent, each cover more than the one before."""
    texts = [_written_of(ledger, entry) for entry in earlier(ledger)]
    return tuple(
        _as_one(ledger, [some[min(n, len(some) - 1)] for some in texts]) for n in range(max(map(len, texts), default=1))
    )


def _written_of(ledger: Ledger, entry: Entry) -> list[Written]:
    """The texts of one summary and of those it replaced, back to the newest that was written from the originals, which is
    first."""
    others: list[Written] = []
    for text, (change, edit) in reversed(written_by(ledger).items()):
        if len(ledger.without(edit.covers, entry.covers)) == len(edit.covers):
            continue
        candidate = Written(text, edit.covers)
        if change.record is None or change.record.from_originals:
            return [candidate, *reversed(others)]
        others.append(candidate)
    return [Written(), *reversed(others)]


def written_by(ledger: Ledger) -> dict[str, tuple[Change, Edit]]:
    """The text of each summary that a model, another agent or a person wrote, with the change and the edit it came with, the
    newest last. A recap made by code repeats an earlier text and covers more than that one did; its edit is given only where no
    other has the text."""
    by_text: dict[str, tuple[Change, Edit]] = {}
    for change in ledger.in_force:
        for edit in change.edits:
            if edit.digest is None or not (text := edit.digest.summary):
                continue
            anew = change.record.from_originals if change.record else not edit.digest.recap
            if anew:
                by_text.pop(text, None)
            by_text.setdefault(text, (change, edit))
    return by_text


def _as_one(ledger: Ledger, several: Sequence[Written]) -> Written:
    text = "\n\n".join(one.text for one in several if one.text)
    return Written(text, ledger.together(one.covers for one in several))


def evidence_after(ledger: Ledger, fold: Sequence[str], memory: Memory | None = None) -> Evidence:
    """The facts to keep once the groups `fold` are folded: those of the summaries in force, and those found in the groups that
    no summary covers. A summary by another agent has no facts, so the groups it covers are searched like the others."""
    known = [e for e in earlier(ledger) if e.digest and e.digest.evidence != Evidence()]
    fresh = ledger.groups_of(ledger.without(fold, ledger.together(e.covers for e in known)))
    return collect(fresh, merged_digest(known).evidence, memory, staying=ledger.staying(fold))


def summary_group(
    digest: Digest,
    covered: Sequence[Group],
    evidence_tokens: int,
    count: Count,
    source: str = "",
    shown: str = "",
    seqs: Iterable[int] | None = None,
    memory: Memory | None = None,
    open_now: Pending = NOTHING_PENDING,
    kept: Iterable[Group] = (),
    *,
    recall: bool = True,
) -> Group:
    """The group that shows a summary: one delimited user message with the preface, what is open (`open_now`), the written
    summary, the person's messages, the facts, and the ids by which the rest can be recalled.

    What is open, the person's messages and the facts together take at most `evidence_tokens`. Facts that stand in `shown`, the
    text of files sent along, are not repeated. `seqs` are the numbers of the messages it covers, where `covered` lacks some;
    `recall`: the reader has the recall tool. Where the `kept` groups after it make something of the written summary out of date,
    it says so."""
    left = max(0, evidence_tokens - count(open_now.text))
    said = person_said(covered, int(left * MAX_SAID_SHARE), count, memory, open_now.told, recall=recall)
    beside = "\n".join((digest.summary, said, digest.recap, shown))
    facts = render(digest.evidence, left - count(said), count, beside, recall=recall)
    memory = memory or Memory()
    numbers = message_numbers(covered, memory)
    places = told_runs(numbers) if seqs is None else id_ranges(seqs)
    first, newest = covered[0].turn, covered[-1].turn
    where = f"Covers messages {places} ({f'turns {first}–{newest}' if first < newest else f'turn {first}'})."
    last = max(0, sum(numbers[-2:]) - 1)
    after = (group for group in kept if group.first.seq > last)
    written = with_what_came_since(digest.summary.strip(), after, memory)
    both = BACK.format(id_ranges(digest.back)) if digest.summary and digest.back else ""
    parts = [
        OPENING,
        f"{PREFACE} {where}{both}{RECALL if recall else ''}",
        open_now.text,
        OLDER if digest.summary and digest.recap else "",
        f"{AS_OF.format(last)}\n\n{written}" if written else "",
        said,
        digest.recap.strip(),
        f"{FACTS_HEADING}\n{facts}" if facts else "",
        CLOSING,
    ]
    message = Message(seq=0, role="user", content="\n\n".join(part for part in parts if part))
    return Group(
        id=f"s{source or covered[0].id}", kind="summary", messages=(message,), turn=covered[-1].turn, source=source
    )


def of_less(edit: Edit, ledger: Ledger, back: Collection[str], count: Count, memory: Memory) -> Edit:
    """An edit without the groups `back`, which are shown again; `ledger` is the one without the edit's change. The parts of a
    summary that code makes are made anew for the remaining groups, in as much room as before. The part that a model wrote stays,
    with a remark that the messages that are back are valid as they stand."""
    covers = tuple(g for g in edit.covers if g not in back)
    less, old, digest = msgspec.structs.replace(edit, covers=covers), edit.replacement, edit.digest
    if len(covers) in {0, len(edit.covers)} or old is None or digest is None:
        return less
    before, groups = [ledger.group(g) for g in edit.covers], [ledger.group(g) for g in covers]
    bare = summary_group(msgspec.structs.replace(digest, evidence=Evidence()), before, 0, count)
    seqs_back = (m.seq for g in before if g.id in back for m in g.messages if not m.synthetic)
    new_recap = (
        recap([memory.shown(g) for g in groups[-MAX_ACTIVITY_LINES:]], count(digest.recap), count)
        if digest.recap
        else ""
    )
    has_facts = digest.evidence != Evidence()  # a summary by another agent has none
    digest = msgspec.structs.replace(
        digest,
        recap=new_recap,
        evidence=evidence_after(ledger, covers, memory) if has_facts else digest.evidence,
        back=tuple(sorted({*digest.back, *seqs_back})),
    )
    room = max(0, count(old.first.text) - count(bare.first.text))
    if (
        FACTS_HEADING not in old.first.text
    ):  # the person's words took all that was used, of which they may have this share
        room = ceil(room / MAX_SAID_SHARE)
    memos = carried_text(ledger, covers, count, sum(count(m.text) for m in old.messages[1:]))
    files = old.messages[-1:] if digest.files else ()
    more = (Message(seq=0, role="user", content=memos), *files) if memos else files
    beside = "".join(m.text for m in more)
    asked = pending(ledger, covers, room // 2, count)
    kept = ledger.staying(covers)
    new = summary_group(digest, groups, room, count, old.source, beside, memory=memory, open_now=asked, kept=kept)
    new = msgspec.structs.replace(new, id=old.id, messages=(new.first, *more))
    return msgspec.structs.replace(less, replacement=new, digest=digest)


def overhead_tokens(count: Count) -> int:
    """The most tokens that the delimiters and the preface of a summary take."""
    return count(f"{OPENING}{PREFACE}{CLOSING}") + 160


MAX_OVERRUN_RATIO = 1.15
"""A record that is longer than its room by at most this factor is accepted as it is, uncut."""


def too_long(summary: str, max_tokens: int, count: Count) -> bool:
    """True for a record that exceeds its room by more than an error in counting."""
    return bool(max_tokens) and count(summary) > max_tokens * MAX_OVERRUN_RATIO


def room_in_words(max_tokens: int, sample: str, count: Count) -> str:
    """The room for a record of at most `max_tokens`, as a model is told of it: in words, by the tokens that a word of `sample`
    takes; in characters, where the language of `sample` has no spaces between words."""
    words = len(sample.split())
    tokens = count(sample) / words if words >= SAMPLED_WORDS else TOKENS_PER_WORD
    if tokens > MOST_PER_WORD:
        return f"{max(120, int(max_tokens * TOLD_ROOM_SHARE * len(sample) / count(sample)))} characters"
    return f"{max(60, int(max_tokens * TOLD_ROOM_SHARE / max(TOKENS_PER_WORD, tokens)))} words"


def too_little(before: int, after: int) -> str:
    """Why a compaction frees too little, in one sentence; empty where it frees at least 5 % of the view."""
    if before - after >= before * MIN_GAIN_SHARE and after < before:
        return ""
    freed = short(max(0, before - after))
    return f"The compaction would have freed {freed} of {short(before)} tokens, less than {percent(MIN_GAIN_SHARE)}."


def message_numbers(groups: Sequence[Group], memory: Memory) -> Runs:
    """The numbers of the messages in these groups, without results that this program made up."""
    return memory.gathered(_numbers, groups)


def _numbers(memory: Memory, before: Runs | None, groups: Sequence[Group]) -> Runs:
    return union((before or (), runs(sorted(m.seq for g in groups for m in g.messages if not m.synthetic))))


def id_ranges(places: Iterable[int]) -> str:
    """Message ids as ranges, `m3–m7, m9`; after the first ranges only how many more there are."""
    return told_runs(runs(sorted(set(places))))


def told_runs(numbers: Runs) -> str:
    """The text of `id_ranges`, for numbers that are ranges already."""
    ranges = [*pairs(numbers)]
    words = [f"m{a}" if many == 1 else f"m{a}–m{a + many - 1}" for a, many in ranges[:MAX_ID_RANGES]]
    more = sum(many for _, many in ranges[MAX_ID_RANGES:])
    return ", ".join(words) + (f" and {more} more" if more else "")
