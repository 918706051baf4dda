"""What a summariser is given: the original messages as text, the record so far, and word of what stays in view beside its text.

Everything is data with ids; nothing here calls a model or knows its window.
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
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import exchanges, failed, first_line, gist, is_to_do, patch_in, refused, use_of
from ctxchat.core.working_set import not_in_view

RESULTS = {"run": 700, "change": 120, "read": 300, "search": 300, "fetch": 500, "ask": 1_500, "other": 500}
"""Tokens of a result that a summariser is shown, by what its call does: a file can be read again, an output cannot."""

ANSWER, ATTACHED, NOTE, EDIT, ARGUMENTS = 1_500, 600, 300, 500, 300
"""Tokens of what the model said, of a file that came along, of a note of ours, of one edit, of other arguments."""

_SHOWN_LINE = expression(r"\d*\t|\[… lines \d+–\d+\]$")
_PERCENT = expression(r"\s*\[?\s*\d{1,3} ?%\]?$")
"""How far a program has come, at the end of a line."""

MAX_NAMED_CALLS = 4
"""Calls of a batch that was cut off which are named."""

MAX_DEFINITIONS_CHARS = 900
"""Characters of the line that stands for a long file that was read."""

NEWEST, EACH, RESULT = 1_800, 160, 200
"""Tokens of the newest messages as they are told to a summariser, together and each; characters of a result among them."""

LAST, LAST_TOKENS = 3, 250
"""Outputs of commands among those that are told whole, the last ones, and the tokens of each."""

RECORD_NOW, UPDATE_NOW = "Write the record now.", "Write now what changes in the record so far."
"""The last words of what a summariser is asked."""

MAX_PLACE_CHARS = 160
"""Characters of a message by which a reader finds it in the conversation."""

_NEEDS = frozenset({"folders", "network", "timeout", "cwd", "workdir", "background", "run_in_background"})

_MAX_DIFFED_CHARS = 20_000
"""Characters of an old and a new text that are compared; longer ones are shown by their beginning."""

_MARK = re.compile(r"<(?=/?(?:message|record_so_far|stays)\b)")


def summary_task(ledger: Ledger, step: Step, options: PlanOptions, instructions: str = "") -> SummaryTask:
    """The task for a fold step. Groups that a summary stands for which a model wrote of them are not read again; those that only
    code's or another agent's stands for are, as they were, and so is what was shortened."""
    read, *instead = written(ledger)
    groups = ledger.groups_of(ledger.without(step.fold, read.covers))
    return SummaryTask(
        tuple(map(options.memory.shown, filter(_says_something, groups))),
        read.text,
        _recent_context(ledger, step, options),
        instructions,
        step.summary_tokens,
        tuple(instead),
    )


def _says_something(group: Group) -> bool:
    """False for a note on how full the window was, which holds for nothing any more."""
    return group.source != CONTEXT_NOTE + BUDGET


def output_room(task: SummaryTask, window: int) -> int:
    """Tokens that the reply of a model with such a window may take: some think before they write."""
    return task.max_tokens * 2 + window // 16


def shortened(task: SummaryTask, most: int) -> SummaryTask:
    """The task with about `most` tokens to read, as far as what others wrote can stand for the earliest groups."""
    left = input_tokens(task.groups)
    for one in task.instead if left > most else ():
        groups = tuple(g for g in task.groups if g.id not in one.covers)
        task = msgspec.structs.replace(task, groups=groups, previous=one.text)
        if input_tokens(groups) <= most:
            break
    return msgspec.structs.replace(task, instead=())


def input_tokens(groups: Iterable[Group]) -> int:
    """About how many tokens `render_input` makes of these groups; quick."""
    longest = {"tool": RESULTS["read"], "assistant": ANSWER}
    return sum(
        30
        + min(len(m.text) // 4, longest.get(m.role, len(m.text)))
        + sum(min(len(c.arguments) // 4, EDIT) for c in m.calls)
        for g in groups
        for m in g.messages
    )


def _recent_context(ledger: Ledger, step: Step, options: PlanOptions) -> str:
    """What the person said last, the newest messages, the person's messages and the facts that go along with the summary."""
    count = options.counter.count_text
    groups, folded = ledger.groups_of(step.fold), searchable(step.fold)
    stays = [
        e
        for e in ledger.live()
        if e.group
        and not is_summary(e)
        and not any(name in folded for name in e.covers)
        and not e.group.source.startswith(CONTEXT_NOTE)  # what stands around is told anew, and the notes on it go
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
    """A line or two for each message that stays, the newest that have room, in their order; `calls` are theirs as they were made,
    whatever was cut of them since."""
    lines: list[str] = []
    room, whole = NEWEST, LAST
    for group, message in ((g, m) for g in reversed(groups) for m in reversed(g.messages) if g.kind != "system"):
        called = "; ".join(f"{c.name} {first_line(use_of(c).target or c.arguments, 80)}" for c in message.calls)
        call = calls.get(message.call_id) if message.role == "tool" else None
        if call and is_to_do(call):
            continue  # it says that the list was kept; the call before it has the list
        text = gist(call, message, RESULT) if call else " ".join(message.text.split())
        words = clip(text, EACH, count, " […] ")
        if call and whole and use_of(call).kind in {"run", "ask"}:
            whole -= 1
            words = clip(_folded(message.text), LAST_TOKENS, count)
        role = "note" if group.kind == "note" else message.role  # as a message it is the person's, who never said it
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
    """What a summariser is asked for one piece of the messages, with the record made of those before, or what changes in it."""
    parts = [f"<record_so_far>\n{previous}\n</record_so_far>"] if previous.strip() else []
    parts.append(f'<messages part="{number}" of="{of}">\n{piece}\n</messages>')
    if beside.strip() and number == of:  # what stays is heeded once, where all of it is written together
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
    """What is asked behind the conversation itself, of which the task's groups are to go."""
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
    parts.append(UPDATE_NOW if update else RECORD_NOW)
    return "\n\n".join(parts)


def shorter_text(record: str, max_tokens: int, count: Count) -> str:
    """What a summariser is asked for whose record is longer than its room."""
    room = room_in_words(max_tokens * 9 // 10, record, count)
    return (
        f"<record_so_far>\n{record}\n</record_so_far>\n\n"
        f"This record is yours, and it is too long: {count(record)} tokens where there is room for {max_tokens}. "
        f"Write all of it again in at most {room}. Keep rules, decisions with their reasons, how it stands at the end, causes "
        "and exact values; let go of wording and of what is done with."
    )


# ── messages as text ──


def chunks(groups: Sequence[Group], max_tokens: int, count: Count) -> tuple[str, ...]:
    """The groups as text in pieces of at most `max_tokens`, cut between groups. What a person said is never clipped: where it is
    longer than a piece, it is told in several; another group as long as that is clipped."""
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
    if group.kind != "user" or count(text) <= max_tokens:
        yield clip(text, max_tokens, count)
        return
    size = max(1, len(text) * max(1, max_tokens - 30) // count(text) * 4 // 5)
    for number, start in enumerate(range(0, len(text), size)):
        opening = f"[{group.first.id} goes on]\n" if number else ""
        yield clip(opening + text[start : start + size], max_tokens, count)


def render_input(group: Group, count: Count, to_do: ToolCall | None = None) -> str:
    """A group as a summariser reads it: every message marked as data with its id and role, the person's whole, edits as short
    diffs, results and answers clipped, images and other parts as placeholders. Of the to-do lists only `to_do` is told whole, and
    of calls that were never answered the first."""
    pairs = list(zip(group.first.calls, group.messages[1:], strict=False))
    answered = tuple(call for call, result in pairs if not result.synthetic)
    calls = {c.id: c for c in answered}
    first = msgspec.structs.replace(group.first, calls=answered)
    told = [first, *(m for m in group.messages[1:] if not m.synthetic)]
    if group.kind in {"note", "summary"}:  # as a message it is the person's, who never said it
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
    """Text that cannot close the marks around it."""
    return _MARK.sub("<\u200b", text)


def _body(
    message: Message, call: ToolCall | None, count: Count, to_do: ToolCall | None, nothing: Collection[str] = ()
) -> str:
    match message.role:
        case "user":
            return _message_text(message, count)
        case "tool":
            if call is not None and is_to_do(call):
                return "[the list as it was then]"
            kind = use_of(call).kind if call else "other"
            if kind == "read" and not failed(message) and count(message.text) > RESULTS[kind]:
                told = gist(call, message, MAX_DEFINITIONS_CHARS)
                if ": " in told:  # what it defines says more than its head and tail
                    return f"[{told}]"
            text = message.text
            if kind == "change" and call is not None and not failed(message) and any(_changes(call)):
                text = _without_shown_lines(text)  # the diff in its call has them
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
    """What a program said, a line that stands several times one behind the other once, with their number; so do lines that only
    differ by how far the program has come. Empty lines that follow one another are one."""
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
    """The result of an edit without the lines of the file that it shows, but for the number of the first."""
    shown = [line for line in result.splitlines() if _SHOWN_LINE.match(line)]
    said = [line for line in result.splitlines() if not _SHOWN_LINE.match(line)]
    number = shown[0].partition("\t")[0] if shown else ""
    return "\n".join([*said, *([f"[shown from line {number} on]"] if number.isdecimal() else [])])


def _message_text(message: Message, count: Count) -> str:
    """What a person said, whole, with what came along clipped."""
    if isinstance(message.content, str):
        return message.content
    along = (p for p in message.content if not isinstance(p, Text) or p.name)
    shown = (clip(p.words, ATTACHED, count) if isinstance(p, Text) else _placeholder(p) for p in along)
    return "\n".join([spoken(message), *shown])


def _placeholder(part: object) -> str:
    return Message(0, "user", (part,)).text  # type: ignore[arg-type]


def _call(call: ToolCall, count: Count, to_do: ToolCall | None, nothing: bool) -> str:
    """A call in words. Of a change that came to `nothing` only what it was about: its result says why."""
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
    """What a call that runs a command asks for besides: folders, the network, a time. Such a need comes again."""
    fields = fields_of(call.arguments) or {}
    given = (f"{name}={value}" for name, value in fields.items() if name in _NEEDS and value)
    return "".join(f", {first_line(one, 120)}" for one in given)


def _changes(call: ToolCall) -> Iterator[str]:
    """The texts that a call changes, as diffs; a file that it writes, by its lines."""
    for old, new in exchanges(call):
        yield f"+ {new}" if old is None else _diff(old, new) or "[nothing changed]"
    if patch := patch_in(call):
        yield patch


def _diff(old: str, new: str) -> str:
    """The lines that differ, with one around them and a mark where lines between them are left out; empty where none does."""
    before, after = old[:_MAX_DIFFED_CHARS].splitlines(), new[:_MAX_DIFFED_CHARS].splitlines()
    lines = list(unified_diff(before, after, lineterm="", n=1))[3:]
    more = max(len(old), len(new)) - _MAX_DIFFED_CHARS
    behind = (
        [f"[… {more:,} more characters, not compared]"]
        if more > 0 and old[_MAX_DIFFED_CHARS:] != new[_MAX_DIFFED_CHARS:]
        else []
    )
    return "\n".join([*("[…]" if line.startswith("@@") else line for line in lines), *behind])
