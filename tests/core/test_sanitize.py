"""JSON for a terminal: nothing in it moves or hides anything, and it says the same."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.sanitize import harmless_json

TEXTS = st.text(st.one_of(st.characters(), st.sampled_from('\x1b\x9b\x9d\x07\r\n\t\\"\u202e\u2066\u2028\ud800')))
VALUES = st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@given(VALUES)
def test_json_reads_back_as_it_was_without_anything_a_terminal_obeys(value: object) -> None:
    text = harmless_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} or c in "\u202e\u2066\u2028" for c in text)
    text.encode()
