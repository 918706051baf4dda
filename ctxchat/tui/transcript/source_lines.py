"""Code with what belongs to its lines: diffs, coloured by their signs and numbered where the numbers are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.content import Content

from ctxchat.presentation.diffs import DiffLine, LineKind, lines_in
from ctxchat.presentation.text import clean
from ctxchat.tui.widgets.lines import MIN_TEXT_CELLS, DrawnLine, code_lines

DIFF_STYLES: Mapping[LineKind, tuple[str, str]] = {
    "add": ("$text-success", "on $success-muted 40%"),
    "remove": ("$text-error", "on $error-muted 40%"),
    "same": ("", ""),
    "hunk": ("$text-accent", ""),
    "note": ("$text-muted", ""),
}
"""How the words of a line look, and the ground they stand on. Its sign is kept, so that colour is not the only one."""

UNBOUNDED = 1_000_000
"""Cells that no line fills."""

MAX_HEAD_LINES, MAX_TAIL_LINES = 160, 40
"""Lines of a diff that are shown; what is between them is counted."""


def diff_lines(diff: str, width: int) -> list[DrawnLine]:
    """A unified diff in `width` cells, with the numbers its lines have in the file, which whoever shows it has named."""
    lines = list(lines_in(clean(diff)))
    if len(lines) > 2 and (lines[0].text[:4], lines[1].text[:4]) == ("--- ", "+++ ") and lines[2].kind == "hunk":
        del lines[:2]
    return _drawn(_excerpt(lines), width)


def diff_words(diff: str) -> Content:
    """The same as one text, for what breaks its lines itself."""
    return Content("\n").join([line.gutter + line.words for line in diff_lines(diff, UNBOUNDED)])


def coloured_code(diff: str, width: int) -> list[DrawnLine]:
    """A diff that somebody wrote, as it is: its numbers are anybody's guess."""
    return _drawn([DiffLine(line.kind, line.text) for line in lines_in(diff)], width)


def _excerpt(lines: list[DiffLine]) -> list[DiffLine]:
    left_out = len(lines) - MAX_HEAD_LINES - MAX_TAIL_LINES
    if left_out <= 0:
        return lines
    note = DiffLine("note", f"… {left_out:,} more lines …")
    return [*lines[:MAX_HEAD_LINES], note, *lines[-MAX_TAIL_LINES:]]


def _drawn(diff: Sequence[DiffLine], width: int) -> list[DrawnLine]:
    highest = max((line.number for line in diff), default=0)
    column = len(str(highest)) + 1 if highest and width >= MIN_TEXT_CELLS + 8 else 0
    code = Content("\n").join([Content.styled(line.text, DIFF_STYLES[line.kind][0]) for line in diff])
    lines = code_lines(code, width - column)
    for said, line in zip(diff, lines, strict=True):
        ground = DIFF_STYLES[said.kind][1]
        number = f"{said.number or '':>{column - 1}} " if column else ""
        line.words, line.fill = line.words.stylize_before(ground), ground
        line.gutter = Content.styled(number, "$text-muted").stylize_before(ground)
    return lines
