"""What the pattern of a rule covers: words of a command, a path, an address. Pure; nothing is expanded or resolved here.

`*` stands for anything within a folder and, in a command, within one word; `**` crosses folders, and as a word of its own it
stands for any number of words, none included. In a command a quoted star is a star; `\\*` is one the shell expands.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from ctxchat.core.guarded import folded

MAX_PATTERN_CHARS = 8_000
"""Characters of a target that wildcards are tried on; a longer one is covered only where it is equal, or by `**` alone."""


class Word(msgspec.Struct, frozen=True, array_like=True):
    """A word of a command. `text` is what the program will see; where that depends on the moment it runs (a variable, a glob, a
    substitution) it is not `known`, and `text` is as it was written."""

    text: str
    known: bool = True


Covers = Literal["yes", "no", "maybe"]
"""`maybe`: a word that is not known yet decides."""


def written(words: Sequence[Word]) -> str:
    """The pattern for exactly these words."""
    return " ".join(shlex.quote(w.text) if w.known else w.text.replace("*", r"\*") for w in words)


def escaped(text: str) -> str:
    """The pattern for exactly this path or address."""
    return re.sub(r"([\\*])", r"\\\1", text)


def covers_words(pattern: str, words: Sequence[Word]) -> Covers:
    """Whether a pattern covers a command."""
    if pattern == "**":
        return "yes"
    if pattern == written(words):
        return "yes"
    if sum(len(word.text) for word in words) > MAX_PATTERN_CHARS:
        return "maybe"
    wanted = _compiled(pattern)
    tokens = [token for word in words for token in (_GAP, *_letters(word))]
    if _runs(wanted, tokens):
        return "yes"
    return "maybe" if any(not w.known for w in words) and _runs(wanted, tokens, generous=True) else "no"


def covers_text(pattern: str, text: str, stop: str = "/") -> bool:
    """Whether a pattern covers a path or an address; `*` does not cross the characters in `stop`."""
    if pattern in {"**", escaped(text)}:
        return True
    return len(text) <= MAX_PATTERN_CHARS and _runs(_of_text(pattern, stop), _DOTS.findall(text))


def covers_path(pattern: str, target: str, folder: str, *, folding: bool = False) -> bool:
    """Whether a pattern covers a path, both counted from `folder` where the pattern is not absolute. `folding`: letters count
    alike in upper and lower case, for a file system may not tell them apart."""
    below = posixpath.relpath(target, folder) if folder and f"{target}/".startswith(f"{folder.rstrip('/')}/") else ""
    pattern = pattern.removeprefix("./")
    where = target if pattern.startswith("/") or not target.startswith("/") else below
    if not where:
        return pattern == "**" and folding
    return covers_text(_folded(pattern), _folded(where)) if folding else covers_text(pattern, where)


def may_lie_below(pattern: str, path: str, folder: str) -> bool:
    """Whether a path that the pattern covers may lie at or below this one."""
    fixed = re.split(r"[*\\]", pattern.removeprefix("./"), maxsplit=1)[0]
    wanted = _folded(posixpath.normpath(posixpath.join(folder, fixed or ".")))
    above = _folded(posixpath.normpath(path))
    return f"{wanted}/".startswith(f"{above.rstrip('/')}/") or f"{above}/".startswith(wanted)


def _folded(path: str) -> str:
    return "/".join(map(folded, path.split("/")))


# A pattern becomes a list of elements, a target a list of tokens (characters, gaps between words, unknown words), and the
# elements that may come next are followed through the tokens all at once: no pattern takes longer than their product.

_GAP = "\0"
_DOTS = re.compile(r"(?<![^/=])\.\.(?![^/])|.", re.DOTALL)
"""`..` as a step of a path is one token, which no wildcard within a word takes: `src/**` is not `src/../../etc`."""


class _Element(msgspec.Struct, frozen=True):
    """`is`: this token. `but`: any characters but these. `any`: any tokens. `skip`: so many elements may be left out."""

    kind: Literal["is", "but", "any", "skip"]
    text: str = ""
    width: int = 0


def _letters(word: Word) -> Sequence[str]:
    return _DOTS.findall(word.text) if word.known else [_unknown(word.text)]


def _unknown(text: str) -> str:
    return f"\0{text}"


def _split(pattern: str) -> list[str]:
    """The words of a pattern, quotes and all. An open quote reaches to the end."""
    return re.findall(r"""(?:'[^']*'?|"(?:[^"\\]|\\.)*"?|\\.?|[^\s'"\\])+""", pattern, re.DOTALL)


