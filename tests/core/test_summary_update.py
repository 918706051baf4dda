"""What changes in a record, put into it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.summary_update import SECTIONS, STATES, room_for_rewrite, room_for_update, updated
from ctxchat.core.tokens import rough_count

RECORD = """## Goal
Moor it.

## Files
- `a.py`: the pier
- **`b.py`**: the mole
- `c.py`: gone soon

## Next steps
1. Test it."""


@pytest.mark.parametrize(
    ("update", "now"),
    [
        ("## Next steps\n[none]", RECORD.partition("\n\n## Next")[0]),
        ("## Next steps\n2. Ship it.", RECORD.replace("1. Test", "2. Ship")),
        ("## Files\n- `d.py`: new", RECORD.replace("gone soon", "gone soon\n- `d.py`: new")),
        ("## Files\n[as before]\n- b.py: the new mole", RECORD.replace("**`b.py`**: the mole", "b.py: the new mole")),
        ("## Files\n- without `a.py` no pier", RECORD.replace("gone soon", "gone soon\n- without `a.py` no pier")),
        ("## Next steps\n[as before]\n2. Ship it.", RECORD.replace("1. Test it.", "1. Test it.\n2. Ship it.")),
        ("## Next steps\n[as before]\n[without: Test it]\n2. Ship it.", RECORD.replace("1. Test it.", "2. Ship it.")),
        ("## Next\nShip it.\n## Next steps\nThen rest.", RECORD.replace("1. Test it.", "Ship it.\nThen rest.")),
        ("## Files\n[As before, without: `b.py`; c.py]\n", RECORD.replace("\n- **`b.py`**: the mole\n- `c.py`: gone soon", "")),
        ("## Failed attempts\n- oars", RECORD.replace("## Files", "## Failed attempts\n- oars\n\n## Files")),
        ("## Files\n- d.py: new\n- [without: `b.py`; c.py]", RECORD.replace(
            "- **`b.py`**: the mole\n- `c.py`: gone soon", "- d.py: new")),
        ("## Goal\nas before the storm, moor it", RECORD.replace("Moor it.", "as before the storm, moor it")),
        ("nothing new", ""),
        (RECORD, RECORD),
    ],
)  # fmt: skip
def test_a_section_is_kept_added_to_replaced_or_taken_out(update: str, now: str) -> None:
    assert updated(RECORD, update) == now


def test_only_a_record_with_room_is_updated() -> None:
    tokens = rough_count(RECORD)
    assert room_for_update(RECORD, tokens * 2, rough_count) > 0
    assert room_for_update(RECORD, tokens + 5, rough_count) == 0
    assert room_for_rewrite(RECORD, tokens * 2, rough_count) == tokens * 2
    rewritten = room_for_rewrite(RECORD, tokens + 5, rough_count)
    assert room_for_update(RECORD, int(tokens * (tokens + 5) / rewritten), rough_count) > 0, (
        "the next is an update again"
    )
    assert room_for_update("The keeper moors it. " * 9, 2_000, rough_count) == 0, "text of another form"


LINES = st.lists(st.from_regex(r"- [a-z]{1,4}(: [a-z ]{0,9}[a-z])?", fullmatch=True), max_size=6)


@given(st.dictionaries(st.sampled_from(SECTIONS), LINES), st.dictionaries(st.sampled_from(SECTIONS), LINES))
def test_what_is_not_taken_out_stays(before: dict[str, list[str]], changes: dict[str, list[str]]) -> None:
    """However a model writes: in full, only what is new, in any order."""
    record, update = (
        "\n\n".join(f"## {title}\n" + "\n".join(lines) for title, lines in one.items()) for one in (before, changes)
    )
    now = updated(record, update).split("\n")
    assert {line for lines in changes.values() for line in lines[-1:]} <= {*now}
    if changes:
        subjects = {line.partition(":")[0] for line in now}
        kept = {title: lines for title, lines in before.items() if title not in STATES or title not in changes}
        assert {line.partition(":")[0] for lines in kept.values() for line in lines} <= subjects
