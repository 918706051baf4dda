"""JSON for a terminal: nothing in it moves or hides anything, and it says the same. What a person decides by hides nothing."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.sanitize import harmless_json, has_lookalikes, visible

TEXTS = st.text(st.one_of(st.characters(), st.sampled_from('\x1b\x9b\x9d\x07\r\n\t\\"\u202e\u2066\u2028\ud800')))
VALUES = st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@given(VALUES)
def test_json_reads_back_as_it_was_without_anything_a_terminal_obeys(value: object) -> None:
    text = harmless_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} or c in "\u202e\u2066\u2028" for c in text)
    text.encode()


def default_ignorable() -> set[int]:
    """By Unicode's own derivation, as far as this Python's tables know: Cf and the variation selectors, without what is drawn
    (signs before numbers, hieroglyphs' joins, the interlinear ones), with the fillers and what is reserved for the like."""
    ignored = {c for c in range(0x110000) if unicodedata.category(chr(c)) == "Cf"}
    drawn = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, *range(0xFFF9, 0xFFFC), 0x110BD, 0x110CD}
    ignored -= drawn | set(range(0x13430, 0x13460))
    ignored |= {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0, *range(0xFFF0, 0xFFF9)}
    ignored |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}
    return ignored


def test_every_default_ignorable_code_point_is_seen() -> None:
    hidden = [hex(c) for c in default_ignorable() if chr(c) in visible(f"ls{chr(c)} -l")]
    assert not hidden
    blanks = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) in {"Zs", "Zl", "Zp"} and c != " "]
    assert not [hex(ord(c)) for c in (*blanks, "\u2800") if c in visible(f"ls{c}-l")]
    assert visible("a\U000e0041b") == "a\\U000e0041b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("g\u0456t push", "g\\u0456t push"),
        ("p\uff55sh", "p\\uff55sh"),
        ("\U0001d41ac", "\\U0001d41ac"),
        ("git commit -m 'исправил опечатку'", "git commit -m 'исправил опечатку'"),
        ("Größe café naïve", "Größe café naïve"),
        ("echo 日本語 Tシャツ", "echo 日本語 Tシャツ"),
    ],
)
def test_a_letter_of_another_alphabet_is_seen_in_a_word_and_whole_words_are_left(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("name", ["g\u0456t", "сору", "l\u200bs", "ｌｓ", "ls\u00a0"])
def test_what_passes_for_a_name_of_a_program_is_told(name: str) -> None:
    assert has_lookalikes(name) and not has_lookalikes("größe.sh") and not has_lookalikes("git")
