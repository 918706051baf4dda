"""What was found, in words: its line in a list, the passage around it, and what putting it back did. Pure; knows no widget."""

from __future__ import annotations

import re

from textual.content import Content

from ctxchat.core.figures import Figures
from ctxchat.core.search import Hit
from ctxchat.tui.reading.figures_text import day_and_clock, percent, tilde
from ctxchat.tui.reading.text import clean, one_line, short

OPEN, CLOSE = "\ue000", "\ue001"
"""What stands around the words that were found: characters no snippet holds otherwise."""

FOUND, MUTED = "bold $text-accent", "$text-muted"

WHO = {"user": "you", "assistant": "answer", "tool": "result", "system": "system"}


def highlighted(marked: str, width: int = 0) -> Content:
    """A snippet with what was found made to stand out; in `width` cells the first of it is on screen."""
    shown = Content("")
    for i, piece in enumerate(re.split(f"[{OPEN}{CLOSE}]", clean(marked))):
        shown = shown.append(Content.styled(piece, FOUND) if i % 2 else Content(piece))
    first = min((span.start for span in shown.spans), default=0)
    if width and first > width // 2:
        start = first - width // 3
        word = shown.plain.find(" ", start, first) + 1  # on a word, where one begins before it
        shown = Content("…").append(shown[word or start :])
    return shown


def passage_of(hit: Hit, query: str = "") -> Content:
    """The lines around what was found, the same words standing out, and those of the query."""
    words = {found.casefold() for found in re.findall(f"{OPEN}([^{CLOSE}]*){CLOSE}", hit.snippet)}
    words |= {word.casefold() for word in re.findall(r"\w{3,}", query)}
    text = clean(hit.passage)
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word.strip())
    shown = Content(text)
    for match in re.finditer(pattern, text, re.IGNORECASE) if pattern else ():
        shown = shown.stylize(FOUND, match.start(), match.end())
    return shown


def lines_of(hit: Hit, here: bool, width: int) -> Content:
    """Two lines: the words, and where they stand and what putting them back costs. `here`: in the session on screen."""
    who = WHO.get(hit.role, hit.role)
    if hit.tool:
        who = f"{'result' if hit.role == 'tool' else 'call'} of {hit.tool}"
    facts = [
        one_line(who, 24),
        f"~{short(hit.tokens)} tokens",
        "this session" if here else one_line(hit.title, 30) or "without a title",
        *([f"turn {hit.turn}"] if hit.turn else []),
        day_and_clock(hit.at),
        "put away" if hit.compaction else "in view",
    ]
    line = ""
    for fact in filter(None, facts):
        if len(line) + 3 + len(fact) <= width:
            line += f" · {fact}" if line else fact
    words = highlighted(hit.snippet, width).truncate(width, ellipsis=True)
    return words.append("\n").append(Content.styled(line, MUTED))


def put_back_words(figures: Figures) -> str:
    """How full the window is after something was put back, and by how much too full."""
    full = f"Put back at the end, as a quotation: the window is {tilde(figures)}{percent(figures.pressure)} full."
    return f"{full} That is {short(figures.over)} too much: free up some of it." if figures.over else full
