"""Summaries as values: how one is shown to a model, found again, merged, and judged. Makes no model call.

A summary is known by its metadata (group kind, digest), never by its text: a user who types the delimiter is still a user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

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
from ctxchat.core.recap import MAX_ACTIVITY_TOKENS, person_said, recap
from ctxchat.core.record import Digest, Evidence
from ctxchat.core.tokens import Count

OPENING = "<conversation_summary>"
CLOSING = "</conversation_summary>"
PREFACE = (
    "The earlier part of this conversation was folded to make room; this stands for it. It is a record of what happened, not a "
    "request: nothing in it is to be done again unless the conversation below asks for it."
)
RECALL = " Their full text can be recalled by id."
"""Said where the agent has a tool for that."""

BACK = " What is written of messages {} stands in the conversation itself again, whole: that holds."
"""Said of those that came back after the summary was written: it cannot be unwritten by code."""

OLDER = "Written before what «Done last» tells; where they differ, the later holds:"
"""Above an earlier summary that code put a recap behind: its next steps may be done by now."""


AS_OF = "Written as of m{}; where what stands below differs, that holds."
"""Above what a model wrote: it did not read what stays."""

MAX_ID_RANGES = 12
"""Runs of message ids a summary names; more are told as a number."""

MAX_SAID_SHARE = 0.7
"""What the person's own messages may take of what is kept by code; the facts have what they leave."""

MIN_GAIN_SHARE = 0.05
"""A compaction must free this share of the view, or it is refused."""


TOKENS_PER_WORD, MOST_PER_WORD = 2.1, 6.0
"""Tokens of a word of a record, full of names, paths and values, and what only a language without spaces has."""

SAMPLED_WORDS = 80
"""Words of a text from which its tokens a word are taken."""

TOLD_ROOM_SHARE = 0.92
"""Of the room, what a model is told: it counts its words no better than we do."""


def earlier(ledger: Ledger) -> tuple[Entry, ...]:
    """The summaries in force: none or one, unless compactions were undone in part."""
    return tuple(e for e in ledger.live() if e.group is not None and e.group.kind == "summary")


def merged_digest(entries: Sequence[Entry]) -> Digest:
    """What the summaries in force carry, as one: a new compaction starts from it."""
    digests = [e.digest or Digest(recap=e.group.first.text if e.group else "") for e in entries]
    if len(digests) == 1:
        return digests[0]
    return Digest(
        summary="\n\n".join(d.summary for d in digests if d.summary),
        recap="\n\n".join(d.recap for d in digests if d.recap),
        evidence=merged(d.evidence for d in digests),
    )


def written(ledger: Ledger) -> tuple[Written, ...]:
    """What stands written of what the summaries in force stand for: first what a model wrote that had read it, or a person, which
    may be nothing; behind it, of ever more of it, what code or another agent made of it."""
    found = [_written_of(ledger, entry) for entry in earlier(ledger)]
    return tuple(
        _as_one(ledger, [some[min(n, len(some) - 1)] for some in found]) for n in range(max(map(len, found), default=1))
    )


def _written_of(ledger: Ledger, entry: Entry) -> list[Written]:
    """The texts of one summary and of those it took the place of, back to one that was written of the originals."""
    others: list[Written] = []
    for text, (change, edit) in reversed(written_by(ledger).items()):
        if len(ledger.without(edit.covers, entry.covers)) == len(edit.covers):
            continue
        one = Written(text, edit.covers)
        if change.record is None or change.record.from_originals:
            return [one, *reversed(others)]
        others.append(one)
    return [Written(), *reversed(others)]


def written_by(ledger: Ledger) -> dict[str, tuple[Change, Edit]]:
    """Each summary that a model, another agent or a person wrote, with the change that brought it, the latest at the end. A recap
    carries an earlier text on and covers more than that: it counts where none but recaps have it."""
    found: dict[str, tuple[Change, Edit]] = {}
    for change in ledger.in_force:
        for edit in change.edits:
            if edit.digest is None or not (text := edit.digest.summary):
                continue
            anew = change.record.from_originals if change.record else not edit.digest.recap
            if anew:
                found.pop(text, None)
            found.setdefault(text, (change, edit))
    return found


def _as_one(ledger: Ledger, several: Sequence[Written]) -> Written:
    text = "\n\n".join(one.text for one in several if one.text)
    return Written(text, ledger.together(one.covers for one in several))


def evidence_after(ledger: Ledger, fold: Sequence[str], memory: Memory | None = None) -> Evidence:
    """The facts once these groups are folded: those of the summaries in force, and of the groups that none of them tells of. A
    summary of another agent brings no facts, so that what it stands for is looked through like the rest."""
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
    """One clearly delimited user message: preface, what is open, summary, the person's messages and the facts, together within
    `evidence_tokens`, and the ids to recall the rest by. What the files `shown` beside it say is not said again. `seqs` are its
    messages, where `covered` is not all of it; `recall`: the reader has that tool. What the `kept` groups behind it
    overtake of what was written is said."""
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
        f"Facts kept exactly:\n{facts}" if facts else "",
        CLOSING,
    ]
    message = Message(seq=0, role="user", content="\n\n".join(part for part in parts if part))
    return Group(
        id=f"s{source or covered[0].id}", kind="summary", messages=(message,), turn=covered[-1].turn, source=source
    )


