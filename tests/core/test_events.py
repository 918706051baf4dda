"""Events as JSON lines: what a script relies on in each of them."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec

from ctxchat.core.events import Delegated, Event, Stamped
from ctxchat.core.record import TOLD, CompactionRecord


def test_no_event_has_a_field_that_would_take_the_place_of_what_every_line_has():
    for kind in get_args(Event):
        names = TOLD if kind is CompactionRecord else kind.__struct_fields__
        assert not {"type", "session", "seq", "at"} & set(names), kind


def test_a_line_on_a_sub_agent_belongs_to_the_session_that_called_it():
    event = Delegated("c1", "reviewer", "below", "m", 10, 100, 0.5)
    line = msgspec.json.decode(Stamped("above", 3, "2026-01-01T00:00:00Z", event).json())
    assert (line["type"], line["session"], line["sub_session"], line["seq"]) == ("delegated", "above", "below", 3)


def test_the_documentation_names_every_event_with_its_fields() -> None:
    rows = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8").splitlines()
    for kind in get_args(Event):
        tag = kind.__struct_config__.tag
        [row] = [row for row in rows if row.startswith(f"| `{tag}` |")]
        assert "as `ctxchat " in row or all(f"`{name}`" in row for name in kind.__struct_fields__), tag


def test_of_a_compaction_programs_are_told_figures_and_no_texts() -> None:
    record = CompactionRecord(
        "k1", "auto", "pipeline", "compacted", at="now", folded=("g1", "g2"), summary="long", lost=("x",)
    )
    line = msgspec.json.decode(Stamped("s", 1, "later", record).json())
    assert set(line) == {"type", "session", "seq", *TOLD, "at"}
    assert (line["type"], line["at"], line["folded_groups"]) == ("compaction_finished", "later", 2)
