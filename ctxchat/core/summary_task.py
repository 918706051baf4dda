"""Builds the prompts of a summariser (the model that writes a summary): the original messages as text, the summary so far (its
"record"), and a description of what stays in view.

All of that is marked as data, with ids. Calls no model and knows no window.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import groupby

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.clip import clip, head
from ctxchat.core.context_usage import BUDGET
from ctxchat.core.expressions import expression
from ctxchat.core.facts import render
from ctxchat.core.group_ids import searchable
from ctxchat.core.ledger import Ledger
from ctxchat.core.memos import memos_of
from ctxchat.core.messages import BROKEN_OFF, Group, Message, Text, ToolCall, spoken
from ctxchat.core.notes import CONTEXT_NOTE
from ctxchat.core.pending import asked_now
from ctxchat.core.ports import SummaryTask
from ctxchat.core.recap import person_said
from ctxchat.core.strategies.base import Step
from ctxchat.core.strategies.planning import PlanOptions, is_summary
from ctxchat.core.summaries import MAX_SAID_SHARE, evidence_after, id_ranges, message_numbers, room_in_words, written
from ctxchat.core.summary_update import indexed, numbered
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import exchanges, failed, first_line, gist, is_to_do, patch_in, refused, use_of
from ctxchat.core.working_set import not_in_view

RESULTS = {"run": 700, "change": 120, "read": 300, "search": 300, "fetch": 500, "ask": 1_500, "other": 500}
"""Tokens of a result that a summariser is shown, by what its call does: a file can be read again, an output cannot."""

ANSWER, ATTACHED, NOTE, EDIT, ARGUMENTS = 1_500, 600, 300, 500, 300
"""The most tokens that a summariser is shown of: an answer of the model, an attached file, a note, one edit, other arguments."""

_SHOWN_LINE = expression(r"\d*\t|\[… lines \d+–\d+\]$")
_PERCENT = expression(r"\s*\[?\s*\d{1,3} ?%\]?$")
"""A percentage at the end of a line, which shows a program's progress."""

MAX_NAMED_CALLS = 4
"""How many calls without an answer are listed by name; of the others only the number is given."""

MAX_DEFINITIONS_CHARS = 900
"""The most characters of the list of definitions that stands for a long file that was read."""

NEWEST, EACH, RESULT = 1_800, 160, 200
"""Of the newest messages, which stay in view: the most tokens that a summariser is shown of all and of each, and the most
characters of a tool's result among them."""

LAST, LAST_TOKENS = 3, 250
"""How many of the last results of commands and sub-agents among those are shown longer, and the most tokens of each."""

RECORD_NOW, UPDATE_NOW = "Write the record now.", "Write now what changes in the record so far."
"""The last line of a summariser's prompt: for a new record, and for an update of the record so far."""

SUMMARY_SHARE, SMALL_LIMIT, MAX_SUMMARY_SHARE = 0.05, 40_000, 0.4
"""The share of what an agent writes that summaries may take where a prompt may hold so many tokens or fewer; it grows with the
square of a larger window, as there summaries are rare and have to last, and from the last share on there is no limit."""

MIN_NEW_TOKENS, FIRST_RATIO = 200, 1.5
"""The least tokens that the summary of new messages may take; how many times more the first summary of a conversation may, which
has its goal and rules to tell as well."""

MAX_PLACE_CHARS = 160
"""Characters of a message that are quoted so that a model can find it in the conversation."""

_NEEDS = frozenset({"folders", "network", "timeout", "cwd", "workdir", "background", "run_in_background"})

_MAX_DIFFED_CHARS = 20_000
"""Characters of an old and a new text that are compared; longer ones are shown by their beginning."""

_MARK = re.compile(r"<(?=/?(?:message|record_so_far|stays)\b)")


def summary_task(ledger: Ledger, step: Step, options: PlanOptions, instructions: str = "") -> SummaryTask:
    """The summariser's task for a fold step. Groups covered by a summary that a model wrote from the originals are not read
    again. Those covered only by a summary of code's or of another agent's are read in full, and so are messages that were
    shortened."""
    read, *instead = written(ledger)
    groups = ledger.groups_of(ledger.without(step.fold, read.covers))
    return SummaryTask(
        tuple(map(options.memory.shown, filter(_says_something, groups))),
        read.text,
        _recent_context(ledger, step, options),
        instructions,
        step.summary_tokens,
        options.summary_share,
        tuple(instead),
    )


