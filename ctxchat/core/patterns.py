"""Matches the patterns of permission rules against what a call wants to touch: a command's words, a path, an address.

`*` stands for anything within a folder and, in a command, within one word; `**` crosses folders, and as a word of its own it
stands for any number of words, even none. In a command's pattern a quoted star is a plain star, and `\\*` stands for one that the
shell expands. Pure; nothing is expanded or resolved here.

A pattern is compiled to a list of elements, a target is split into tokens, and both are compared like a finite automaton: all
positions in the pattern that are possible after a token are followed at once. So no pattern takes longer than the product of both
lengths, whatever a target holds.
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
"""The longest target that is compared with wildcards; a longer one is covered only by an equal pattern or by `**` alone."""


class Word(msgspec.Struct, frozen=True, array_like=True):
    """A word of a command line. `text` is what the program will receive. Where that is decided only when it runs (a variable, a
    glob, a substitution) `known` is false, and `text` is the word as it was written."""

    text: str
    known: bool = True


Covers = Literal["yes", "no", "maybe"]
"""Whether a pattern covers a command; `maybe` where that depends on a word which is not known."""


def written(words: Sequence[Word]) -> str:
    """The pattern that covers exactly these words."""
    return " ".join(shlex.quote(w.text) if w.known else w.text.replace("*", r"\*") for w in words)


def escaped(text: str) -> str:
    """The pattern that covers exactly this path or address."""
    return re.sub(r"([\\*])", r"\\\1", text)


def covers_words(pattern: str, words: Sequence[Word]) -> Covers:
    """Whether a pattern covers a command."""
    if pattern == "**":
        return "yes"
    if pattern == written(words):
        return "yes"
    if sum(len(word.text) for word in words) > MAX_PATTERN_CHARS:
        return "maybe"
    elements = _compile_command(pattern)
    tokens = [token for word in words for token in (_WORD_START, *_word_tokens(word))]
    if _matches(elements, tokens):
        return "yes"
    return "maybe" if any(not w.known for w in words) and _matches(elements, tokens, unknown_is_any=True) else "no"


def covers_text(pattern: str, text: str, stop: str = "/") -> bool:
    """Whether a pattern covers a path or an address; `*` does not cross the characters in `stop`."""
    if pattern in {"**", escaped(text)}:
        return True
    return len(text) <= MAX_PATTERN_CHARS and _matches(_compile_text(pattern, stop), _CHARACTERS.findall(text))


def covers_path(pattern: str, target: str, folder: str, *, folding: bool = False) -> bool:
    """Whether a pattern covers a path. A pattern that is not absolute is taken relative to `folder`.

    `folding`: upper and lower case count alike, since the file system may not distinguish them. With it, `**` covers paths
    outside of the folder, too: rules that deny are compared so, and they must rather cover too much.
    """
    below = posixpath.relpath(target, folder) if folder and f"{target}/".startswith(f"{folder.rstrip('/')}/") else ""
    pattern = pattern.removeprefix("./")
    compared = target if pattern.startswith("/") or not target.startswith("/") else below
    if not compared:
        return pattern == "**" and folding
    return covers_text(_fold_path(pattern), _fold_path(compared)) if folding else covers_text(pattern, compared)


def may_lie_below(pattern: str, path: str, folder: str) -> bool:
    """Whether the pattern may cover something at or below `path`, by its fixed part before the first wildcard."""
    fixed = re.split(r"[*\\]", pattern.removeprefix("./"), maxsplit=1)[0]
    start = _fold_path(posixpath.normpath(posixpath.join(folder, fixed or ".")))
    top = _fold_path(posixpath.normpath(path))
    return f"{start}/".startswith(f"{top.rstrip('/')}/") or f"{top}/".startswith(start)


def _fold_path(path: str) -> str:
    """A path whose names can be compared regardless of case."""
    return "/".join(map(folded, path.split("/")))


# ── targets as tokens ──

_WORD_START = "\0"
"""The token before each word of a command."""

_CHARACTERS = re.compile(r"(?<![^/=])\.\.(?![^/])|.", re.DOTALL)
"""Matches a token of a text: a character, or `..` as a step of a path. No wildcard within a word matches that one, so `src/**`
does not cover `src/../../etc`."""


def _word_tokens(word: Word) -> Sequence[str]:
    return _CHARACTERS.findall(word.text) if word.known else [_unknown_token(word.text)]


def _unknown_token(text: str) -> str:
    """The single token of a word that is not known; no text of a known word is equal to it."""
    return f"\0{text}"


# ── patterns as elements ──


class _Element(msgspec.Struct, frozen=True):
    """A part of a compiled pattern, by `kind`. `is`: the token `text`. `but`: any number of characters that are not in `text`.
    `any`: any number of tokens. `skip`: the `width` elements from this one on are optional."""

    kind: Literal["is", "but", "any", "skip"]
    text: str = ""
    width: int = 0


def _split(pattern: str) -> list[str]:
    """The words of a command's pattern, with their quotes. An open quote reaches to the end."""
    return re.findall(r"""(?:'[^']*'?|"(?:[^"\\]|\\.)*"?|\\.?|[^\s'"\\])+""", pattern, re.DOTALL)


