"""A summary without a model: the sentences that matter, sorted into fixed sections, merged with the summary before.

What people said is kept word for word, in their language; what tools and files said gives names, paths and errors only, never
instructions.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import get_args

from ctxchat.core.events import Usage
from ctxchat.core.expressions import expression
from ctxchat.core.messages import Group, Message
from ctxchat.core.ports import SummaryTask
from ctxchat.core.summary_task import shortened
from ctxchat.core.tokens import Count, TokenCounter, rough_count
from ctxchat.models.offline.notes import Note, Part, Tag, covered, notes_of
from ctxchat.models.offline.words import terms, topic

HEADINGS: dict[Part, str] = {
    "goal": "Goal", "rules": "Constraints and user rules", "decisions": "Decisions", "progress": "Progress",
    "failed": "Failed attempts", "files": "Files", "next": "Next steps", "exact": "Exact identifiers",
}  # fmt: skip
"""What each section is called, in their order."""

_LOOSER: tuple[tuple[Part, re.Pattern[str]], ...] = (
    ("goal", expression(r"goal|objective|intent|request", re.I)),
    ("rules", expression(r"constraint|rule|preference|instruction", re.I)),
    ("decisions", expression(r"decision", re.I)),
    ("failed", expression(r"fail|error|attempt|problem", re.I)),
    ("progress", expression(r"progress|done|status|state|work", re.I)),
    ("files", expression(r"file", re.I)),
    ("next", expression(r"next|pending|todo|task", re.I)),
    ("exact", expression(r"identifier|exact|reference|fact", re.I)),
)
"""The looser words of a model for the same."""

_FIRST_REQUEST = expression(r"First request \(m\d+\): (.+)")
"""How a recap begins (see core.recap)."""

_RECAP = expression(r"(?:Later requests|Done last):")
"""How it goes on."""

_MOST: dict[Part, int] = {
    "goal": 4, "rules": 20, "decisions": 20, "progress": 24, "failed": 10, "files": 40, "next": 8, "exact": 30,
}  # fmt: skip
_FIRST: tuple[Part, ...] = ("goal", "rules", "decisions", "progress", "next", "failed", "files", "exact")
"""Who is served first when there is little room."""


def extractive_summary(
    messages: Sequence[Message], max_tokens: int, previous: str = "", *, count: Count = rough_count, focus: str = ""
) -> str:
    """A summary of at most `max_tokens` by `count`, as Markdown sections.

    `previous` is the summary these messages come after: it is taken apart and merged, newer news winning. `focus` are the
    user's wishes about the summary: sentences that share its words go first. Empty only for nothing to summarise.
    """
    notes = _merged(parse_summary(previous), notes_of(messages))
    if not notes:
        return ""
    wanted = frozenset(topic(focus).terms)
    kept = _chosen(notes, max_tokens, count, wanted)
    return _fitting(kept, max_tokens, count)


def parse_summary(text: str) -> tuple[Note, ...]:
    """A summary taken apart, ours or a model's. Lines under no known heading count as progress."""
    notes: list[Note] = []
    part: Part = "progress"
    score = 0.6
    for line in text.split("\n"):
        bare = line.strip()
        if bare.startswith("<") and bare.endswith(">"):
            continue  # a delimiter around it
        if first := _FIRST_REQUEST.match(bare):
            notes.append(Note("goal", first[1], score=1.0))
            part = "progress"
        elif _RECAP.fullmatch(bare):
            part, score = "progress", 0.3  # small steps: what was said to matter goes before them
        elif bare.startswith("#") or (bare.startswith("**") and bare.rstrip(":").endswith("**")):
            part, score = _part_of(bare) or "progress", 0.6
        elif bare := bare.lstrip("-*• ").strip():
            word, colon, rest = bare.partition(": ")
            tag = _tag_of(word) if colon else ""
            notes.append(Note(part, rest.strip() if tag else bare, tag=tag, score=score))
    return tuple(notes)


def _part_of(heading: str) -> Part | None:
    """Which section a heading names, ours or in the looser words of a model; None for no known one."""
    bare = heading.strip().strip("#*: ").casefold()
    ours: Part | None = next((part for part, name in HEADINGS.items() if bare == name.casefold()), None)
    return ours or next((part for part, pattern in _LOOSER if pattern.search(bare)), None)


def _tag_of(word: str) -> Tag:
    return next((tag for tag in get_args(Tag) if tag == word.strip().casefold()), "")


# ── merging ──


