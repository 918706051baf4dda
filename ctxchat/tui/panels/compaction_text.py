"""Writes one compaction as text: its three lines in the list, its facts, its summary compared with the one before, its record.
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.content import Content

from ctxchat.core.facts import KINDS, TITLES, Memory, facts_of_change, kept_facts, line_of
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.record import CompactionRecord, Fact
from ctxchat.core.strategies.builtin import LABELS
from ctxchat.core.view import View
from ctxchat.presentation.compactions import REASONS, CompactionEntry, Kept, compared, previous, put_away
from ctxchat.presentation.text import NOTE, WHO, clean, clock, elapsed, one_line, prose_line, short
from ctxchat.presentation.tool_words import decoded, key_argument
from ctxchat.presentation.usage_text import count, day_and_clock, gain, money
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.rows import Cell, Column, fit_columns

MIN_SHOWN_S = 0.05
"""Durations in seconds below this are not shown."""

STORY = (
    Column("when", 6),
    Column("before → after", 14, rank=1),
    Column("freed", 7, right=True, rank=3),
    Column("why", 14, rank=2),
    Column("state", least=8, right=True),
)
"""The first line of a compaction in a list; two lines of words stand below it (`STORY_BELOW`)."""
MESSAGES = (
    Column("", 6),
    Column("turn", 4, right=True, rank=2),
    Column("who", 7),
    Column("what", least=24),
    Column("", 6, rank=1),
)


def story_cells(one: CompactionEntry) -> tuple[Cell, ...]:
    """The first line of a compaction in the list; one that is not in force is dim and says so."""
    record, style = one.record, "" if one.in_force else "dim"
    return (
        (clock(record.at) or "  ·", "dim"),
        (f"{short(record.before.used)} → {short(record.stands)}" if record.outcome == "compacted" else "", style),
        (gain(record.freed) if one.in_force else "", "good"),
        (REASONS[record.reason], style),
        (one.state_word, "warn" if one.state_word in ("failed", "rejected") else "dim"),
    )


def figures_words(one: CompactionEntry) -> tuple[str, ...]:
    """The tokens before and after a compaction, the longest text first; empty for one that changed nothing."""
    if one.change is None:
        return ("",)
    sizes = f"{short(one.record.before.used)} → {short(one.record.stands)}"
    return (f"{sizes}   {gain(one.record.freed)}", sizes) if one.in_force else (sizes,)


def became_line(one: CompactionEntry, width: int) -> Cell:
    """The second line of a compaction in the list: what became of which messages, or why nothing did."""
    written = one.record
    if one.change is None:
        return _below([clean(written.detail) or "Nothing was changed."], width)
    words, gone = len(one.summary.split()), written.folded_messages - written.shortened
    shortened, facts = written.shortened, count(written.facts.kept, "fact") if written.facts.kept else ""
    also = f" and {facts}" if facts else ""

    def told(who: str, summary: str, shorter: str) -> str:
        became = (f"{who} → {summary}" if gone else summary) if words else f"{who} left the window" if gone else ""
        return "; ".join(filter(None, (became, f"{shorter} shortened" if shortened else "")))

    messages = count(gone, "message")
    ways = [
        told(messages, f"a summary of {count(words, 'word')}{also}", count(shortened, "message")),
        told(messages, f"a summary{also}", f"{shortened:,}"),
        told(f"{gone:,}", f"summary{f', {facts}' if facts else ''}", f"{shortened:,}"),
    ]
    return _below(ways, width, "" if one.in_force else "dim")


def author_line(one: CompactionEntry, width: int) -> Cell:
    """The third line of a compaction in the list: what was put back since, who wrote the summary, how long that took and what it
    cost; and the compaction's reason, if the first line has no room for it."""
    written = one.record
    why = "" if any(STORY[place].title == "why" for place, *_ in fit_columns(STORY, width)) else REASONS[written.reason]
    if one.undone:
        again = ("undone: all of it is in the window again", "undone: in the window again")
        return _below(["; ".join(filter(None, (why, way))) for way in again], width, "dim")
    back = f"put back since: {back_words(one)}" if back_words(one) else ""
    by = _author(written) or one_line(written.model.rpartition("/")[2], 60)
    took = elapsed(written.seconds) if written.seconds >= MIN_SHOWN_S else ""
    cost = money(written.cost_usd) if written.cost_usd else ""
    nobody = ("without a model", "no model") if one.change else ("", "")
    said = f"written by {by}" if by and one.summary else f"by {by}" if by else nobody[0]
    whole = " ".join(filter(None, (said, took and f"in {took}", cost and f"for {cost}")))
    brief, least = (", ".join(filter(None, (by or nobody[1], *rest))) for rest in ((took, cost), (cost,)))
    missed = clean(written.missed).rstrip(".")
    return _below(["; ".join(filter(None, (why, back, missed, way))) for way in (whole, brief, least)], width, "dim")