_EXPANDED = re.compile(r"[$`?\[\]{}~]|\\\*")
"""Matches something that the shell would expand: the word is not known before it runs."""

_SINGLE_QUOTED = re.compile(r"'[^']*'?")


@lru_cache(1000)
def _compile_command(pattern: str) -> Sequence[_Element]:
    """The elements of a command's pattern."""
    elements: list[_Element] = []
    for word in _split(pattern):
        if word == "**":
            elements += [_Element("skip", width=3), _Element("is", _WORD_START), _Element("any")]
        elif _EXPANDED.search(_SINGLE_QUOTED.sub("", word)):  # covers only the same unknown word
            elements += [_Element("is", _WORD_START), _Element("is", _unknown_token(word.replace(r"\*", "*")))]
        else:
            elements += [_Element("is", _WORD_START), *_compile_word(word)]
    return elements


def _compile_word(word: str) -> list[_Element]:
    """The elements of a word in which the shell expands nothing; stars outside of quotes are wildcards."""
    elements: list[_Element] = []
    for piece in re.findall(r"""'[^']*'?|"(?:[^"\\]|\\.)*"?|\\.?|\*+|[^'"\\*]+""", word, re.DOTALL):
        match piece[0]:
            case "'":
                elements += _literal(piece.strip("'"))
            case '"':
                elements += _literal(re.sub(r'\\([\\"])', r"\1", piece[1:].removesuffix('"')))
            case "\\":
                elements += _literal(piece[1:])
            case "*":
                elements.append(_Element("but", "/" if piece == "*" else ""))
            case _:
                elements += _literal(piece)
    return elements


def _literal(text: str) -> list[_Element]:
    """Elements for exactly this text."""
    return [_Element("is", token) for token in _CHARACTERS.findall(text)]


def _compile_text(pattern: str, stop: str) -> list[_Element]:
    """The elements of a pattern for paths or addresses; `*` does not match the characters in `stop`."""
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
                elements += _literal(piece[1:])
            case _:
                elements += _literal(piece)
    return elements


# ── comparing ──


def _matches(elements: Sequence[_Element], tokens: Sequence[str], *, unknown_is_any: bool = False) -> bool:
    """Whether the elements match all tokens. `unknown_is_any`: an unknown word may turn out to be any number of any words."""
    positions = _with_optional(elements, {0})
    for token in tokens:
        unknown = len(token) > 1 and token[0] == _WORD_START
        if unknown and unknown_is_any:
            following = set(range(min(positions), len(elements) + 1))
        else:
            character = len(token) == 1 and token != _WORD_START
            following = {
                after
                for position in positions
                for after in _positions_after(elements, position, token, character=character)
            }
        if not following:
            return False
        positions = _with_optional(elements, following)
    return len(elements) in positions


def _positions_after(elements: Sequence[_Element], position: int, token: str, *, character: bool) -> tuple[int, ...]:
    """The positions that a token leads to from this one; none where the element there does not match it. `character`: the token
    is a single character, which `but` can match."""
    if position == len(elements):
        return ()
    element = elements[position]
    match element.kind:
        case "is":
            return (position + 1,) if element.text == token else ()
        case "but":
            return (position,) if character and token not in element.text else ()
        case "any":
            return (position,)
        case _:
            return ()


def _with_optional(elements: Sequence[_Element], positions: set[int]) -> set[int]:
    """These positions, and those that are reached from them without a token, past elements that may match nothing."""
    reached: set[int] = set()
    waiting = list(positions)
    while waiting:
        position = waiting.pop()
        if position in reached:
            continue
        reached.add(position)
        if position < len(elements):
            element = elements[position]
            waiting += [position + 1] if element.kind in {"but", "any", "skip"} else []
            waiting += [position + element.width] if element.kind == "skip" else []
    return reached
