"""Code with what belongs to its lines: diffs, coloured by their signs and numbered where the numbers are known; files that were
read, in the colours of their language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from textual.content import Content

from ctxchat.presentation.diffs import DiffLine, LineKind, lines_in
from ctxchat.presentation.file_reads import ReadLine, read_lines
from ctxchat.presentation.text import clean, one_line
from ctxchat.tui.widgets.lines import MIN_TEXT_CELLS, DrawnLine, code_lines

if TYPE_CHECKING:
    from textual.highlight import HighlightTheme

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


MAX_HIGHLIGHTED_CHARS = 40_000
"""Characters of code above which it is not highlighted: a tenth of a second is spent on as many."""

MAX_READ_CHARS = 16_000
"""The same for what is shown of a file that was read: several may be unfolded at once."""

HEAD_LINES, TAIL_LINES = 80, 40
"""Lines of a result that are shown."""

MAX_LINE_CHARS = 4_000


def highlighted(code: str, language: str, longest: int = MAX_HIGHLIGHTED_CHARS) -> Content:
    """In the theme's colours, where its language is known and it is not too long."""
    if not language or len(code) > longest:
        return Content(code)
    from textual.highlight import highlight  # heavy, and for code only

    body = code.rstrip("\n")  # an empty line at the end would not come back
    found = highlight(body, language=language.split()[0], theme=_code_theme())
    return found.append(code[len(body) :]) if found.plain == body else Content(code)


@cache
def _code_theme() -> type[HighlightTheme]:
    """Textual's without its red and amber, which mean trouble: neither `import` is any, nor a sign that no lexer knows, as is
    the `…` of an excerpt."""
    from pygments.token import Token
    from textual.highlight import HighlightTheme

    class CodeTheme(HighlightTheme):
        STYLES = {
            token: style
            for token, style in HighlightTheme.STYLES.items()
            if token is Token.Generic.Error or not {"$text-error", "$text-warning"} & set(style.split())
        } | {
            Token.Literal.Number: "$text-secondary",
            Token.Name.Function: "bold $text-primary",
            Token.Name.Class: "bold $text-primary",
        }

    return CodeTheme


@lru_cache(256)
def language_of(name: str) -> str:
    """What a file is written in, by its name; empty where that does not tell."""
    from pygments.lexers import find_lexer_class_for_filename  # heavy, and for code only

    lexer = find_lexer_class_for_filename(name)
    return lexer.aliases[0] if lexer and lexer.aliases else ""


def file_lines(output: str, path: str, width: int) -> list[DrawnLine]:
    """What a call read of a file, numbered as the file is where the call told it, in the colours of its language; its beginning
    and its end where it is long. Words about the file stand beside it, muted."""
    lines = read_lines(output)
    if (left_out := len(lines) - HEAD_LINES - TAIL_LINES) > 0:
        lines[HEAD_LINES:-TAIL_LINES] = [ReadLine(f"… {left_out:,} more lines …", about=True)]
    texts = [clean(line.text[:MAX_LINE_CHARS]).replace("\n", " ") for line in lines]
    code = "\n".join("" if line.about else text for line, text in zip(lines, texts, strict=True))
    language = language_of(one_line(path, 4_000).replace("\\", "/").rsplit("/", 1)[-1][-100:])
    coloured = highlighted(code, language, MAX_READ_CHARS).split("\n", allow_blank=True)
    words = [
        Content.styled(text, "$text-muted") if line.about else found
        for line, text, found in zip(lines, texts, coloured, strict=True)
    ]
    return _numbered(words, [line.number for line in lines], width)


def diff_lines(diff: str, width: int, most: int = MAX_HEAD_LINES + MAX_TAIL_LINES) -> list[DrawnLine]:
    """At most so many lines of a unified diff in `width` cells, with the numbers they have in the file, which whoever shows it
    has named; of more, the beginning and the end."""
    lines = list(lines_in(clean(diff)))
    if len(lines) > 2 and (lines[0].text[:4], lines[1].text[:4]) == ("--- ", "+++ ") and lines[2].kind == "hunk":
        del lines[:2]
    return _drawn(_excerpt(lines, most), width)


def diff_words(diff: str) -> Content:
    """The same as one text, for what breaks its lines itself."""
    return Content("\n").join([line.gutter + line.words for line in diff_lines(diff, UNBOUNDED)])


def coloured_code(diff: str, width: int) -> list[DrawnLine]:
    """A diff that somebody wrote, as it is: its numbers are anybody's guess."""
    return _drawn([DiffLine(line.kind, line.text) for line in lines_in(diff)], width)


def _excerpt(lines: list[DiffLine], most: int) -> list[DiffLine]:
    left_out = len(lines) - most
    if left_out <= 0:
        return lines
    note = DiffLine("note", f"… {left_out:,} more lines …")
    return [*lines[: most - MAX_TAIL_LINES], note, *lines[-MAX_TAIL_LINES:]]


def _drawn(diff: Sequence[DiffLine], width: int) -> list[DrawnLine]:
    words = [Content.styled(line.text, DIFF_STYLES[line.kind][0]) for line in diff]
    lines = _numbered(words, [line.number for line in diff], width)
    for said, line in zip(diff, lines, strict=True):
        line.fill = ground = DIFF_STYLES[said.kind][1]
        line.words, line.gutter = line.words.stylize_before(ground), line.gutter.stylize_before(ground)
    return lines


def _numbered(words: Sequence[Content], numbers: Sequence[int], width: int) -> list[DrawnLine]:
    """Lines behind their numbers, where there are any and there is room."""
    highest = max(numbers, default=0)
    column = len(str(highest)) + 1 if highest and width >= MIN_TEXT_CELLS + 8 else 0
    lines = code_lines(Content("\n").join(words), width - column)
    for number, line in zip(numbers, lines, strict=True):
        line.gutter = Content.styled(f"{number or '':>{column - 1}} " if column else "", "$text-muted")
    return lines