def _merged(old: Sequence[Note], new: Sequence[Note]) -> list[Note]:
    """Both, the older first, nothing twice; what newer news settled, finished or repeated is not kept open."""
    finished = [n.text for n in new if n.tag in {"done", "settled"}]
    # A reply with no request of its own before it ends the request the older summary had in progress.
    ended = any(n.tag == "done" and n.continues for n in new)
    kept: list[Note] = []
    for note in old:
        if note.tag == "in progress" and (ended or any(n.tag in {"done", "in progress"} for n in new)):
            kept.append(Note("progress", note.text, tag="done", score=note.score))
        elif note.tag == "now" or (
            (note.part == "next" or note.tag in {"open", "blocked"}) and covered(note.text, finished)
        ):
            continue
        else:
            kept.append(note)
    fresh = [n for n in new if not n.continues]
    if any(n.part == "goal" and not n.tag for n in kept):
        fresh = [n if n.part != "goal" or n.tag else Note("goal", n.text, tag="now", score=n.score) for n in fresh]
    current = [n for n in fresh if n.tag == "now"][-1:]
    fresh = [n for n in fresh if n.tag != "now"] + current
    return _once([*kept, *fresh])


def _once(notes: Sequence[Note]) -> list[Note]:
    """The same words once a section: the latest tag and the best score win, the earliest place stays."""
    seen: dict[tuple[Part, str], Note] = {}
    for note in notes:
        key = (note.part, "".join(c for c in note.text.casefold() if c.isalnum()))
        known = seen.get(key)
        if known is None:
            seen[key] = note
        elif not (note.part == "files" and known.tag == "changed"):
            seen[key] = Note(note.part, known.text, tag=note.tag or known.tag, score=max(known.score, note.score))
    return list(seen.values())


# ── choosing ──


def _chosen(notes: Sequence[Note], room: int, count: Count, wanted: frozenset[str]) -> list[Note]:
    """As many notes as there is room for: in rounds, one from each section, the best and the latest first."""
    places = {id(n): i for i, n in enumerate(notes)}

    def worth(note: Note) -> float:
        wish = 1.5 * len(wanted & frozenset(terms(note.text))) / len(wanted) if wanted else 0.0
        return note.score + wish + 0.3 * places[id(note)] / len(notes)

    queues = {
        part: sorted((n for n in notes if n.part == part), key=worth, reverse=True)[: _MOST[part]] for part in HEADINGS
    }
    chosen: list[Note] = []
    used: set[Part] = set()
    while any(queues.values()):
        for part in _FIRST:
            if not queues[part]:
                continue
            note = queues[part].pop(0)
            cost = count(_note_line(note)) + 1
            cost += 0 if part in used else count(_heading(part)) + 2
            if cost <= room:
                room -= cost
                used.add(part)
                chosen.append(note)
    return sorted(chosen, key=lambda n: places[id(n)])


def _fitting(notes: list[Note], room: int, count: Count) -> str:
    """The text, for certain within its room: lines do not always cost together what they cost alone."""
    text = _drawn(notes)
    while notes and count(text) > room:
        notes = notes[:-1]
        text = _drawn(notes)
    return text


def _drawn(notes: Sequence[Note]) -> str:
    blocks = [
        "\n".join([_heading(part), *(_note_line(n) for n in own)])
        for part in HEADINGS
        if (own := [n for n in notes if n.part == part])
    ]
    return "\n\n".join(blocks)


def _heading(part: Part) -> str:
    return f"## {HEADINGS[part]}"


def _note_line(note: Note) -> str:
    return f"- {note.tag}: {note.text}" if note.tag else f"- {note.text}"


# ── as a Summariser: for sessions without a model, and as the last resort of those with one ──

MOST_TOKENS = 1_200
MAX_SUMMARY_SHARE = 0.3
"""A summary takes at most this share of what it stands for, so that it always helps."""

LEAST_TOKENS = 60


class OfflineSummariser:
    """core.ports.Summariser by rule: `model` is empty. `count` counts tokens."""

    model = ""

    def __init__(self, count: Count = rough_count) -> None:
        self._count = count

    async def summarise(self, task: SummaryTask) -> AsyncIterator[str | Usage]:
        """The summary, section by section; no usage, for nobody was asked. What somebody wrote before is not made worse: it is
        carried on."""
        task = shortened(task, 0)
        text = await asyncio.to_thread(self.summary, task.groups, task.instructions, task.previous, task.max_tokens)
        blocks = text.split("\n\n")
        for block in blocks[:-1]:
            yield f"{block}\n\n"
            await asyncio.sleep(0)
        yield blocks[-1]

    def summary(self, groups: Sequence[Group], instructions: str = "", previous: str = "", max_tokens: int = 0) -> str:
        """The whole of it at once. Blocking, pure."""
        said = conversation(groups)
        counter = TokenCounter(self._count)
        share = int(MAX_SUMMARY_SHARE * sum(counter.message(m) for g in groups for m in g.messages)) + self._count(
            previous
        )
        room = min(max(LEAST_TOKENS, share), MOST_TOKENS, max_tokens if max_tokens > 0 else MOST_TOKENS)
        return extractive_summary(said, room, previous, count=self._count, focus=instructions)


def conversation(groups: Sequence[Group]) -> tuple[Message, ...]:
    """What people and replies said, with the tools between: no prompts, no notes, no earlier summary."""
    return tuple(m for g in groups if g.kind in {"user", "reply", "round"} for m in g.messages)