def _says_something(group: Group) -> bool:
    """False for a note on how full the window was: it is out of date by now."""
    return group.source != CONTEXT_NOTE + BUDGET


def output_room(task: SummaryTask, window: int) -> int:
    """The token limit for the summariser's reply: more than the summary needs, since some models think before they write."""
    return task.max_tokens * 2 + window // 16


def room_for_new(task: SummaryTask, count: Count) -> int:
    """Tokens that the summary of the task's groups may take; 0 for as much as there is room."""
    if not task.share or task.instructions:
        return 0
    said = (m for g in task.groups for m in g.messages if m.role == "assistant")
    wrote = sum(count(m.text) + sum(count(call.arguments) for call in m.calls) for m in said)
    room = max(MIN_NEW_TOKENS, int(wrote * task.share))
    return room if task.previous else int(room * FIRST_RATIO)


def share_for(limit: int) -> float:
    """The share of the tokens an agent writes that summaries may take where a prompt may hold `limit` tokens: the smaller the
    window, the more summaries the same work needs. 0 for as much as there is room."""
    share = SUMMARY_SHARE * max(1.0, limit / SMALL_LIMIT) ** 2
    return share if share < MAX_SUMMARY_SHARE else 0.0


def shortened(task: SummaryTask, most: int) -> SummaryTask:
    """The task cut to about `most` tokens of input: the earliest groups are replaced by what code or another agent wrote of them
    (`task.instead`), as far as there is such a text."""
    left = input_tokens(task.groups)
    for one in task.instead if left > most else ():
        groups = tuple(g for g in task.groups if g.id not in one.covers)
        task = msgspec.structs.replace(task, groups=groups, previous=one.text)
        if input_tokens(groups) <= most:
            break
    return msgspec.structs.replace(task, instead=())


