"""What a line of a diff is, and its place in the file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.presentation.diffs import edit_diff, lines_in
from ctxchat.tools.diffs import difference

TEXTS = st.lists(st.sampled_from(("a", "b", "-- c", "++ d", "@@ -1 +1 @@", "", "e" * 30)), max_size=30).map("\n".join)


@given(TEXTS, TEXTS)
def test_each_line_has_the_number_it_has_in_the_file(old: str, new: str) -> None:
    before, after = old.split("\n"), new.split("\n")
    for line in lines_in(difference(old, new, "x.py").text):
        if line.number:
            where = before if line.kind == "remove" else after
            assert where[line.number - 1] == line.text[1:]
        else:
            assert line.kind in ("hunk", "note") or not line.text


@given(TEXTS, TEXTS)
def test_an_edit_of_the_record_shows_what_was_replaced_by_what(old: str, new: str) -> None:
    lines = edit_diff({"old": old, "new": new}).split("\n")[:-1]
    removed, added = ([line[1:] for line in lines if line[0] == sign] for sign in "-+")
    assert (old == new) or lines
    assert "\n".join(removed) in old and "\n".join(added) in new


def test_what_a_model_writes_is_told_by_its_signs() -> None:
    kinds = [line.kind for line in lines_in("diff --git a b\n--- a\n+++ b\n@@ nonsense @@\n same\n-old\n+new\n--- c\n")]
    assert kinds == ["note", "note", "note", "note", "same", "remove", "add", "note"]


def test_other_calls_are_no_edits() -> None:
    assert edit_diff("{broken") == edit_diff({"path": "x"}) == edit_diff({"old": 1, "new": "x"}) == ""
    assert edit_diff({"old": "a", "new": "b", "replace_all": True}) == ""
