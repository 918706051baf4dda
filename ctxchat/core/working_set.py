"""Chooses the working set: the files that the work depends on, shown beside a summary as they are on disk now. Decides which
files, and how much of each; reads no files itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.clip import clip, clip_around
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, ToolCall, spoken
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import SAVED, exchanges, failed, first_line, use_of

MAX_FILES = 12
"""Files considered at most, those touched last."""

EDIT_HALF_LIFE = 8
"""An edit counts half as much for the rank of its file after this many later edits."""

MAX_EDITS, NEAR_LINES = 8, 20
"""How many of a file's last edits decide which part of it is shown, and how many lines may lie between two edits of one part."""

PLACE_HALF_LIFE, MAX_EDIT_WEIGHT = 3, 10
"""An edit counts half as much for the choice of the part after this many later ones, and at most this many of its lines count: an
import that was added last must not outweigh the function it is for."""

EACH, LEAST = 5_000, 150
"""Tokens of one file at most, and at least for a file that is shown in part."""

MAX_FILE_SHARE = 1 / 3
"""Largest share of the room for one file that was only read."""

OPENING = "<files_now>\nFiles that the work stands on, as they were on disk "
CLOSING = "</files_now>"
MAX_EDIT_LINES = 200
"""Lines of an edit that are compared to find it in its file."""

OPENING_LINES = 20
"""Lines that are compared to find the beginning of a file that was written whole: a single line often occurs again further on."""

_PARTS = frozenset({"start_line", "end_line", "offset", "limit", "insert_line", "line", "view_range"})
"""Arguments by which a call names a part of a file."""

_CHANGED = " (changed by somebody else since you last saw it)"
_MARK = "\n[… {lines}{tokens} tokens left out …]\n"


class EditPlace(msgspec.Struct, frozen=True):
    """The lines that an edit put into a file, stripped and without empty ones, and the index `at` of the line where they begin
    now."""

    at: int
    lines: tuple[str, ...]


class CurrentFile(msgspec.Struct, frozen=True):
    """A text file as it is now.

    `path` is the path to show, `written` are the paths that calls used for it. `text` has its numbered lines, `tokens` is our
    count of them. `changed`: somebody else changed it since the agent last saw it. `edited` has the places of the last edits, the
    newest first, and is empty where the file was only read. `names` are the words in it that may be identifiers."""

    path: str
    written: tuple[str, ...]
    text: str
    changed: bool = False
    tokens: int = 0
    edited: tuple[EditPlace, ...] = ()
    names: frozenset[str] = frozenset()


def touched(groups: Sequence[Group], most: int = MAX_FILES) -> tuple[str, ...]:
    """The paths, as calls named them, of the files that the work depends on, at most `most`: first the files changed in the
    newest turn, then those changed before, each ranked by how much and how recently they were edited; then those that were read,
    the last read first."""
    changed: list[defaultdict[str, float]] = [defaultdict(float), defaultdict(float)]
    read: dict[str, None] = {}
    now = groups[-1].turn if groups else 0
    edits = 0
    for group in reversed(groups):
        for path in _files_of(group, {"change"}):
            changed[group.turn != now][path] += 0.5 ** (edits / EDIT_HALF_LIFE)
            edits += 1
        for path in _files_of(group, {"read"}):
            read.setdefault(path)
        if len(read) >= most and len(changed[0]) + len(changed[1]) >= most and edits >= 8 * EDIT_HALF_LIFE:
            break
    ranks = (*(sorted(some, key=lambda path: -some[path]) for some in changed), read)
    return tuple(dict.fromkeys(path for rank in ranks for path in rank))[:most]