def input_tokens(groups: Iterable[Group]) -> int:
    """A quick estimate of the tokens of `render_input` for these groups."""
    longest = {"tool": RESULTS["read"], "assistant": ANSWER}
    return sum(
        30
        + min(len(m.text) // 4, longest.get(m.role, len(m.text)))
        + sum(min(len(c.arguments) // 4, EDIT) for c in m.calls)
        for g in groups
        for m in g.messages
    )


def _recent_context(ledger: Ledger, step: Step, options: PlanOptions) -> str:
    """The description of what the summariser need not write, since it stays in view or stands beside the summary: the person's
    last words, the newest messages, files, memos, the person's messages and the facts."""
    count = options.counter.count_text
    groups, folded = ledger.groups_of(step.fold), searchable(step.fold)
    stays = [
        e
        for e in ledger.live()
        if e.group
        and not is_summary(e)
        and not any(name in folded for name in e.covers)
        and not e.group.source.startswith(CONTEXT_NOTE)  # the head is renewed, and the notes on its changes go
    ]
    kept = [e.group for e in stays if e.group]
    calls = {c.id: c for e in stays for g in ledger.groups_of(e.covers) for m in g.messages for c in m.calls}
    parts = [asked_now(ledger, 400, count)]
    if last := sum(message_numbers(groups, options.memory)[-2:]) - 1:
        parts.append(
            f"The messages you are given end with m{last}: what you write of the end is written as of m{last}. What stays in "
            "view comes after it and overtakes it; nothing that is done there is a next step."
        )
    if newest := "\n".join(_newest([*map(options.memory.shown, kept)], calls, count)):
        places = id_ranges(m.seq for g in kept if g.kind != "system" for m in g.messages)
        parts.append(
            f"These messages stay in view: {places}. The newest of them, in short but for the last results:\n{newest}"
        )
    if again := not_in_view(options.files, ledger, step.fold):
        paths = ", ".join(f.path for f in again)
        parts.append(f"Of these files, touched last, as much as fits stands beside your record as it is now: {paths}")
    words = person_said(
        groups, int(step.evidence_tokens * MAX_SAID_SHARE), count, options.memory, recall=options.recall
    )
    if words:
        parts.append(
            "The messages of the person that you are given stand word for word beside your record, with their ids."
        )
    if memos := memos_of(ledger) if options.recall else {}:
        parts.append(f"The agent's memos stand word for word beside your record: {', '.join(memos)}.")
    evidence = evidence_after(ledger, step.fold, options.memory)
    if facts := render(evidence, step.evidence_tokens - count(words), count, words, recall=options.recall):
        parts.append(f"Facts that code keeps beside your record:\n{facts}")
    return _harmless("\n\n".join(filter(None, parts)))


def _newest(groups: Sequence[Group], calls: Mapping[str, ToolCall], count: Count) -> list[str]:
    """A line or two for each of the newest messages that stay, oldest first, as many as fit `NEWEST`. `calls` are the original
    calls by id, whose arguments may have been shortened in the groups since."""
    lines: list[str] = []
    room, whole = NEWEST, LAST
    for group, message in ((g, m) for g in reversed(groups) for m in reversed(g.messages) if g.kind != "system"):
        called = "; ".join(f"{c.name} {first_line(use_of(c).target or c.arguments, 80)}" for c in message.calls)
        call = calls.get(message.call_id) if message.role == "tool" else None
        if call and is_to_do(call):
            continue  # the result only confirms; the list itself is in the call
        text = gist(call, message, RESULT) if call else " ".join(message.text.split())
        words = clip(text, EACH, count, " […] ")
        if call and whole and use_of(call).kind in {"run", "ask"}:
            whole -= 1
            words = clip(_folded(message.text), LAST_TOKENS, count)
        role = (
            "note" if group.kind == "note" else message.role
        )  # a note has the role user, but the person did not write it
        line = f"- {message.id} {role}: {words}" + (f" [calls {called}]" if called else "")
        room -= count(line) + 1
        if room < 0:
            break
        lines.append(line)
    return lines[::-1]


def request_text(
    piece: str,
    previous: str,
    beside: str,
    instructions: str = "",
    *,
    number: int = 1,
    of: int = 1,
    update: bool = False,
) -> str:
    """A summariser's prompt for piece `number` of `of`. `previous` is the record of the pieces before, `beside` describes what
    stays in view. `update`: ask only for what changes in that record."""
    known = numbered(previous) if update else previous
    parts = [f"<record_so_far>\n{known}\n</record_so_far>"] if previous.strip() else []
    parts.append(f'<messages part="{number}" of="{of}">\n{piece}\n</messages>')
    if beside.strip() and number == of:  # once is enough: with the last piece, when the whole record is written
        parts.append(f"<stays>\n{beside}\n</stays>")
    if instructions.strip():
        parts.append(f"Wanted of this record besides: {instructions.strip()}")  # by the person, the agent or a hook
    if number < of:
        parts.append(
            "More parts follow, so that the end of this one is not the end: write the record up to here, for the next."
        )
    parts.append(UPDATE_NOW if update else RECORD_NOW)
    return "\n\n".join(parts)


def within_text(task: SummaryTask, *, update: bool = False) -> str:
    """A summariser's prompt for when it is added at the end of the conversation itself, to reuse its cached prefix. It says which
    of the messages above are to be summarised."""
    first, last = task.groups[0].first, task.groups[-1].messages[-1]
    ends = first_line(last.text or " ".join(call.name for call in last.calls), MAX_PLACE_CHARS)
    parts = [f"What goes ends with the message of the role {last.role} that begins: {_harmless(ends)}"]
    if said := first_line(first.text, MAX_PLACE_CHARS):
        parts[0] = (
            f"What goes begins with the message of the role {first.role} that begins: {_harmless(said)}\n{parts[0]}"
        )
    if task.beside.strip():
        parts.append(f"<stays>\n{task.beside}\n</stays>")
    if task.instructions.strip():
        parts.append(f"Wanted of this record besides: {task.instructions.strip()}")
    if update:
        parts.append(
            f"The lines of the record so far, which stands above, each by its beginning:\n{_harmless(indexed(task.previous))}"
        )
    parts.append(UPDATE_NOW if update else RECORD_NOW)
    return "\n\n".join(parts)


def shorter_text(record: str, max_tokens: int, count: Count) -> str:
    """A summariser's prompt for shortening a record that exceeds `max_tokens`."""
    room = room_in_words(max_tokens * 9 // 10, record, count)
    return (
        f"<record_so_far>\n{record}\n</record_so_far>\n\n"
        f"This record is yours, and it is too long: {count(record)} tokens where there is room for {max_tokens}. "
        f"Write all of it again in at most {room}. Keep rules, decisions with their reasons, how it stands at the end, causes "
        "and exact values; let go of wording and of what is done with."
    )


# ── messages as text ──


def chunks(groups: Sequence[Group], max_tokens: int, count: Count) -> tuple[str, ...]:
    """The groups as text, in pieces of at most `max_tokens`, split between groups. A user message that is longer than a piece is
    spread over several; any other group that long is clipped."""
    lists = [c for g in groups for m in g.messages for c in m.calls if is_to_do(c)]
    pieces: list[list[str]] = [[]]
    room = max_tokens
    for group in groups:
        for text in _fitting(render_input(group, count, lists[-1] if lists else None), group, max_tokens, count):
            tokens = count(text) + 1
            if tokens > room and pieces[-1]:
                pieces.append([])
                room = max_tokens
            pieces[-1].append(text)
            room -= tokens
    return tuple("\n".join(piece) for piece in pieces if piece)


def _fitting(text: str, group: Group, max_tokens: int, count: Count) -> Iterator[str]:
    """The text of a group in at most `max_tokens`: cut, or for a user message divided into several pieces, since nothing of it
    may be lost."""
    if group.kind != "user" or count(text) <= max_tokens:
        yield clip(text, max_tokens, count)
        return
    size = max(1, len(text) * max(1, max_tokens - 30) // count(text) * 4 // 5)
    for number, start in enumerate(range(0, len(text), size)):
        opening = f"[{group.first.id} goes on]\n" if number else ""
        yield clip(opening + text[start : start + size], max_tokens, count)


def render_input(group: Group, count: Count, to_do: ToolCall | None = None) -> str:
    """A group as text for a summariser. Each message is marked as data with its id and role; the person's messages are whole,
    edits are short diffs, results and answers are clipped, images and other parts are placeholders. Of all to-do lists only the
    one in the call `to_do` is whole. Calls that were never answered are only listed by name."""
    pairs = list(zip(group.first.calls, group.messages[1:], strict=False))
    answered = tuple(call for call, result in pairs if not result.synthetic)
    calls = {c.id: c for c in answered}
    first = msgspec.structs.replace(group.first, calls=answered)
    told = [first, *(m for m in group.messages[1:] if not m.synthetic)]
    if group.kind in {"note", "summary"}:  # these have the role user, but the person did not write them
        body = clip(first.text, ANSWER, count) if group.kind == "note" else first.text
        parts = [_marked(first, group.kind, body)]
    else:
        nothing = {call.id for call, result in pairs if failed(result) or refused(result)}
        parts = [_marked(m, m.role, _body(m, calls.get(m.call_id), count, to_do, nothing)) for m in told]
    if cut_off := [f"{c.name} {first_line(use_of(c).target, 60)}".rstrip() for c, r in pairs if r.synthetic]:
        more = f" and {len(cut_off) - MAX_NAMED_CALLS} more" if len(cut_off) > MAX_NAMED_CALLS else ""
        parts.append(_harmless(f"[cut off before an answer: {', '.join(cut_off[:MAX_NAMED_CALLS])}{more}]"))
    return "\n".join(parts)


def _marked(message: Message, role: str, body: str) -> str:
    name = f' name="{message.name}"' if message.name else ""
    return f'<message id="{message.id}" role="{role}"{name}>\n{_harmless(body)}\n</message>'


def _harmless(text: str) -> str:
    """The text with an invisible character in every tag that could close the tags around it."""
    return _MARK.sub("<\u200b", text)


def _body(
    message: Message, call: ToolCall | None, count: Count, to_do: ToolCall | None, nothing: Collection[str] = ()
) -> str:
    """The text of a message in a summariser's prompt, shortened by what it is: results by the kind of their call, outdated to-do
    lists to a mark."""
    match message.role:
        case "user":
            return _message_text(message, count)
        case "tool":
            if call is not None and is_to_do(call):
                return "[the list as it was then]"
            kind = use_of(call).kind if call else "other"
            if kind == "read" and not failed(message) and count(message.text) > RESULTS[kind]:
                told = gist(call, message, MAX_DEFINITIONS_CHARS)
                if ": " in told:  # the list of its definitions says more than its head and tail
                    return f"[{told}]"
            text = message.text
            if kind == "change" and call is not None and not failed(message) and any(_changes(call)):
                text = _without_shown_lines(text)  # the diff of the call has these lines
            elif kind in {"run", "other"}:
                text = _folded(text)
            return clip(text, RESULTS[kind], count)
        case _:
            text = clip(message.text, ANSWER if message.role == "assistant" else NOTE, count) if message.text else ""
            broken = [BROKEN_OFF] if message.interrupted else []
            return "\n".join([text, *broken, *(_call(c, count, to_do, c.id in nothing) for c in message.calls)]).lstrip(
                "\n"
            )


def _folded(output: str) -> str:
    """A program's output with repeated lines folded: three or more equal lines in a row become one and their number, and so do
    lines that differ only in a percentage at the end. Empty lines in a row become one."""
    lines: list[str] = []
    for _, run in groupby(output.splitlines(), _without_percent):
        same = [line.rstrip() for line in run]
        if not same[0]:
            lines.append("")
            continue
        like = "the line above" if same[0] == same[-1] else "the line above, another percentage at its end,"
        lines += [same[0], f"[{like} {len(same) - 1} times more]"] if len(same) > 2 else same
    return "\n".join(lines)


def _without_percent(line: str) -> str:
    return _PERCENT.sub("", line.rstrip())


def _without_shown_lines(result: str) -> str:
    """The result of an edit without the file's lines in it; only the number of the first such line is kept."""
    shown = [line for line in result.splitlines() if _SHOWN_LINE.match(line)]
    said = [line for line in result.splitlines() if not _SHOWN_LINE.match(line)]
    number = shown[0].partition("\t")[0] if shown else ""
    return "\n".join([*said, *([f"[shown from line {number} on]"] if number.isdecimal() else [])])


def _message_text(message: Message, count: Count) -> str:
    """The person's own words, whole, and attached files, clipped."""
    if isinstance(message.content, str):
        return message.content
    along = (p for p in message.content if not isinstance(p, Text) or p.name)
    shown = (clip(p.words, ATTACHED, count) if isinstance(p, Text) else _placeholder(p) for p in along)
    return "\n".join([spoken(message), *shown])


def _placeholder(part: object) -> str:
    return Message(0, "user", (part,)).text  # type: ignore[arg-type]


def _call(call: ToolCall, count: Count, to_do: ToolCall | None, nothing: bool) -> str:
    """A call in words. `nothing`: the call failed or was refused; of a change then only the target is named, since its result
    says why."""
    if is_to_do(call) and call is not to_do:
        return f"[calls {call.name}: a later list stands below]"
    use = use_of(call)
    if use.kind == "change" and nothing:
        return f"[called {call.name} on {use.target}, which came to nothing]"
    if use.kind == "change" and (changes := "\n".join(_changes(call))):
        return f"[calls {call.name} on {use.target}]\n{clip(changes, EDIT, count)}"
    if use.kind == "run":
        return f"[runs with {call.name}{_besides(call)}: {head(use.target, ARGUMENTS, count)}]"
    return f"[calls {call.name} with {head(call.arguments, ARGUMENTS if call is not to_do else ANSWER, count)}]"


def _besides(call: ToolCall) -> str:
    """The further arguments of a call that runs a command: folders, the network, a timeout. Later calls will need the same."""
    fields = fields_of(call.arguments) or {}
    given = (f"{name}={value}" for name, value in fields.items() if name in _NEEDS and value)
    return "".join(f", {first_line(one, 120)}" for one in given)


def _changes(call: ToolCall) -> Iterator[str]:
    """The changes that a call makes to files, as diffs; a file that it writes is shown as added lines."""
    for old, new in exchanges(call):
        yield f"+ {new}" if old is None else _diff(old, new) or "[nothing changed]"
    if patch := patch_in(call):
        yield patch


def _diff(old: str, new: str) -> str:
    """The lines that differ, each with one line of context, and `[…]` where lines are left out; empty where none differs."""
    before, after = old[:_MAX_DIFFED_CHARS].splitlines(), new[:_MAX_DIFFED_CHARS].splitlines()
    lines = list(unified_diff(before, after, lineterm="", n=1))[3:]
    more = max(len(old), len(new)) - _MAX_DIFFED_CHARS
    behind = (
        [f"[… {more:,} more characters, not compared]"]
        if more > 0 and old[_MAX_DIFFED_CHARS:] != new[_MAX_DIFFED_CHARS:]
        else []
    )
    return "\n".join([*("[…]" if line.startswith("@@") else line for line in lines), *behind])
