"""Draws diffs and files as lines of code: diffs coloured by their signs, files in the colours of their language, both with line
numbers where these are known."""

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
"""The style of a line's text, and of its background. The line keeps its `+` or `-`, so that colour is not the only sign."""

UNBOUNDED = 1_000_000
"""A width in cells that no line reaches: nothing is cut."""

MAX_HEAD_LINES, MAX_TAIL_LINES = 160, 40
"""Lines at the beginning and the end of a diff that are shown; a line says how many are between them."""

MAX_HIGHLIGHTED_CHARS = 40_000
"""Characters of code above which it is not highlighted: so many take a tenth of a second."""

MAX_READ_CHARS = 16_000
"""The same limit for a file that was read; lower, as several such files may be unfolded at once."""

HEAD_LINES, TAIL_LINES = 80, 40
"""Lines at the beginning and the end of a result that are shown."""

MAX_LINE_CHARS = 4_000
"""Characters of one line of a file that are shown."""


def highlighted(code: str, language: str, longest: int = MAX_HIGHLIGHTED_CHARS) -> Content:
    """The code in the theme's colours; plain if `language` (as Pygments names it) is empty or the code has more than `longest`
    characters."""
    if not language or len(code) > longest:
        return Content(code)
    from textual.highlight import highlight  # heavy, and for code only

    body = code.rstrip("\n")  # Pygments drops empty lines at the end
    coloured = highlight(body, language=language.split()[0], theme=_code_theme())
    return coloured.append(code[len(body) :]) if coloured.plain == body else Content(code)


@cache
def _code_theme() -> type[HighlightTheme]:
    """Textual's theme without red and amber, which here mean trouble. Textual uses them for `import` and for characters that the
    lexer does not know, such as the `…` of an excerpt."""
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
    """The language of a file by its name, as Pygments calls it; empty if unknown."""
    from pygments.lexers import find_lexer_class_for_filename  # heavy, and for code only

    lexer = find_lexer_class_for_filename(name)
    return lexer.aliases[0] if lexer and lexer.aliases else ""


def file_lines(output: str, path: str, width: int) -> list[DrawnLine]:
    """The `output` of a call that read a file, as lines of code with the line numbers that the output has. Long output is cut in
    the middle; lines about the file, which are not part of it, are muted."""
    lines = read_lines(output)
    if (left_out := len(lines) - HEAD_LINES - TAIL_LINES) > 0:
        lines[HEAD_LINES:-TAIL_LINES] = [ReadLine(f"… {left_out:,} more lines …", about=True)]
    texts = [clean(line.text[:MAX_LINE_CHARS]).replace("\n", " ") for line in lines]
    code = "\n".join("" if line.about else text for line, text in zip(lines, texts, strict=True))
    language = language_of(one_line(path, 4_000).replace("\\", "/").rsplit("/", 1)[-1][-100:])
    coloured = highlighted(code, language, MAX_READ_CHARS).split("\n", allow_blank=True)
    words = [
        Content.styled(text, "$text-muted") if line.about else code_line
        for line, text, code_line in zip(lines, texts, coloured, strict=True)
    ]
    return _numbered(words, [line.number for line in lines], width)


def diff_lines(diff: str, width: int, most: int = MAX_HEAD_LINES + MAX_TAIL_LINES) -> list[DrawnLine]:
    """A unified diff as lines of `width` cells, with the line numbers of the file; of more than `most` lines the beginning and
    the end. The two lines that name the file are left out, as the caller has named it."""
    lines = list(lines_in(clean(diff)))
    if len(lines) > 2 and (lines[0].text[:4], lines[1].text[:4]) == ("--- ", "+++ ") and lines[2].kind == "hunk":
        del lines[:2]
    return _drawn(_excerpt(lines, most), width)


def diff_words(diff: str) -> Content:
    """A unified diff as one text, as `diff_lines` draws it, for widgets that break lines themselves."""
    return Content("\n").join([line.gutter + line.words for line in diff_lines(diff, UNBOUNDED)])


def coloured_code(diff: str, width: int) -> list[DrawnLine]:
    """A diff that stands in a message, whole and without line numbers: those in its hunks may be made up."""
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
    for source, line in zip(diff, lines, strict=True):
        line.fill = background = DIFF_STYLES[source.kind][1]
        line.words, line.gutter = line.words.stylize_before(background), line.gutter.stylize_before(background)
    return lines


def _numbered(words: Sequence[Content], numbers: Sequence[int], width: int) -> list[DrawnLine]:
    """Lines of code with their numbers in the gutter, if any number is known (0: unknown) and there is room."""
    highest = max(numbers, default=0)
    column = len(str(highest)) + 1 if highest and width >= MIN_TEXT_CELLS + 8 else 0
    lines = code_lines(Content("\n").join(words), width - column)
    for number, line in zip(numbers, lines, strict=True):
        line.gutter = Content.styled(f"{number or '':>{column - 1}} " if column else "", "$text-muted")
    return lines
