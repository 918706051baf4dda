"""The working set: files that the work stands on, as they are on disk now, shown again beside a summary. Which of them, and how
much of each; reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ctxchat.core.clip import around, clip
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, ToolCall, spoken
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import SAVED, exchanges, failed, first_line, use_of

MOST = 12
"""Files that are looked at, those touched last."""

EACH, LEAST = 5_000, 150
"""Tokens of one file at most, and what has to be left for one that is shown in part."""

SHARE = 1 / 3
"""Of the room, what one file may take before the others had theirs."""

OPENING = "<files_now>\nFiles that the work stands on, as they were on disk "
CLOSING = "</files_now>"
_CHANGED = " (changed by somebody else since you last saw it)"
_MARK = "\n[… {lines}{tokens} tokens left out …]\n"


class CurrentFile(msgspec.Struct, frozen=True):
    """A text file as it is now. `path` as it is shown, `written` as calls named it; `text` are its numbered lines, `tokens` our
    count of them; `changed`: by somebody else since the agent last saw it; `near`: a line of what a call put there last."""

    path: str
    written: tuple[str, ...]
    text: str
    changed: bool = False
    tokens: int = 0
    near: str = ""


def touched(groups: Sequence[Group]) -> tuple[str, ...]:
    """Paths, as calls named them, of the files that were read or changed, the last ones first."""
    paths: dict[str, None] = {}
    for group in reversed(groups):
        for path in _files_of(group, {"read", "change"}):
            paths.setdefault(path)
        if len(paths) >= MOST:
            break
    return tuple(paths)[:MOST]


def worked_on(groups: Sequence[Group]) -> dict[str, str]:
    """By path, as calls named it, a line of what an edit put into the file last."""
    lines: dict[str, str] = {}
    for group in reversed(groups):
        for call in _calls_of(group, {"change"}):
            put = [line.strip() for old, new in exchanges(call) if old is not None for line in new.splitlines()]
            if put:
                lines.setdefault(use_of(call).target, max(put, key=len))
    return lines


def not_in_view(files: Sequence[CurrentFile], ledger: Ledger, fold: Sequence[str]) -> tuple[CurrentFile, ...]:
    """Those that nothing tells as they are once these groups are folded: no call that read them stays, or they have changed."""
    if not files:
        return ()
    gone = frozenset(fold)
    whole = (e.group for e in ledger.live() if e.group and e.kind is None and gone.isdisjoint(e.covers))
    told = {path for group in whole for path in _files_of(group, {"read"})}
    return tuple(f for f in files if f.changed or told.isdisjoint(f.written))


def newest(ledger: Ledger, fold: Sequence[str]) -> str:
    """What was done or said last, as words that name it; empty where it goes with these groups."""
    kinds = {"user", "reply", "round"}
    last = next((e for e in reversed(ledger.live()) if e.group and e.kind is None and e.group.kind in kinds), None)
    if last is None or last.group is None or not frozenset(fold).isdisjoint(last.covers):
        return ""
    first = last.group.first
    if first.calls:
        return f"the call {first.calls[-1].name} {first_line(use_of(first.calls[-1]).target, 60)}".rstrip()
    return f"the {'answer' if last.group.kind == 'reply' else 'message'} «{first_line(spoken(first), 60)}»"


def working_set(
    files: Sequence[CurrentFile], max_tokens: int, count: Count, after: str = ""
) -> tuple[str, tuple[str, ...]]:
    """These files as one text in at most `max_tokens`, with their paths; empty where nothing fits. `after`: what was done last
    when they were looked at, where it stays in view: a call that shows how a file came to be so is not to be reckoned again.

    The first ones go first, but one that would take more than a `SHARE` waits: a large file shown in part is read again all the
    same, and would keep out several that fit whole. What is left is shared by the waiting ones that were worked on, each with the
    place; then by the others.
    """
    when = f"after {after} below; what was changed up to there is in them" if after else "when this was written"
    opening = f"{OPENING}{when}. No call need read them again, unless one further on changed them."
    room = max_tokens - count(opening) - count(CLOSING) - 4
    most = int(room * SHARE)
    titles = {f.path: f"{f.path}{_CHANGED if f.changed else ''}:\n" for f in files}
    parts: dict[str, str] = {}

    def add(file: CurrentFile, tokens: int, least: int) -> None:
        nonlocal room
        left = min(EACH, tokens, room) - count(titles[file.path]) - 2
        if left >= min(least, file.tokens):
            parts[file.path] = titles[file.path] + _part(file, left, count)
            room -= count(parts[file.path]) + 2

    for file in files:
        if file.tokens <= most:
            add(file, room, file.tokens)
    waiting = [f for f in files if f.path not in parts]
    worked = [f for f in waiting if f.near]
    for place, file in enumerate(worked):
        add(file, max(2 * LEAST, room // (len(worked) - place)), LEAST)
    for file in waiting:
        if not file.near:
            add(file, room, LEAST)
    shown = [file.path for file in files if file.path in parts]
    return ("\n\n".join([opening, *(parts[path] for path in shown), CLOSING]), tuple(shown)) if shown else ("", ())


def _part(file: CurrentFile, max_tokens: int, count: Count) -> str:
    """What fits of a file: the place that was worked on, or head and tail where nothing tells of one."""
    place = file.text.find(file.near) if file.near else -1
    if place < 0:
        return clip(file.text, max_tokens, count, _MARK)
    return around(file.text, place, max_tokens, count, _MARK)


def _files_of(group: Group, kinds: set[str]) -> Iterator[str]:
    """The files that calls of these kinds were about and that came to something, the last first."""
    uses = map(use_of, _calls_of(group, kinds))
    return (use.target for use in uses if use.kind != "read" or not use.target.startswith(SAVED))


def _calls_of(group: Group, kinds: set[str]) -> Iterator[ToolCall]:
    if group.kind != "round":
        return
    results = {m.call_id: m for m in group.messages if m.role == "tool"}
    for call in reversed(group.first.calls):
        use, result = use_of(call), results.get(call.id)
        if use.kind in kinds and result is not None and not failed(result):
            yield call
