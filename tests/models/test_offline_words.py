"""Words and passages: what is looked for, and which line wins."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.models.offline.passages import DEFINES, FileLine, Ranking, Wish, fence, file_lines, hits, quote
from ctxchat.models.offline.words import literal, pattern, phrase_pattern, stem, terms, topic


@pytest.mark.parametrize(
    ("words", "root"),
    [
        ("retry retries retrying retried", "retry"),
        ("test tests tested testing", "test"),
        ("configure configured configuring configuration", "configur"),
        ("report reports reported", "report"),
        ("stop stopped stopping", "stop"),
        ("class classes", "class"),
        ("status", "status"),
    ],
)
def test_forms_of_a_word_share_a_stem(words: str, root: str) -> None:
    assert {stem(w) for w in words.split()} == {root}


def test_identifiers_are_taken_apart() -> None:
    assert set(terms("RETRY_LIMIT retryLimit HTTPServer2")) >= {"retry", "limit", "http", "server", "2"}
    assert list(terms("会议室")) == ["会议", "议室"]


def test_what_a_question_is_about() -> None:
    asked = topic("Which logger does the tide gauge at Pier 7 in `src/a.py` report to?")
    assert asked.names == ("src/a.py",) and asked.proper == ("Pier 7",)
    assert "tide gauge" in asked.phrases
    assert {"logger", "tide", "pier", "7", "report"} <= set(asked.terms) and "which" not in asked.terms


@given(st.text(max_size=60))
def test_patterns_of_any_text_compile_and_find_it(text: str) -> None:
    about = topic(text)
    re.compile(pattern(about.terms))
    re.compile(phrase_pattern(about.phrases))
    assert re.search(literal(text), text)


@pytest.mark.parametrize("line", ["retry_limit = 5", "retryLimit: 5", "RETRY-LIMIT 5", "the retries limits"])
def test_a_search_finds_every_spelling(line: str) -> None:
    assert re.search(pattern(topic("retry limit").terms), line, re.I)
    assert line.startswith("the") or re.search(phrase_pattern(["retry limit"]), line, re.I)


def test_short_words_match_at_a_start_only() -> None:
    assert not re.search(pattern(["port"]), "report import", re.I)
    assert re.search(pattern(["port"]), "the_port Ports", re.I)


def test_reading_what_tools_print() -> None:
    assert hits("./a b.py:12:x: y\nno hit\n[only the first 3 hits are shown]") == [FileLine("a b.py", 12, "x: y")]
    below = "[x] a.py\n12:7:00 x\n13-near\n--\n20:y\n./b.py\n1:z\n[only the first 3 hits are shown]"
    assert hits(below) == [FileLine("[x] a.py", 12, "7:00 x"), FileLine("[x] a.py", 20, "y"), FileLine("b.py", 1, "z")]
    few = file_lines("9\tdef f():\n10\t\treturn 1\n\t\n\t[x]\n[lines 9-12 of 40]", "a.py")
    assert [(n.number, n.text) for n in few] == [(9, "def f():"), (10, "\treturn 1"), (11, ""), (12, "[x]")]
    numbered = file_lines("    9\tdef f():\n   10\t    return 1\n   11\t\n[lines 9-11 of 40]", "a.py")
    assert [(line.number, line.text) for line in numbered] == [(9, "def f():"), (10, "    return 1"), (11, "")]
    assert file_lines("x\ny", "a.py", 5)[1] == FileLine("a.py", 6, "y")


def test_the_rarer_words_together_win() -> None:
    pool = [
        FileLine("a.md", 1, "the gauge is wet"),
        FileLine("b.md", 4, "the gauge at the pier reports to the logger"),
        FileLine("c.md", 2, "a gauge and a gauge"),
        *(FileLine("d.md", n * 10, "another gauge") for n in range(1, 9)),
    ]
    about = topic("which logger does the gauge at the pier report to")
    best = Ranking(about, pool).best(3)
    assert best[0].ref == "b.md:4" and Ranking(about, pool).coverage(best[0]) > 0.99


def test_a_definition_wins_where_one_is_asked_for() -> None:
    pool = [FileLine("use.py", 3, "sleep(retry_limit) # the retry limit"), FileLine("set.py", 1, "retry_limit = 5")]
    about = topic("retry limit")
    assert Ranking(about, pool, wishes=[Wish(DEFINES, 1.6)]).best(1)[0].ref == "set.py:1"


def test_a_quotation_cannot_be_left() -> None:
    assert fence("a\n````\nb").startswith("`````\n") and fence("a\n````\nb").endswith("\n`````")
    line = FileLine("a.md", 1, "see \x1b[2J\x07 ``` \u202e port " + "x" * 5_000)
    passage = Ranking(topic("port"), [line]).best(1)[0]
    shown = quote(passage)
    assert shown.startswith("> see") and "\x1b" not in shown and "\u202e" not in shown and len(shown) < 600