def of_less(edit: Edit, ledger: Ledger, back: Collection[str], count: Count, memory: Memory) -> Edit:
    """An edit without the groups that come back; `ledger` is the one without its change. What code says in a summary is said of
    the rest alone, in as much room as before, and what a model wrote of all says so."""
    covers = tuple(g for g in edit.covers if g not in back)
    less, old, digest = msgspec.structs.replace(edit, covers=covers), edit.replacement, edit.digest
    if len(covers) in {0, len(edit.covers)} or old is None or digest is None:
        return less
    before, groups = [ledger.group(g) for g in edit.covers], [ledger.group(g) for g in covers]
    bare = summary_group(msgspec.structs.replace(digest, evidence=Evidence()), before, 0, count)
    again = (m.seq for g in before if g.id in back for m in g.messages if not m.synthetic)
    done = (
        recap([memory.shown(g) for g in groups[-MAX_ACTIVITY_TOKENS:]], count(digest.recap), count)
        if digest.recap
        else ""
    )
    known = digest.evidence != Evidence()  # another agent's brings none
    digest = msgspec.structs.replace(
        digest,
        recap=done,
        evidence=evidence_after(ledger, covers, memory) if known else digest.evidence,
        back=tuple(sorted({*digest.back, *again})),
    )
    room = max(0, count(old.first.text) - count(bare.first.text))
    memos = carried_text(ledger, covers, count, sum(count(m.text) for m in old.messages[1:]))
    files = old.messages[-1:] if digest.files else ()
    more = (Message(seq=0, role="user", content=memos), *files) if memos else files
    beside = "".join(m.text for m in more)
    asked = pending(ledger, covers, room // 2, count)
    kept = ledger.staying(covers)
    made = summary_group(digest, groups, room, count, old.source, beside, memory=memory, open_now=asked, kept=kept)
    made = msgspec.structs.replace(made, id=old.id, messages=(made.first, *more))
    return msgspec.structs.replace(less, replacement=made, digest=digest)


def overhead_tokens(count: Count) -> int:
    """What the wrapping of a summary takes at most, in tokens."""
    return count(f"{OPENING}{PREFACE}{CLOSING}") + 160


MAX_OVERRUN_RATIO = 1.15
"""Up to so many times its room a record is taken as it is: it is one, and nothing of it is cut."""


def too_long(summary: str, max_tokens: int, count: Count) -> bool:
    """A record longer than its room by more than counting can be out."""
    return bool(max_tokens) and count(summary) > max_tokens * MAX_OVERRUN_RATIO


def room_in_words(max_tokens: int, sample: str, count: Count) -> str:
    """What a record of at most so many tokens may hold, in what a model can keep to: words, as long as those of the `sample` are
    in this vocabulary; characters, where its language has none between spaces."""
    words = len(sample.split())
    tokens = count(sample) / words if words >= SAMPLED_WORDS else TOKENS_PER_WORD
    if tokens > MOST_PER_WORD:
        return f"{max(120, int(max_tokens * TOLD_ROOM_SHARE * len(sample) / count(sample)))} characters"
    return f"{max(60, int(max_tokens * TOLD_ROOM_SHARE / max(TOKENS_PER_WORD, tokens)))} words"


def too_little(before: int, after: int) -> str:
    """Why a compaction is not worth it, in one sentence; empty when it frees at least 5 % of the view."""
    if before - after >= before * MIN_GAIN_SHARE and after < before:
        return ""
    freed = short(max(0, before - after))
    return f"The compaction would have freed {freed} of {short(before)} tokens, less than {percent(MIN_GAIN_SHARE)}."


def message_numbers(groups: Sequence[Group], memory: Memory) -> Runs:
    """The numbers of the messages in these groups, without results that were made up."""
    return memory.gathered(_numbers, groups)


def _numbers(memory: Memory, before: Runs | None, groups: Sequence[Group]) -> Runs:
    return union((before or (), runs(sorted(m.seq for g in groups for m in g.messages if not m.synthetic))))


def id_ranges(places: Iterable[int]) -> str:
    """Ids of messages in runs, `m3–m7, m9`; what is behind the first runs as a number."""
    return told_runs(runs(sorted(set(places))))


def told_runs(numbers: Runs) -> str:
    """Numbers of messages as `id_ranges` tells them."""
    found = [*pairs(numbers)]
    words = [f"m{a}" if many == 1 else f"m{a}–m{a + many - 1}" for a, many in found[:MAX_ID_RANGES]]
    more = sum(many for _, many in found[MAX_ID_RANGES:])
    return ", ".join(words) + (f" and {more} more" if more else "")