_OPEN = re.compile(r"[$`?\[\]{}~]|\\\*")
_SINGLE = re.compile(r"'[^']*'?")


@lru_cache(1000)
def _compiled(pattern: str) -> Sequence[_Element]:
    elements: list[_Element] = []
    for word in _split(pattern):
        if word == "**":
            elements += [_Element("skip", width=3), _Element("is", _GAP), _Element("any")]
        elif _OPEN.search(_SINGLE.sub("", word)):
            elements += [_Element("is", _GAP), _Element("is", _unknown(word.replace(r"\*", "*")))]
        else:
            elements += [_Element("is", _GAP), *_of_word(word)]
    return elements


def _of_word(word: str) -> list[_Element]:
    """A word without anything the shell expands: its wildcards stand outside of quotes."""
    elements: list[_Element] = []
    for piece in re.findall(r"""'[^']*'?|"(?:[^"\\]|\\.)*"?|\\.?|\*+|[^'"\\*]+""", word, re.DOTALL):
        match piece[0]:
            case "'":
                elements += _literally(piece.strip("'"))
            case '"':
                elements += _literally(re.sub(r'\\([\\"])', r"\1", piece[1:].removesuffix('"')))
            case "\\":
                elements += _literally(piece[1:])
            case "*":
                elements.append(_Element("but", "/" if piece == "*" else ""))
            case _:
                elements += _literally(piece)
    return elements


def _literally(text: str) -> list[_Element]:
    return [_Element("is", token) for token in _DOTS.findall(text)]


def _of_text(pattern: str, stop: str) -> list[_Element]:
    elements: list[_Element] = []
    for piece in re.findall(r"\\.?|\*\*/|\*+|[^\\*]+", pattern, re.DOTALL):
        match piece:
            case "**/":
                elements += [_Element("skip", width=3), _Element("but", ""), _Element("is", "/")]
            case "*":
                elements.append(_Element("but", stop))
            case _ if piece[0] == "*":
                elements.append(_Element("but", ""))
            case _ if piece[0] == "\\":
                elements += _literally(piece[1:])
            case _:
                elements += _literally(piece)
    return elements


def _runs(elements: Sequence[_Element], tokens: Sequence[str], *, generous: bool = False) -> bool:
    """Whether the elements take all tokens. `generous`: an unknown word may become any number of any words."""
    open_ = _reached(elements, {0})
    for token in tokens:
        unknown = len(token) > 1 and token[0] == _GAP
        if unknown and generous:
            following = set(range(min(open_), len(elements) + 1))
        else:
            following = {
                n for at in open_ for n in _positions_after(elements, at, token, wild=len(token) == 1 and token != _GAP)
            }
        if not following:
            return False
        open_ = _reached(elements, following)
    return len(elements) in open_


def _positions_after(elements: Sequence[_Element], at: int, token: str, *, wild: bool) -> tuple[int, ...]:
    if at == len(elements):
        return ()
    element = elements[at]
    match element.kind:
        case "is":
            return (at + 1,) if element.text == token else ()
        case "but":
            return (at,) if wild and token not in element.text else ()
        case "any":
            return (at,)
        case _:
            return ()


def _reached(elements: Sequence[_Element], places: set[int]) -> set[int]:
    """With what can be left out from there."""
    found: set[int] = set()
    waiting = list(places)
    while waiting:
        at = waiting.pop()
        if at in found:
            continue
        found.add(at)
        if at < len(elements):
            element = elements[at]
            waiting += [at + 1] if element.kind in {"but", "any", "skip"} else []
            waiting += [at + element.width] if element.kind == "skip" else []
    return found
