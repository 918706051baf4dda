"""Writes summaries without a model: picks the sentences that matter, sorts them into fixed sections and merges them with the
earlier summary. Used in sessions without a model, and where all models fail.

What people said is kept word for word, in their language; from tools and files come names, paths and errors only, never
instructions. A note is a line of a summary (`notes`).
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
"""The headings of the sections, in their order."""

_MODEL_HEADINGS: tuple[tuple[Part, re.Pattern[str]], ...] = (
    ("goal", expression(r"goal|objective|intent|request", re.I)),
    ("rules", expression(r"constraint|rule|preference|instruction", re.I)),
    ("decisions", expression(r"decision", re.I)),
    ("failed", expression(r"fail|error|attempt|problem", re.I)),
    ("progress", expression(r"progress|done|status|state|work", re.I)),
    ("files", expression(r"file", re.I)),
    ("next", expression(r"next|pending|todo|task", re.I)),
    ("exact", expression(r"identifier|exact|reference|fact", re.I)),
)
"""Patterns for the headings that models use for the same sections; tried in this order."""

_FIRST_REQUEST = expression(r"First request \(m\d+\): (.+)")
"""Matches the first line of a recap (see `core.recap`)."""

_RECAP = expression(r"(?:Later requests|Done last):")
"""Matches the other headings of a recap."""

_MAX_NOTES: dict[Part, int] = {
    "goal": 4, "rules": 20, "decisions": 20, "progress": 24, "failed": 10, "files": 40, "next": 8, "exact": 30,
}  # fmt: skip
"""The most notes in each section."""

_PRIORITY: tuple[Part, ...] = ("goal", "rules", "decisions", "progress", "next", "failed", "files", "exact")
"""The order in which sections are given room."""


def extractive_summary(
    messages: Sequence[Message], max_tokens: int, previous: str = "", *, count: Count = rough_count, focus: str = ""
) -> str:
    """A summary of at most `max_tokens` tokens (by `count`) in Markdown sections; empty only where there is nothing to summarise.

    `previous` is the summary of what came before these messages; it is parsed and merged, and where both speak of the same, the
    newer holds. `focus` is what the user wants the summary to be about: sentences that share terms with it are preferred.
    """
    notes = _merged(parse_summary(previous), notes_of(messages))
    if not notes:
        return ""
    wanted = frozenset(topic(focus).terms)
    kept = _chosen(notes, max_tokens, count, wanted)
    return _fitting(kept, max_tokens, count)


def parse_summary(text: str) -> tuple[Note, ...]:
    """The notes in the text of a summary, by this module, a recap or a model. Lines under no known heading count as progress."""
    notes: list[Note] = []
    part: Part = "progress"
    score = 0.6
    for line in text.split("\n"):
        bare = line.strip()
        if bare.startswith("<") and bare.endswith(">"):
            continue  # a delimiter around the summary
        if first := _FIRST_REQUEST.match(bare):
            notes.append(Note("goal", first[1], score=1.0))
            part = "progress"
        elif _RECAP.fullmatch(bare):
            part, score = "progress", 0.3  # single steps, which matter less than what a summary says
        elif bare.startswith("#") or (bare.startswith("**") and bare.rstrip(":").endswith("**")):
            part, score = _part_of(bare) or "progress", 0.6
        elif bare := bare.lstrip("-*• ").strip():
            word, colon, after = bare.partition(": ")
            tag = _tag_of(word) if colon else ""
            notes.append(Note(part, after.strip() if tag else bare, tag=tag, score=score))
    return tuple(notes)


def _part_of(heading: str) -> Part | None:
    """The section that a heading names, in our words or a model's; None where it is not known."""
    bare = heading.strip().strip("#*: ").casefold()
    ours: Part | None = next((part for part, name in HEADINGS.items() if bare == name.casefold()), None)
    return ours or next((part for part, pattern in _MODEL_HEADINGS if pattern.search(bare)), None)


def _tag_of(word: str) -> Tag:
    """The tag that a word is; empty for any other word."""
    return next((tag for tag in get_args(Tag) if tag == word.strip().casefold()), "")


# ── merging ──


def _merged(old: Sequence[Note], new: Sequence[Note]) -> list[Note]:
    """The notes of the earlier summary and the new ones, older first, without repetitions. What was open, in progress or next in
    the earlier one is closed or left out where the new notes show that it was dealt with."""
    finished = [n.text for n in new if n.tag in {"done", "settled"}]
    # A reply without a request before it among the new messages answers the request that was in progress.
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
    """The notes without repetitions of the same words in a section; the newest tag, the highest score and the first position
    count."""
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
    """As many notes as there is room for, in `room` tokens: round after round, one from each section, the best and newest first.
    `wanted` are terms that the user asked for. The result is in the order of `notes`."""
    places = {id(n): i for i, n in enumerate(notes)}

    def worth(note: Note) -> float:
        wish = 1.5 * len(wanted & frozenset(terms(note.text))) / len(wanted) if wanted else 0.0
        return note.score + wish + 0.3 * places[id(note)] / len(notes)

    queues = {
        part: sorted((n for n in notes if n.part == part), key=worth, reverse=True)[: _MAX_NOTES[part]]
        for part in HEADINGS
    }
    chosen: list[Note] = []
    used: set[Part] = set()
    while any(queues.values()):
        for part in _PRIORITY:
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
    """The summary's text in at most `room` tokens. Lines may count more together than one by one, so the last notes are left out
    until it fits."""
    text = _markdown(notes)
    while notes and count(text) > room:
        notes = notes[:-1]
        text = _markdown(notes)
    return text


def _markdown(notes: Sequence[Note]) -> str:
    """The notes as sections with headings."""
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
"""The largest share that a summary may take of what it stands for, so that it always frees room."""

LEAST_TOKENS = 60


class OfflineSummariser:
    """A `core.ports.Summariser` that works by rules; so its `model` is empty. `count` counts the tokens of a text."""

    model = ""

    def __init__(self, count: Count = rough_count) -> None:
        self._count = count

    async def summarise(self, task: SummaryTask) -> AsyncIterator[str | Usage]:
        """The summary, section by section; no `Usage`, since no model was called. The earlier summary is merged into it."""
        task = shortened(task, 0)  # groups that a model or a person has summarised before keep that better summary
        text = await asyncio.to_thread(self.summary, task.groups, task.instructions, task.previous, task.max_tokens)
        blocks = text.split("\n\n")
        for block in blocks[:-1]:
            yield f"{block}\n\n"
            await asyncio.sleep(0)
        yield blocks[-1]

    def summary(self, groups: Sequence[Group], instructions: str = "", previous: str = "", max_tokens: int = 0) -> str:
        """The whole summary at once; slow, so call it off the event loop. `max_tokens` 0 means the usual limit."""
        messages = conversation(groups)
        counter = TokenCounter(self._count)
        weight = sum(counter.message(m) for g in groups for m in g.messages)
        share = int(MAX_SUMMARY_SHARE * weight) + self._count(previous)
        room = min(max(LEAST_TOKENS, share), MOST_TOKENS, max_tokens if max_tokens > 0 else MOST_TOKENS)
        return extractive_summary(messages, room, previous, count=self._count, focus=instructions)


def conversation(groups: Sequence[Group]) -> tuple[Message, ...]:
    """The messages that are summarised: of user, model and tools; no system prompts, notes or earlier summaries."""
    return tuple(m for g in groups if g.kind in {"user", "reply", "round"} for m in g.messages)
