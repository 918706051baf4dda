"""Learning how a server counts: rates converge, stay in bounds, and the band is honest."""

from __future__ import annotations

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.calibration import (
    DOUBT,
    LEAST_DOUBT,
    LEAST_RATE,
    MAX_RATE,
    PRIOR,
    RATIO_KINDS,
    Calibration,
    Mix,
    level,
    total,
)
from ctxchat.core.messages import Image, Message, Text
from ctxchat.core.tokens import TokenCounter

numbers = st.integers(-(10**7), 10**7)
mixes = st.builds(Mix, *[numbers] * len(Mix.__struct_fields__))


@given(st.floats(0.26, 3.9), st.lists(st.integers(400, 100_000), min_size=14, max_size=30))
def test_one_kind_converges(truth: float, raws: list[int]) -> None:
    knowledge = Calibration()
    for raw in raws:
        knowledge = knowledge.learn(round(raw * truth), Mix(raw), whole=False)
    part = Mix(20_000)
    assert abs(knowledge.part(part) / (20_000 * truth) - 1) < 0.02
    assert knowledge.error(part) / knowledge.part(part) < 0.13


TRUTH = Mix(100, 70, 60, 180, 55, 25)
"""A server's tokens for a hundred of ours of each kind, and for a hundred digits and marks."""


def real(mix: Mix) -> int:
    pairs = zip(
        (mix.words, mix.wide, mix.tools, mix.images, mix.digits, mix.marks),
        (TRUTH.words, TRUTH.wide, TRUTH.tools, TRUTH.images, TRUTH.digits, TRUTH.marks),
        strict=True,
    )
    return round(sum(ours * share for ours, share in pairs) / 100)