STORY_BELOW = (became_line, author_line)

LABEL_COLUMNS, MIN_LABEL_WIDTH = 16, 44
"""Cells for what a line of the record is about, and from how many of them all on these words have a column of their own."""

MIN_INDENTED_WIDTH = 60
"""Width in cells from which the second and third line are indented to the first line's second column."""


def _below(ways: Sequence[str], width: int, style: str = "") -> Cell:
    """The longest of these texts that fits under the first line, else the last."""
    indent = 8 if width >= MIN_INDENTED_WIDTH else 2
    words = next((way for way in ways if len(way) <= width - indent), ways[-1])
    return (" " * indent + words, style)


def message_cells(kept: Kept) -> tuple[Cell, ...]:
    """The line of a message that the compaction put away, or of an earlier compaction that it did."""
    if kept.nested:
        return ("", "", ("Σ", "strong"), (_nested(kept.nested), "strong"), "")
    message = kept.message
    calls = (f"{one_line(c.name, 40)} {key_argument(decoded(c.arguments))}" for c in message.calls)
    text = prose_line(message.text) or "  ".join(calls)
    return (
        (message.id, "dim"),
        (str(kept.group.turn), "dim"),
        NOTE if kept.group.kind == "note" else WHO[message.role],
        clean(text),
        (clock(message.at), "dim"),
    )


def summary(one: CompactionEntry) -> str:
    """A compaction's summary as Markdown, or why there is none; below a remark if it is not in force."""
    if one.change is None:
        return f"*{clean(one.record.detail) or f'This compaction is {one.state_word}: it changed nothing.'}*"
    if not one.summary:
        words = "it dropped or shortened messages, which are under Messages as they were."
        return f"*{'Undone. ' if one.undone else ''}This compaction left no summary: {words}*"
    return (
        f"*Undone: the model no longer sees this summary.*\n\n{clean(one.summary)}"
        if one.undone
        else clean(one.summary)
    )


def facts(one: CompactionEntry, view: View, ledger: Ledger, width: int = 0) -> Content:
    """The facts of the messages that a compaction put away, by kind, each marked whether the model still sees it. A fact longer
    than `width` cells is wrapped with an indent (0: not at all)."""
    if one.change is None:
        return Content("It archived nothing.")
    found = facts_of_change(one.change, put_away(one, ledger))
    own = [fact for fact in found.facts if fact.by != "tool"]  # others are not counted either: the file still has them
    if not own:
        return Content("No facts were found in what was archived.")
    held, lost = kept_facts(found, view, one.change, ledger, Memory())
    near = f", {held.near} of them one read away" if held.near else ""
    head = (
        f"The model {'sees' if one.undone else 'still sees'} {held.kept} of the {count(held.found, 'fact')} here{near}."
    )
    lines = [Content.styled(head, MUTED)]
    for kind in KINDS:
        some = [fact for fact in own if fact.kind == kind]
        lines += [Content(""), Content.styled(TITLES[kind].partition(",")[0], "bold")] if some else []
        lines += [_fact(fact, fact not in lost, width) for fact in some]
    return Content("\n").join(lines)


def _fact(fact: Fact, seen: bool, width: int) -> Content:
    words = clean(line_of(fact))
    text = f"✓ {words}" if seen else f"– {words}   (the model no longer sees it)"
    if width > 20:
        text = "\n".join(part for line in text.splitlines() for part in wrap(line, width, subsequent_indent="  "))
    return Content(text) if seen else Content.styled(text, MUTED)


