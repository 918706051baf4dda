"""Markdown as lines. A text that grows is parsed from its last open block on; what stands before that is drawn once.

Nothing in it is live: links are targets, which whoever shows the lines may follow or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from textual.content import Content, Span
from textual.style import Style

from ctxchat.presentation.text import clean, one_line
from ctxchat.tui.transcript.source_lines import coloured_code, highlighted
from ctxchat.tui.widgets.lines import (
    HARD,
    MAX_PROSE_CELLS,
    MIN_TEXT_CELLS,
    NOTHING,
    DrawnLine,
    code_lines,
    hung,
    wrapped,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode

RULE, CODE, MUTED = "$rule", "on $surface", "$text-muted"

STYLES = {"em": "italic", "strong": "bold", "s": "strike"}

MAX_OPEN_FENCE_LINES = 60
"""Lines of code in a block that is still open from which on its first are drawn once and for all: a block is highlighted from its
beginning, so that a growing one would take longer with each line."""

DIFF_LANGUAGES = ("diff", "patch")

PLACE = re.compile(r"(?<![\w/.:@-])(?:~?/)?(?:[\w.@+-]+/)*[\w.+-]*\.[A-Za-z]\w{0,7}:\d{1,7}\b")
"""A line of a file, `src/app.py:10`, which a click opens."""

BULLETS, LISTS = "•◦▪", ("bullet_list", "ordered_list")


@cache
def parser() -> MarkdownIt:
    """The parser for GitHub's Markdown, except that only what begins with `http` is a link: `README.md` is a file and not a site
    in Moldova."""
    from markdown_it import MarkdownIt  # heavy, and not needed for the first frame

    made = MarkdownIt("gfm-like")
    if made.linkify is not None:
        made.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    return made


class GrowingMarkdown:
    """A text that arrives in pieces, in lines of `width` cells, `indent` among them. Foreign: it is cleaned here."""

    def __init__(self, width: int, indent: Content = NOTHING) -> None:
        self.width, self._indent = width, indent
        self._room = max(1, width - indent.cell_length)
        self._done: list[DrawnLine] = []
        self._last = ""  # the kind of what was done last
        self._open = ""  # cleaned, from the beginning of what is not done
        self._raw = ""  # the line that has no end yet
        self._inside = False  # what is open is a code block whose first lines are done
        self._code, self._code_head = "", DrawnLine(NOTHING)  # those, and the line it begins with
        self._env: dict[str, Any] = {}
        self.patched = False  # drawn as a whole it may look different

    def append_text(self, text: str) -> None:
        """Add text."""
        raw = self._raw + text
        end = raw.rfind("\n") + 1
        self._open += clean(raw[:end]) if end else ""
        self._raw = raw[end:]

    def lines(self) -> list[DrawnLine]:
        """All lines so far. Lines of finished parts are the same objects as before."""
        source = self._open + clean(self._raw)
        pieces = list(_pieces(parser().parse(source, self._env)))
        self.patched = self.patched or bool(self._env.get("references"))
        for kind, _, nodes in pieces[:-1]:
            self._add(self._done, kind, nodes)
            self._last, self._inside = kind, False
        if not pieces:
            return [*self._done]
        kind, start, nodes = pieces[-1]
        if start:
            self._open = "".join(self._open.splitlines(keepends=True)[start:])
        if kind == "fence" and nodes[0].content.count("\n") >= 2 * MAX_OPEN_FENCE_LINES:
            nodes = self._cut_fence(nodes[0])
        found = [*self._done]
        self._add(found, kind, nodes)
        return found

    def _cut_fence(self, node: SyntaxTreeNode) -> Sequence[SyntaxTreeNode]:
        """The first lines of an open code block are done."""
        marker, *code = self._open.splitlines(keepends=True)
        if len(code) <= MAX_OPEN_FENCE_LINES:
            return (node,)
        language = one_line(node.info, 30)
        self._gap(self._done, "fence")
        done = "".join(code[:MAX_OPEN_FENCE_LINES])
        lines = self._hung(_code(done, language, self._room, head=not self._inside))
        if self._inside:
            lines[0].source, self._code = "", self._code + done
        else:
            self._code_head, self._code = lines[0], done
        self._done += lines
        self._last, self._inside, self.patched = "fence", True, True
        self._open = marker + "".join(code[MAX_OPEN_FENCE_LINES:])
        (_, _, nodes) = next(iter(_pieces(parser().parse(self._open + clean(self._raw), self._env))))
        return nodes

    def _add(self, lines: list[DrawnLine], kind: str, nodes: Sequence[SyntaxTreeNode]) -> None:
        self._gap(lines, kind)
        if self._inside and kind == "fence":
            found = _code(nodes[0].content, one_line(nodes[0].info, 30), self._room, head=False)
            found[0].source, self._code_head.source = "", self._code + found[0].source
        else:
            found = _blocks(nodes, self._room)
        lines += self._hung(found)

    def _hung(self, lines: list[DrawnLine]) -> list[DrawnLine]:
        return hung(lines, self._indent, self._indent)

    def _gap(self, lines: list[DrawnLine], kind: str) -> None:
        """An empty line between blocks; none between the parts of one."""
        if lines and not self._inside and not (kind == self._last and kind in LISTS):
            lines.append(DrawnLine(Content("")))


def _pieces(tokens: Sequence[Token]) -> Iterator[tuple[str, int, Sequence[SyntaxTreeNode]]]:
    """The parts of a text that can be drawn separately, top to bottom: the kind, the first line, and the part's tokens. Of a list
    that is each item."""
    from markdown_it.tree import SyntaxTreeNode

    for node in SyntaxTreeNode(tokens).children:
        if node.type in LISTS:
            for item in node.children:
                yield node.type, item.map[0] if item.map else 0, (item,)
        else:
            yield node.type, node.map[0] if node.map else 0, (node,)


def _blocks(nodes: Sequence[SyntaxTreeNode], width: int, depth: int = 0, *, tight: bool = False) -> list[DrawnLine]:
    lines: list[DrawnLine] = []
    for node in nodes:
        if lines and not tight:
            lines.append(DrawnLine(Content("")))
        lines += _block(node, max(1, width), depth)
    return lines


def _block(node: SyntaxTreeNode, width: int, depth: int) -> list[DrawnLine]:
    match node.type:
        case "heading":
            style = "bold $text-accent" if node.tag in ("h1", "h2") else "bold"
            return _prose(_inline(node).stylize_before(style), width)
        case "bullet_list" | "ordered_list":
            return [line for item in node.children for line in _block(item, width, depth)]
        case "list_item":
            return _item(node, width, depth)
        case "blockquote":
            if width < MIN_TEXT_CELLS:
                return _blocks(node.children, width, depth)
            lines = _blocks(node.children, width - 2, depth)
            bar = Content.styled("▌ ", RULE)
            for line in lines:
                line.words = line.words.stylize_before(MUTED)
            return hung(lines, bar, bar)
        case "fence" | "code_block":
            return _code(node.content, one_line(node.info, 30), width)
        case "table":
            return _table(node, width)
        case "hr":
            return [DrawnLine(Content(""), Content.styled("─" * width, RULE))]
        case "html_block":
            return _prose(Content.styled(node.content.rstrip("\n"), MUTED), width)
        case _:
            return _prose(_inline(node), width)


def _prose(words: Content, width: int) -> list[DrawnLine]:
    return wrapped(words, min(width, MAX_PROSE_CELLS))


def _item(node: SyntaxTreeNode, width: int, depth: int) -> list[DrawnLine]:
    """A point of a list under its sign; a list in it follows without a gap."""
    parent, info = node.parent, node.info
    sign = f"{info}." if parent and parent.type == "ordered_list" else BULLETS[min(depth, len(BULLETS) - 1)]
    sign = f"{sign} " if width >= MIN_TEXT_CELLS else ""
    lines = _blocks(
        node.children, width - len(sign), depth + 1, tight=all(c.type != "paragraph" for c in node.children[1:])
    )
    lines = hung(lines or [DrawnLine(Content(""))], Content.styled(sign, "$text-accent"))
    copied = f"{info}. " if parent and parent.type == "ordered_list" else "- "
    for place, line in enumerate(lines):
        if not place:
            line.sign = copied + line.sign
        elif lines[place - 1].glue == HARD and line.words:
            line.sign = " " * len(copied) + line.sign
    return lines


def _code(code: str, language: str, width: int, *, head: bool = True) -> list[DrawnLine]:
    """Code on a ground of its own, its language named above it. A line of it stays one, however long."""
    code = code.removesuffix("\n")
    pad = 1 if width >= MIN_TEXT_CELLS else 0
    if language in DIFF_LANGUAGES:
        lines = coloured_code(code, width - pad)
    else:
        lines = code_lines(highlighted(code, language), width - pad)
    if head and language:
        named = Content.styled(language, MUTED).truncate(width - 2 * pad, ellipsis=True)
        lines.insert(0, DrawnLine(Content(""), named))
    for line in lines:
        if not line.fill:
            line.words, line.fill = line.words.stylize_before(CODE), CODE
            line.gutter = line.gutter.stylize_before(CODE)
        line.gutter = Content.styled(" " * pad, line.fill).append(line.gutter)
    lines[0].source = code
    return lines


def _table(node: SyntaxTreeNode, width: int) -> list[DrawnLine]:
    """Columns as wide as what is in them, narrower in turn where all of it has no room."""
    rows = [[_inline(cell) for cell in row.children] for part in node.children for row in part.children]
    if not rows:
        return []
    rows[0] = [cell.stylize_before("bold") for cell in rows[0]]
    columns = len(rows[0])
    gap = "  " if width >= 4 * columns else " "
    room = width - len(gap) * (columns - 1)
    widths = _shared([max(row[n].cell_length for row in rows if n < len(row)) for n in range(columns)], room)
    right = [str(cell.attrs.get("style", "")).endswith("right") for cell in node.walk() if cell.type == "th"]
    lines: list[DrawnLine] = []
    for place, row in enumerate(rows):
        cells = [[line.words for line in wrapped(cell, room)] for cell, room in zip(row, widths, strict=False)]
        for n in range(max(map(len, cells))):
            parts = [cell[n] if n < len(cell) else Content("") for cell in cells]
            lines.append(DrawnLine(Content(gap).join(map(_fitted, parts, widths, right)).truncate(width)))
        if not place:
            lines.append(
                DrawnLine(
                    Content(""), Content.styled(gap.replace(" ", "─").join("─" * n for n in widths)[:width], RULE)
                )
            )
    return lines


def _fitted(words: Content, width: int, right: bool) -> Content:
    blank = " " * max(0, width - words.cell_length)
    return Content(blank).append(words) if right else words.append(blank)


def _shared(wished: list[int], room: int) -> list[int]:
    """Cells for each column: what it wishes where there is room, else the narrow ones first and the wide ones alike."""
    widths, left, columns = [0] * len(wished), max(room, len(wished)), len(wished)
    for n in sorted(range(columns), key=wished.__getitem__):
        widths[n] = max(1, min(wished[n], left // columns))
        left, columns = left - widths[n], columns - 1
    return widths


def _inline(node: SyntaxTreeNode) -> Content:
    """The words of a block with their styles."""
    text: list[str] = []
    spans: list[Span] = []
    begun: list[tuple[str | Style, int]] = []
    at = 0

    def say(words: str) -> None:
        nonlocal at
        places = (
            PLACE.finditer(words) if ":" in words and not any(isinstance(style, Style) for style, _ in begun) else ()
        )
        spans.extend(
            Span(at + place.start(), at + place.end(), Style.from_meta({"press": ("place", place[0])}))
            for place in places
        )
        text.append(words)
        at += len(words)

    def link(href: object) -> Style:
        return Style.from_meta({"press": ("link", str(href))})

    for token in _tokens(node):
        match token.type:
            case "text":
                say(re.sub(r"\s+", " ", token.content))
            case "softbreak":
                say(" ")
            case "hardbreak":
                say("\n")
            case "code_inline":
                spans.append(Span(at, at + len(token.content), "$text-accent on $surface"))
                say(token.content)
            case "em_open" | "strong_open" | "s_open":
                begun.append((STYLES[token.type.removesuffix("_open")], at))
            case "link_open":
                begun.append((link(token.attrs.get("href", "")), at))
            case "image":
                words = f"▧ {token.content or token.attrs.get('src', '')}"
                spans += [Span(at, at + len(words), style) for style in ("underline", link(token.attrs.get("src", "")))]
                say(words)
            case name if name.endswith("_close") and begun:
                style, start = begun.pop()
                spans.append(Span(start, at, style))
                if isinstance(style, Style):
                    spans.append(Span(start, at, "underline $text-accent"))
            case _:
                say(token.content)
    return Content("".join(text), spans=spans)


def _tokens(node: SyntaxTreeNode) -> Iterator[Token]:
    for child in node.children:
        if child.type == "inline":
            yield from (child.token and child.token.children) or ()