sizes = st.integers(200, 4_000)
additions = st.one_of(
    st.builds(lambda n: Mix(n, marks=n // 5), sizes),
    st.builds(lambda n: Mix(n, digits=n // 2, marks=n), sizes),
    st.builds(lambda n: Mix(n // 10, n), sizes),
    st.builds(lambda n: Mix(20, images=n), sizes),
)


@given(st.lists(additions, min_size=30, max_size=50))
def test_kinds_are_told_apart(parts: list[Mix]) -> None:
    frame = Mix(600, tools=3_000)
    knowledge = Calibration().learn(real(frame) + 40, frame)
    for part in parts[:-8]:
        knowledge = knowledge.learn(real(part), part, whole=False)
    seen = total(parts[:-8])
    for part in parts[-8:]:
        known = all(getattr(seen, kind) > 2_000 for kind in ("words", "wide", "images") if getattr(part, kind) > 100)
        if known and seen.digits > 2_000:
            assert abs(knowledge.part(part) - real(part)) <= 0.07 * real(part) + 20
            assert abs(knowledge.part(part) - real(part)) <= knowledge.error(part)


def test_the_band_is_narrow_for_what_was_seen_and_wide_for_what_was_not() -> None:
    knowledge = Calibration()
    for _ in range(6):
        knowledge = knowledge.learn(1_000, Mix(1_000), whole=False)
    assert knowledge.error(Mix(1_000)) < 0.5 * Calibration().error(Mix(1_000))
    assert knowledge.error(Mix(0, 1_000)) == Calibration().error(Mix(0, 1_000)) > 2 * knowledge.error(Mix(1_000))


def test_what_a_request_costs_besides_is_not_taken_for_a_rate() -> None:
    knowledge = Calibration().learn(440, Mix(100))
    assert 300 < knowledge.estimate_request(Mix(0, 0)) < 345
    assert 90 < knowledge.part(Mix(100)) < 125


@given(st.lists(st.tuples(st.floats(), mixes, st.booleans()), max_size=20), mixes)
def test_whatever_it_is_taught_it_stays_within_bounds(samples: list[tuple[float, Mix, bool]], asked: Mix) -> None:
    knowledge = Calibration()
    for counted, mix, whole in samples:
        knowledge = knowledge.learn(counted, mix, whole=whole)
        assert all(LEAST_RATE <= rate <= MAX_RATE for rate in knowledge.rates[:RATIO_KINDS])
        assert all(math.isfinite(number) for number in (*knowledge.rates, *knowledge.doubts))
        assert all(doubt > 0 for doubt in knowledge.doubts)
    assert knowledge.estimate_request(asked) >= 0 and knowledge.error(asked, whole=True) > 0


def test_senseless_figures_change_nothing() -> None:
    known = level(1.2, 0.1, 3)
    for counted, mix in ((0, Mix(500)), (-5, Mix(500)), (100, Mix()), (math.nan, Mix(500)), (math.inf, Mix(500))):
        assert known.learn(counted, mix) == known


def test_another_tokenizer_behind_the_same_name_is_believed() -> None:
    knowledge = Calibration()
    for _ in range(30):
        knowledge = knowledge.learn(1_000, Mix(1_000), whole=False)
    for _ in range(3):
        knowledge = knowledge.learn(2_000, Mix(1_000), whole=False)
    assert 1_850 < knowledge.part(Mix(1_000)) < 2_150


@given(st.text(st.characters(), max_size=300))
def test_a_text_by_kind_is_the_text(text: str) -> None:
    counter = TokenCounter()
    mix = counter.text_mix(text)
    assert mix.raw == counter.count_text(text)
    assert 0 <= mix.digits + mix.marks + mix.capitals + mix.han + mix.kana + mix.accents <= len(text)
    assert all(number >= 0 for number in (mix.words, mix.wide, mix.accents))


def test_kinds_of_a_message() -> None:
    words = TokenCounter().draft_mix(Message(1, "user", "plain words"))
    wide = TokenCounter().draft_mix(Message(1, "user", "吾輩は猫である"))
    rows = TokenCounter().draft_mix(Message(1, "user", '{"a": 12}'))
    image = TokenCounter().draft_mix(Message(1, "user", (Text("look"), Image("data:", 512, 512))))
    assert (words.wide, words.digits, words.marks, words.accents) == (0, 0, 0, 0)
    assert wide.wide > wide.words and (wide.han, wide.kana) == (3, 4)
    assert rows.digits == 2 and rows.marks == 5 and rows.han == rows.capitals == rows.indents == 0
    code = TokenCounter().draft_mix(Message(1, "user", "if A_B:\n    go()\n\tQ\nend"))
    assert (code.capitals, code.indents) == (3, 2)
    assert TokenCounter().draft_mix(Message(1, "user", "Über Köln, 한국")).accents == 2
    assert image.images == 255 and image.raw == TokenCounter().message(
        Message(1, "user", (Text("look"), Image("d", 512, 512)))
    )


def test_a_prior_for_every_kind() -> None:
    kinds = len(Mix.__struct_fields__)
    assert len(PRIOR) == len(DOUBT) == len(LEAST_DOUBT) == kinds + 1, "and what a request costs besides"
    assert Calibration().estimate_request(Mix(10, 10, 10, 10)) == 40


def test_scripts_that_tokenizers_cut_differently_are_told_apart() -> None:
    han, kana = Mix(0, 1_000, han=900), Mix(0, 1_000, han=300, kana=700)
    knowledge = Calibration()
    for _ in range(6):
        knowledge = knowledge.learn(500, han, whole=False).learn(900, kana, whole=False)
    assert abs(knowledge.part(han) - 500) < 50 and abs(knowledge.part(kana) - 900) < 90


def test_what_was_stored_when_other_kinds_were_told_apart_is_forgotten() -> None:
    stored = b'{"rates":[1.4,1,1,1,0,0,0],"doubts":[0.1,0.3,0.4,0.5,0.35,0.2,150],"samples":9}'
    assert msgspec.json.decode(stored, type=Calibration) == Calibration()
    assert msgspec.json.decode(b"[10,2,3,4,5,6]", type=Mix) == Mix(10, 2, 3, 4, 5, 6)