def difference(one: CompactionEntry, found: Sequence[CompactionEntry]) -> Content:
    """A compaction's summary compared with the one before it, line by line."""
    if not one.summary:
        return Content.styled("There is no summary to compare.", MUTED)
    before = previous(one, found)
    if before is None:
        return Content.styled("This is the first summary: there is none before it to compare with.", MUTED)
    styles = {"+": "$text-success", "-": "$text-error", "@": MUTED}
    lines = [
        Content.styled(clean(line), styles[line[0]]) if line[:1] in styles else Content(clean(line))
        for line in compared(before.summary, one.summary)
    ]
    undone = ", undone since" if before.undone else ""
    head = f"Against the summary of {day_and_clock(before.record.at) or before.id}, {REASONS[before.record.reason]}{undone}"
    return Content("\n").join([Content.styled(f"{head}{'' if lines else ': they are equal'}", MUTED), *lines])


def record(one: CompactionEntry, width: int = 0) -> Content:
    """The record of a compaction, beginning with what its lines in the list do not tell. Values longer than `width` cells are
    wrapped with an indent (0: not at all)."""
    written = one.record
    before, after = written.before.used, written.after.used
    took = f"{elapsed(written.seconds)}   " if written.seconds >= MIN_SHOWN_S else ""
    rows = [("did", " ".join(filter(None, (written.detail, written.missed))))]
    if one.change:
        rows += [("step", f"{gain(s.tokens_freed):>6}  {LABELS.get(s.name, s.name)}") for s in written.steps]
        rows += [
            ("archived", _put_away(written)),
            ("put back since", back_words(one)),
            ("kept verbatim", count(written.keep_recent, "message") if written.keep_recent else ""),
            ("facts", _kept_words(written, one.facts_back)),
        ]
    rows += [
        ("before → after", f"{short(before)} → {short(after)}   {gain(before - after)}" if one.change else ""),
        ("cost", f"{took}{money(written.cost_usd)}   {written.model or 'no model'}"),
        ("strategy", written.strategy),
        ("why", REASONS[written.reason]),
        ("outcome", one.state_word),
        ("when", day_and_clock(written.at)),
        ("id", one.id),
    ]
    if one.change:
        rows += [
            ("summary by", _author(written)),
            ("attempts", str(written.attempts) if written.attempts > 1 else ""),
            ("tools it had", ", ".join(written.tools)),
            ("memory it had", ", ".join(written.memory)),
            ("last calls", "\n".join(map(_call_words, written.recent_calls))),
        ]
    lines: list[Content] = []
    for key, value in rows:
        labels = LABEL_COLUMNS if not 0 < width < MIN_LABEL_WIDTH else 2  # narrow: only what goes on is indented
        for n, text in enumerate(clean(value).splitlines()):
            label = f"{'' if n else key:<{labels}}" if n or labels > 2 else f"{key} "
            wrapped = wrap(label + text, width, subsequent_indent=" " * labels) if width > 28 else [label + text]
            lines += [Content.assemble((wrapped[0][: len(label)], MUTED), wrapped[0][len(label) :])]
            lines += map(Content, wrapped[1:])
    return Content("\n").join(lines)


def _call_words(call: str) -> str:
    """A call without its JSON: `read_file {"path": "a.py"}` becomes `read_file a.py`."""
    name, _, arguments = call.partition(" ")
    return f"{name} {key_argument(decoded(arguments))}".rstrip()


def _put_away(written: CompactionRecord) -> str:
    shorter = f", {written.shortened:,} of them only shortened" if written.shortened else ""
    return f"{count(written.folded_messages, 'message')}{shorter}"


def _author(written: CompactionRecord) -> str:
    """Who wrote the summary; empty if the model of the record's other row wrote it alone."""
    draft = f", from a draft by {written.model}" if written.model else ""
    return f"{written.author}{draft}" if written.author else ""


def _kept_words(written: CompactionRecord, facts_back: bool) -> str:
    kept = f"kept {written.facts.kept} of {written.facts.found}" if written.facts.found else ""
    return f"{kept}, {len(written.lost)} put back" if facts_back else kept


def back_words(one: CompactionEntry) -> str:
    """The part of a compaction that was put back: `12 messages, 8.1k; −79.1k left`; empty for none."""
    back = one.record.back
    if not back.messages:
        return ""
    left = f"; {gain(one.record.freed)} left" if one.in_force else ""
    return f"{count(back.messages, 'message')}, {short(back.tokens)}{left}"


def _nested(change: Change) -> str:
    messages = change.record.folded_messages if change.record else 0
    return f"compaction of {clock(change.at)}, {count(messages, 'message')}: enter opens it"
