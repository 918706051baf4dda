"""A damaged line costs that line and nothing else, whichever it is and however it is damaged."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.core.journal import Record, fold
from ctxchat.importing import formats
from ctxchat.importing.journal_records import Building
from ctxchat.importing.json_stream import lines, silent, together
from ctxchat.importing.steps import Begin
from tests.importing import wild
from tests.importing.conftest import put

CHATS = {"claude-code": wild.claude, "codex": wild.codex, "pi": wild.pi}
GARBLED = st.sampled_from(["cut", "noise", "zeros", "joined"])


def words(name: str, file: Path) -> tuple[list[str], int]:
    """What is said in a file's first session, and how many lines were damaged."""
    building = Building("0" * 12, name, lambda name, data: f"attachments/{name}")
    records: list[Record] = []
    for step in formats.named(name).steps(file, silent):
        if not isinstance(step, Begin):
            records += building.add_step(step)
    records += building.last_records()
    state = fold(records)
    assert state.skipped == ()
    return texts(m.text for m in state.ledger.messages() if not m.synthetic), len(building.totals.damaged)


def texts(found: Iterable[str]) -> list[str]:
    return sorted(piece for text in found for piece in text.split("\n\n") if piece)


@pytest.mark.parametrize("name", CHATS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_only_the_line_is_lost(name: str, tmp_path: Path, data: st.DataObject) -> None:
    lines = [json.dumps(line) for line in CHATS[name]()]
    before, _ = words(name, put(tmp_path / "chat.jsonl", lines))
    place = data.draw(st.integers(0, len(lines) - 1))
    match data.draw(GARBLED):
        case "cut":
            damaged = lines[place][: data.draw(st.integers(1, len(lines[place]) - 1))]
        case "noise":
            damaged = "\\x81" + lines[place][1:]
        case "zeros":
            damaged = "\0" * 40 + lines[place][40:]
        case _:
            damaged = lines[place][:30] + lines[place]
    after, told = words(name, put(tmp_path / "chat.jsonl", [*lines[:place], damaged, *lines[place + 1 :]]))
    assert told == 1
    missing = [text for text in before if text not in after]
    assert len(missing) <= 2, f"line {place + 1} cost {missing}"
    for text in missing:
        assert text[:12] in lines[place]


STRANGE: list[Any] = [
    None,
    1,
    -5,
    1.5,
    True,
    "",
    [],
    {},
    [None],
    [1, "a"],
    {"a": None},
    [[{}]],
    "\ud800",
    10**30,
    {"type": []},
]


def strange(value: Any, chance: random.Random) -> Any:
    """The value with some of what is in it missing or replaced by what nobody expects there."""
    if chance.random() < 0.08:
        return chance.choice(STRANGE)
    if isinstance(value, dict):
        return {name: strange(inner, chance) for name, inner in value.items() if chance.random() > 0.03}
    return [strange(inner, chance) for inner in value] if isinstance(value, list) else value


def exported() -> list[Any]:
    session, messages = wild.opencode()
    return [{"info": session, "messages": [{"info": m, "parts": p} for m, p in messages]}]


MAKERS = {**CHATS, "gemini-cli": wild.gemini_lines, "opencode": exported}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", range(12))
def test_what_nobody_expects_in_a_line_ends_nothing(name: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    file = tmp_path / ("chat.json" if name == "opencode" else "chat.jsonl")
    put(file, [json.dumps(strange(line, chance)) for line in MAKERS[name]()])
    formats.recognised(file)
    words(name, file)


def test_of_a_long_file_a_line_is_held_at_a_time(tmp_path: Path) -> None:
    file = put(tmp_path / "long.jsonl", ({"number": n, "text": "x" * 20_000} for n in range(400)))
    tracemalloc.start()
    try:
        assert sum(1 for _ in lines(file)) == 400
        assert tracemalloc.get_traced_memory()[1] < 1_000_000 < file.stat().st_size
    finally:
        tracemalloc.stop()


def test_a_line_that_never_ends_costs_itself_and_no_memory(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"n": 1}\n' + b"x" * 5_000_000 + b'\n{"n": 3}\n' + b"\0" * 5_000_000)
    tracemalloc.start()
    found = dict(lines(file, longest=1_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.pop(1), found.pop(3)) == ({"n": 1}, {"n": 3}) and peak < 4_000_000
    assert {number: getattr(told, "why", "") for number, told in found.items()} == {
        2: "longer than 1 MB",
        4: "longer than 1 MB",
    }


@pytest.mark.parametrize(
    ("line", "found", "damaged"),
    [
        (b'{"a": 1}{"b": 2}', [{"a": 1}, {"b": 2}], 0),
        (b'{"a": 1} \0{"b": "}{"}', [{"a": 1}, {"b": "}{"}], 0),
        (b'{"a": "tor{"b": 2}', [{"b": 2}], 1),
        (b'{"a": 1}{"b": ', [{"a": 1}], 1),
        (b"[1] 2", [], 1),
        (b'{"a": ' * 5000, [], 1),
    ],
)
def test_records_glued_on_one_line_are_each_read(line: bytes, found: list[dict[str, object]], damaged: int) -> None:
    read = list(together(line, "f:1"))
    assert [value for value in read if isinstance(value, dict)] == found
    assert len(read) - len(found) == damaged
