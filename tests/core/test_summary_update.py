"""What changes in a record, put into it."""

from __future__ import annotations

import pytest

from ctxchat.core.summary_update import room_for_update, updated
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
        ("## Files\n[as before]\n- `d.py`: new", RECORD.replace("gone soon", "gone soon\n- `d.py`: new")),
        ("## Files\n[As before, without: `b.py`; c.py]", RECORD.replace("\n- **`b.py`**: the mole\n- `c.py`: gone soon", "")),
        ("## Failed attempts\n- oars", RECORD.replace("## Files", "## Failed attempts\n- oars\n\n## Files")),
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
    assert room_for_update("The keeper moors it. " * 9, 2_000, rough_count) == 0, "text of another form"