def worked_on(groups: Sequence[Group]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """For each path, as calls named it, the lines that each of the last edits put into the file, the newest first; for a file
    that was only written whole, its first lines."""
    edited: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    written: dict[str, tuple[tuple[str, ...], ...]] = {}
    for group in reversed(groups):
        for call in _calls_of(group, {"change"}):
            path = use_of(call).target
            for old, new in exchanges(call):
                put = tuple(line.strip() for line in new.splitlines() if line.strip())
                if put and old is None:
                    written.setdefault(path, (put[:OPENING_LINES],))
                elif put and len(edited[path]) < MAX_EDITS:
                    edited[path].append(put[:MAX_EDIT_LINES])
    return written | {path: tuple(edits) for path, edits in edited.items() if edits}


def not_in_view(files: Sequence[CurrentFile], ledger: Ledger, fold: Sequence[str]) -> tuple[CurrentFile, ...]:
    """The files whose present text is nowhere in view once the groups `fold` are folded: no call that read or wrote the whole
    file stays, or somebody else changed it. Edits near those that staying calls show are dropped from `edited`; a file that has
    no other edits comes after those that have some."""
    if not files:
        return ()
    gone = frozenset(fold)
    whole = [e.group for e in ledger.live() if e.group and e.kind is None and gone.isdisjoint(e.covers)]
    told = {use_of(call).target for group in whole for call in _calls_of(group, {"read", "change"}) if _is_of_all(call)}
    seen = worked_on(whole)
    first: list[CurrentFile] = []
    later: list[CurrentFile] = []
    for file in files:
        if not (file.changed or told.isdisjoint(file.written)):
            continue
        shown = {lines for path in file.written for lines in seen.get(path, ())}
        places = [edit for edit in file.edited if edit.lines in shown]
        left = tuple(edit for edit in file.edited if not any(_are_near(edit, place) for place in places))
        if left or not file.edited:
            first.append(msgspec.structs.replace(file, edited=left))
        else:
            later.append(file)
    edited = sum(bool(file.edited) for file in first)
    return (*first[:edited], *later, *first[edited:])


def _is_of_all(call: ToolCall) -> bool:
    """True when a call read or wrote a whole file."""
    fields = fields_of(call.arguments) or {}
    if use_of(call).kind == "read":
        return not any(fields.get(name) for name in _PARTS)
    return [old for old, _ in exchanges(call)] == [None] and _PARTS.isdisjoint(fields)


def newest(ledger: Ledger, fold: Sequence[str]) -> str:
    """A phrase that names the last call, answer or message; empty where it is among the groups `fold`."""
    kinds = {"user", "reply", "round"}
    last = next((e for e in reversed(ledger.live()) if e.group and e.kind is None and e.group.kind in kinds), None)
    if last is None or last.group is None or any(name in fold for name in last.covers):
        return ""
    first = last.group.first
    if first.calls:
        return f"the call {first.calls[-1].name} {first_line(use_of(first.calls[-1]).target, 60)}".rstrip()
    return f"the {'answer' if last.group.kind == 'reply' else 'message'} «{first_line(spoken(first), 60)}»"


def working_set(
    files: Sequence[CurrentFile], max_tokens: int, count: Count, after: str = ""
) -> tuple[str, tuple[str, ...]]:
    """The files as one text in at most `max_tokens`, and the paths of those that fit; empty where none does.

    `after` names what was done last when the files were read, where that stays in view (see `newest`), so that the reader does
    not take the edits up to there for later ones.

    Files are served in their order. A large file that was edited is shown around its last edits, in an equal share with the
    others. A file that was only read is shown whole or not at all: shown in part it would be read again anyway. The room left
    over is shared among the files that were cut.
    """
    when = f"after {after} below; what was changed up to there is in them" if after else "when this was written"
    opening = f"{OPENING}{when}. No call need read them again, unless one further on changed them."
    room = max_tokens - count(opening) - count(CLOSING) - 4
    most = int(room * MAX_FILE_SHARE)
    titles = {f.path: f"{f.path}{_CHANGED if f.changed else ''}:\n" for f in files}
    given: dict[str, int] = {}
    edited = sum(bool(file.edited) for file in files) + (
        not all(file.edited for file in files)
    )  # one share is for the files that were only read
    for file in files:
        title = count(titles[file.path]) + 2
        least = min(LEAST, file.tokens) if file.edited else file.tokens
        share = max(2 * LEAST, room // max(1, edited)) - title if file.edited else most
        edited -= bool(file.edited)
        left = min(EACH, file.tokens, share, room - title)
        if left >= max(1, least):
            given[file.path] = left
            room -= left + title
    cut = [file for file in files if file.path in given and given[file.path] < min(EACH, file.tokens)]
    for place, file in enumerate(cut):
        more = min(EACH, file.tokens, given[file.path] + max(0, room) // (len(cut) - place))
        room -= more - given[file.path]
        given[file.path] = more
    parts = [titles[f.path] + _fitting_part(f, given[f.path], count) for f in files if f.path in given]
    return ("\n\n".join([opening, *parts, CLOSING]), tuple(given)) if given else ("", ())


def _fitting_part(file: CurrentFile, max_tokens: int, count: Count) -> str:
    """The part of a file that fits: around its last edits, or head and tail where it has none."""
    place = _edited_line(file)
    if place < 0:
        return clip(file.text, max_tokens, count, _MARK)
    return clip_around(file.text, place, max_tokens, count, _MARK)


def _edited_line(file: CurrentFile) -> int:
    """The character offset of the newest edit in the part of the file with most of the recent work; -1 where there are no
    edits."""
    weights = [min(len(e.lines), MAX_EDIT_WEIGHT) * 0.5 ** (age / PLACE_HALF_LIFE) for age, e in enumerate(file.edited)]
    if not weights:
        return -1
    near = [
        sum(weight for weight, other in zip(weights, file.edited, strict=True) if _are_near(edit, other))
        for edit in file.edited
    ]
    return sum(map(len, file.text.splitlines(keepends=True)[: file.edited[near.index(max(near))].at]))


def _are_near(one: EditPlace, other: EditPlace) -> bool:
    """True when at most `NEAR_LINES` lines lie between the two edits."""
    return max(one.at - other.at - len(other.lines), other.at - one.at - len(one.lines)) <= NEAR_LINES


def edits_in(text: str, edits: Sequence[tuple[str, ...]]) -> tuple[EditPlace, ...]:
    """The places of these edits in a numbered text: where most of an edit's lines follow one another. Edits of which no line is
    left are left out."""
    lines = ((place, line.partition("\t")[2].strip()) for place, line in enumerate(text.splitlines()))
    words = [(place, line) for place, line in lines if line]
    found: list[EditPlace] = []
    for edit in edits:
        order = {line: place for place, line in reversed(list(enumerate(edit)))}
        votes: Counter[int] = Counter()
        for number, (_, line) in enumerate(words):
            if line in order:
                votes[number - order[line]] += 1 + len(line)
        if votes:
            best = max(votes, key=lambda place: (votes[place], place))
            found.append(EditPlace(words[min(max(0, best), len(words) - 1)][0], edit))
    return tuple(found)


def _files_of(group: Group, kinds: set[str]) -> Iterator[str]:
    """The files of the successful calls of these kinds, the last call first."""
    uses = map(use_of, _calls_of(group, kinds))
    return (use.target for use in uses if use.kind != "read" or not use.target.startswith(SAVED))


def _calls_of(group: Group, kinds: set[str]) -> Iterator[ToolCall]:
    """The successful calls of these kinds in a round, the last first."""
    if group.kind != "round":
        return
    results = {m.call_id: m for m in group.messages if m.role == "tool"}
    for call in reversed(group.first.calls):
        use, result = use_of(call), results.get(call.id)
        if use.kind in kinds and result is not None and not failed(result):
            yield call
