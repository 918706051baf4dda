"""Converts HTML to Markdown that a model can read. Tolerates broken pages; knows nothing of where they come from."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_DROPPED = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "head", "select", "button"}
)
"""Elements without words for a reader. The title of the head is taken out before."""

_VOID = frozenset(
    {"br", "hr", "img", "input", "meta", "link", "wbr", "col", "source", "area", "base", "embed", "track", "param"}
)
_BLOCKS = frozenset({
    "p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "figure", "figcaption", "form", "fieldset",
    "address", "details", "summary", "dl", "dt", "dd", "tbody", "thead", "tfoot", "caption", "body", "html", "blockquote",
    "table", "ul", "ol", "pre",
})  # fmt: skip
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}


MAX_ADDRESS = 1000
"""Characters: a page of short links under a long address would become a thousand times as long."""


def to_markdown(html: str, base: str = "") -> str:
    """The page's title and words as Markdown; links made absolute with `base`."""
    converter = _Converter(base)
    converter.feed(html)
    converter.close()
    return converter.text()


class _Converter(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._blocks: list[str] = []
        self._line: list[str] = []
        self._dropped: list[str] = []
        self._title: list[str] = []
        self._in_title = False
        self._lists: list[int] = []  # 0 for bullets, else the next number
        self._lead = ""
        self._quotes = 0
        self._pre = 0
        self._code = 0
        self._links: list[str] = []
        self._row: list[str] | None = None
        self._rows: list[list[str]] = []

    def text(self) -> str:
        """The whole Markdown text."""
        self._flush()
        title = " ".join("".join(self._title).split())
        blocks = [block for block in self._blocks if block.strip()]
        if title and not (blocks and blocks[0].lstrip("# ") == title):
            blocks.insert(0, f"# {title}")
        return _packed(blocks)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and not self._title:
            self._in_title = True
        if self._dropped or tag in _DROPPED:
            if tag not in _VOID:
                self._dropped.append(tag)
            return
        given = {name: value or "" for name, value in attrs}
        if tag in _BLOCKS or tag in {"h1", "h2", "h3", "h4", "h5", "h6", "li"}:
            self._open_block(tag, given)
        elif tag in {"tr", "td", "th"}:
            self._open_cell(tag)
        else:
            self._open_inline(tag, given)

    def _open_block(self, tag: str, given: dict[str, str]) -> None:
        self._flush()
        if tag in {"ul", "ol"}:
            start = given.get("start", "1")
            self._lists.append(0 if tag == "ul" else int(start) if start.isdecimal() and len(start) < 9 else 1)
        elif tag == "li":
            self._lead = self._bullet()
        elif tag == "blockquote":
            self._quotes += 1
        elif tag == "pre":
            self._pre += 1
        elif tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self._lead = "#" * int(tag[1]) + " "
        elif tag == "table":
            self._rows = []

    def _bullet(self) -> str:
        depth = max(0, len(self._lists) - 1)
        number = self._lists[-1] if self._lists else 0
        if number:
            self._lists[-1] += 1
        return "  " * min(depth, 20) + (f"{number}. " if number else "- ")

    def _open_cell(self, tag: str) -> None:
        if tag == "tr":
            self._flush()
            self._row = []
        else:
            self._end_cell()

    def _open_inline(self, tag: str, given: dict[str, str]) -> None:
        if tag == "br":
            self._line.append("\n")
        elif tag == "hr":
            self._flush()
            self._blocks.append("---")
        elif tag == "img" and given.get("alt", "").strip():
            self._line.append(f"[image: {given['alt'].strip()}]")
        elif tag == "a":
            self._links.append(_address(given.get("href", ""), self._base))
            self._line.append("[" if self._links[-1] else "")
        elif tag in {"code", "kbd", "samp"} and not self._pre:
            self._code += 1
            self._line.append("`")
        elif tag in _MARKS and not self._pre:
            self._line.append(_MARKS[tag])

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if self._dropped:
            if tag in self._dropped:
                while self._dropped.pop() != tag:
                    pass
            return
        if tag == "pre":
            self._flush()
            self._pre = max(0, self._pre - 1)
        elif tag in {"ul", "ol"}:
            self._flush()
            if self._lists:
                self._lists.pop()
        elif tag == "blockquote":
            self._flush()
            self._quotes = max(0, self._quotes - 1)
        elif tag == "tr":
            self._end_row()
        elif tag == "table":
            self._end_table()
        elif tag in {"td", "th"}:
            self._end_cell()
        elif tag in _BLOCKS or tag in {"li", "h1", "h2", "h3", "h4", "h5", "h6"}:
            self._flush()
        else:
            self._close_inline(tag)

    def _close_inline(self, tag: str) -> None:
        if tag == "a" and self._links:
            address = self._links.pop()
            self._line.append(f"]({address})" if address else "")
        elif tag in {"code", "kbd", "samp"} and self._code and not self._pre:
            self._code -= 1
            self._line.append("`")
        elif tag in _MARKS and not self._pre:
            self._line.append(_MARKS[tag])

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif not self._dropped:
            self._line.append(data if self._pre else re.sub(r"\s+", " ", data))

    def _flush(self) -> None:
        """Make a block of the gathered text; in a table, a part of the cell."""
        if self._row is not None:
            self._line.append(" ")
            return
        text = "".join(self._line)
        self._line = []
        lead, self._lead = self._lead, ""
        if self._pre:
            block = f"```\n{text.strip(chr(10))}\n```" if text.strip() else ""
        else:
            block = "\n".join(re.sub(r" {2,}", " ", line).strip() for line in text.split("\n")).strip()
            block = re.sub(r"\[\s*\]\([^)]*\)|\*{4}", "", block)
        if not block:
            self._lead = lead if lead.strip().startswith(("-", "1", "2", "3", "4", "5", "6", "7", "8", "9")) else ""
            return
        block = lead + block
        for _ in range(min(self._quotes, 5)):
            block = "\n".join(f"> {line}" for line in block.split("\n"))
        self._blocks.append(block)

    def _end_cell(self) -> None:
        if self._row is None:
            self._row = []
        text = " ".join("".join(self._line).split())
        self._line = []
        if text:
            self._row.append(text.replace("|", "\\|"))

    def _end_row(self) -> None:
        if self._row is None:
            return
        self._end_cell()
        if self._row:
            self._rows.append(self._row)
        self._row = None

    def _end_table(self) -> None:
        self._end_row()
        self._row = None
        rows, self._rows = self._rows, []
        if not rows:
            return
        if max(map(len, rows)) == 1:  # a table only for the layout
            self._blocks += [row[0] for row in rows]
            return
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, "|" + " --- |" * len(rows[0]))
        self._blocks.append("\n".join(lines))


def _address(href: str, base: str) -> str:
    """An absolute http address, empty for one that leads nowhere useful."""
    href = href.strip()
    if not href or href.startswith("#"):
        return ""
    try:
        whole = urljoin(base, href)
    except ValueError:
        return ""
    useful = len(whole) <= MAX_ADDRESS and whole.startswith(("http://", "https://", "mailto:"))
    return whole.replace(" ", "%20").replace(")", "%29") if useful else ""


def _packed(blocks: list[str]) -> str:
    """Blocks with an empty line between them, but not between the items of a list."""
    parts: list[str] = []
    for at, block in enumerate(blocks):
        if at:
            parts.append("\n" if _item(block) and _item(blocks[at - 1]) else "\n\n")
        parts.append(block)
    return "".join(parts)


def _item(block: str) -> bool:
    return re.match(r" *(?:-|\d+\.) ", block) is not None
