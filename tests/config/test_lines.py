"""Where keys stand: every value of a TOML text has a line, and the span there reads back as that value."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.config.problems import KeyPath, key_text
from ctxchat.config.toml_positions import layout, literal, parse_key
from tests.examples import examples

TEXT = '''\
# a comment with [brackets] = "and" signs
title = "a # b" # [no] table
dotted.key."with dot" = 1

[a]
list = [ # [1]
  "x", # one
  { y = 2, z.w = "3" },
]
long = """
[not] = "a table"
quote "" end"""""
raw = \'\'\'
x = 1
\'\'\'
when = 2024-01-01 10:00:00

  [a.'b c']
  n = -1.5e3

[[h]]
n = 1
[h.sub]
n = 2
[[h]]
n = 3
[[h.deep]]
n = 4
'''


def leaves(tree: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from leaves(value, (*path, i))
    else:
        yield path, tree


def test_every_kind_of_line() -> None:
    places = layout(TEXT)
    lines = {path: places.line_of(path) for path, _ in leaves(tomllib.loads(TEXT))}
    assert lines == {
        ("title",): 2,
        ("dotted", "key", "with dot"): 3,
        ("a", "list", 0): 7,
        ("a", "list", 1, "y"): 8,
        ("a", "list", 1, "z", "w"): 8,
        ("a", "long"): 10,
        ("a", "raw"): 13,
        ("a", "when"): 16,
        ("a", "b c", "n"): 19,
        ("h", 0, "n"): 22,
        ("h", 0, "sub", "n"): 24,
        ("h", 1, "n"): 26,
        ("h", 1, "deep", 0, "n"): 28,
    }
    assert places.line_of(("a", "missing")) == 5 and places.line_of(("nowhere",)) == 0


def test_spans_read_back_as_the_values() -> None:
    places = layout(TEXT)
    for path, value in leaves(tomllib.loads(TEXT)):
        place = places.places[path]
        assert tomllib.loads(f"v = {TEXT[place.value : place.end]}")["v"] == value


KEYS = st.text(alphabet="ab-._ \"'é#[]=", min_size=1, max_size=4)
LEAVES = st.integers(-9, 9) | st.booleans() | st.text(alphabet="a\"'#[]{}=,\n\\ é", max_size=6) | st.floats(-5, 5)
TREES = st.dictionaries(
    KEYS,
    st.recursive(LEAVES, lambda x: st.lists(x, max_size=3) | st.dictionaries(KEYS, x, max_size=3), max_leaves=8),
    max_size=5,
)


@examples(50, 200)
@given(tree=TREES)
def test_any_tree_in_any_spelling(tree: dict[str, Any]) -> None:
    inline = "".join(f"{literal(key)} = {literal(value)}\n" for key, value in tree.items())
    for text in (inline, tomlkit.dumps(tree)):
        parsed = tomllib.loads(text)
        assert parsed == tree
        places = layout(text)
        for path, value in leaves(parsed):
            place = places.places[path]
            assert tomllib.loads(f"v = {text[place.value : place.end]}")["v"] == value


@given(text=st.text(alphabet="[]{}=\"\n.#'a1,-\\ ", max_size=60))
def test_nonsense_does_not_raise(text: str) -> None:
    layout(text)


@given(parts=st.lists(KEYS, min_size=1, max_size=4))
def test_a_key_shown_reads_back(parts: list[str]) -> None:
    assert parse_key(key_text(tuple(parts))) == tuple(parts)


@pytest.mark.parametrize("text", ["", "a.", ".a", "a b", "a = 1", "a\nb", '"a'])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="is no key"):
        parse_key(text)
