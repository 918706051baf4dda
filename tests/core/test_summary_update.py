"""What changes in a record, put into it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.summary_update import (
    SECTIONS,
    STATES,
    indexed,
    numbered,
    room_for_rewrite,
    room_for_update,
    tokens_over,
    updated,
)
from ctxchat.core.tokens import rough_count

RECORD = """## Goal
Moor it.

## Files
- `a.py`: the pier
- **`b.py`**: the mole
  and its lamp

- `c.py`: gone soon

## Next steps
1. Test it.
2. Paint it."""


def files(*lines: str) -> str:
    """The record with these lines under Files."""
    return (
        "\n".join([RECORD.partition("## Files\n")[0] + "## Files", *lines]) + "\n\n" + RECORD[RECORD.index("## Next") :]
    )


A, B, C = "- `a.py`: the pier", "- **`b.py`**: the mole\n  and its lamp", "- `c.py`: gone soon"


@pytest.mark.parametrize(
    ("update", "now"),
    [
        ("## Next steps\n[none]", RECORD.partition("\n\n## Next")[0]),
        ("## Next steps\n3. Ship it.", RECORD.partition("1. Test")[0] + "3. Ship it."),
        ("## Next steps\n[6]\n3. Ship it.", RECORD.replace("1. Test it.\n", "") + "\n3. Ship it."),
        ("## Next steps\n[6] Paint it red.", RECORD.replace("2. Paint it.", "2. Paint it red.")),
        ("## Next steps\n[5]\n[6]", RECORD),
        ("## Next steps\n[keep: 5-6]\n3. Ship it.", RECORD + "\n3. Ship it."),
        ("## Next steps\n[5–6]\n3. Ship it.", RECORD + "\n3. Ship it."),
        ("## Next steps\n- [5], [6]\n3. Ship it.", RECORD + "\n3. Ship it."),
        ("## Next steps\n[5] [6]\n3. Ship it.", RECORD + "\n3. Ship it."),
        ("## Next steps\n[Keep 6, 44]\n3. Ship it.", RECORD.replace("1. Test it.\n", "") + "\n3. Ship it."),
        ("## Next steps\n0. Rest.\n[keep: 6]\n3. Go.", RECORD.partition("1. Test")[0] + "0. Rest.\n2. Paint it.\n3. Go."),
        ("## Next steps\nGo.\n## Files\n[6] Paint it red.", RECORD.partition("1. Test")[0] + "2. Paint it red.\nGo."),
        ("## Next steps\n[6] 5", RECORD.replace("2. Paint it.", "2. 5")),
        ("[gone: 5]", RECORD.replace("1. Test it.\n", "")),
        ("## Next steps\n[as before]\n3. Ship it.", RECORD + "\n3. Ship it."),
        ("## Next\nShip it.\n## Next steps\nThen rest.", RECORD.partition("1. Test")[0] + "Ship it.\nThen rest."),
        ("## Files\n- `d.py`: new", files(A, B, C, "- `d.py`: new")),
        ("## Files\n- b.py: the new mole", files(A, "- b.py: the new mole", C)),
        ("## Files\n[3] `b.py`: the new mole", files(A, "- `b.py`: the new mole", C)),
        ("## Files\n- [3]: - `b.py`: new\n  and lit", files(A, "- `b.py`: new\n  and lit", C)),
        ("## Files\n[2] + at km 3", files(A + " at km 3", B, C)),
        ("## Goal\n[2] + at km 3", files(A + " at km 3", B, C)),
        ("## Files\n[4] gone\n- `d.py`: new", files(A, B, "- `d.py`: new")),
        ("## Files\n- [gone: 4]\n- `d.py`: new", files(A, B, "- `d.py`: new")),
        ("## Decisions\n[gone: 4, 5-6]", files(A, B).partition("\n\n## Next")[0]),
        ("## Files\n- gone: 5000 lamps", files(A, B, C, "- gone: 5000 lamps")),
        ("## Files\n[44] + at km 3", files(A, B, C, "[44] + at km 3")),
        ("## Failed attempts\n- oars", RECORD.replace("## Files", "## Failed attempts\n- oars\n\n## Files")),
        ("## Goal\nas before the storm, moor it", RECORD.replace("Moor it.", "as before the storm, moor it")),
        ("[no changes]", RECORD),
        ("nothing new", ""),
        ("## Files\n[gone: 2-4]", ""),
        (f"## Goal\nSell it.\n## Files\n{A}\n{B}\n- `d.py`: new", f"## Goal\nSell it.\n\n## Files\n{A}\n{B}\n- `d.py`: new"),
        (RECORD, RECORD),
    ],
)  # fmt: skip
def test_a_line_is_kept_added_to_replaced_or_taken_out(update: str, now: str) -> None:
    assert updated(RECORD, update) == now


def test_lines_are_numbered_through_all_sections() -> None:
    shown = numbered(f"Word.\n\n{RECORD}")
    assert shown.startswith(
        "Word.\n\n## Goal\n[1] Moor it.\n\n## Files\n[2] - `a.py`: the pier\n[3] - **`b.py`**: the mole\n"
    )
    assert "\n[5] 1. Test it." in shown and indexed(RECORD).split("\n")[2] == "[3] - **`b.py`**: the mole and its lamp"


def test_a_record_without_room_is_updated_by_taking_lines_out_and_written_anew_only_where_it_is_far_too_long() -> None:
    tokens = rough_count(RECORD)
    assert room_for_update(RECORD, tokens * 4, rough_count) == tokens * 2
    assert tokens_over(RECORD, tokens, tokens * 2, rough_count) == 0
    full = room_for_update(RECORD, tokens, rough_count)
    assert 0 < full < tokens / 2 and tokens_over(RECORD, full, tokens, rough_count) == full
    assert room_for_update(RECORD, tokens // 2, rough_count) == 0
    assert room_for_rewrite(RECORD, tokens * 2, rough_count) == tokens * 2
    assert room_for_rewrite(RECORD, tokens // 2, rough_count) < tokens // 2
    assert room_for_update("The keeper moors it. " * 9, 2_000, rough_count) == 0, "text of another form"


LINES = st.lists(st.from_regex(r"- [a-z]{1,4}(: [a-z ]{0,9}[a-z])?", fullmatch=True), max_size=6)
RECORDS = st.dictionaries(st.sampled_from(SECTIONS), LINES)
MARKS = st.one_of(
    st.builds("[{}] {}".format, st.integers(0, 40), st.sampled_from(["new words", "- new: words", "", "gone"])),
    st.builds("[{}] + {}".format, st.integers(0, 40), st.just("more")),
    st.builds("[gone: {}, {}-{}]".format, *[st.integers(0, 40)] * 3),
    st.builds("[keep: {}-{}, {}]".format, *[st.integers(0, 40)] * 3),
    st.sampled_from(
        ["[as before]", "[none]", "[12", "[gone: ]", "gone", "[3–5] both", "  indented", "```", "#", "## Files"]
    ),
    st.text(max_size=20),
)


def written(sections: dict[str, list[str]]) -> str:
    return "\n\n".join(f"## {title}\n" + "\n".join(lines) for title, lines in sections.items())


def numbers(record: dict[str, list[str]]) -> dict[int, tuple[str, str]]:
    return dict(enumerate(((title, line) for title, lines in record.items() for line in lines), 1))


@given(RECORDS, RECORDS)
def test_what_is_not_taken_out_stays(before: dict[str, list[str]], changes: dict[str, list[str]]) -> None:
    """However a model writes without numbers: in full, only what is new, in any order."""
    now = updated(written(before), written(changes)).split("\n")
    if any(changes.values()):
        assert {line for lines in changes.values() for line in lines[-1:]} <= {*now}
        subjects = {line.partition(":")[0] for line in now}
        lasting = {(t, line.partition(":")[0]) for t, lines in before.items() if t not in STATES for line in lines}
        again = {(t, line.partition(":")[0]) for t, lines in changes.items() for line in lines}
        if 2 * len(lasting & again) <= len(lasting):  # else it is a whole record
            assert {subject for _, subject in lasting} <= subjects


@given(RECORDS, st.dictionaries(st.sampled_from(SECTIONS), st.lists(MARKS, max_size=5)), st.lists(MARKS, max_size=2))
def test_no_change_list_harms_a_line_that_it_does_not_name(
    before: dict[str, list[str]], changes: dict[str, list[str]], first: list[str]
) -> None:
    """Well formed or not: a line that lasts is word for word there, unless a mark, or a line with its subject, names it."""
    record, update = written(before), "\n".join([*first, written(changes)])
    now = updated(record, update)
    if not now:
        return
    here = set(now.split("\n"))
    for number, (title, line) in numbers(before).items():
        if title in STATES or line in here:
            continue
        spoken_of = any(word.isdecimal() and int(word) <= number for word in update.replace("-", " ").translate(
            {ord(c): " " for c in "[],:–"}).split())  # fmt: skip
        again = any(line.partition(":")[0].strip("- ") in other for other in update.split("\n"))
        assert spoken_of or again or "none" in update.lower() or f"{line} more" in now


@given(RECORDS, st.data())
def test_numbered_changes_do_exactly_what_they_say(before: dict[str, list[str]], data: st.DataObject) -> None:
    lines = numbers(before)
    lasting = [n for n, (title, _) in lines.items() if title not in STATES]
    gone = (
        set(data.draw(st.lists(st.sampled_from(lasting), max_size=len(lasting) // 2, unique=True)))
        if lasting
        else set()
    )
    rest = sorted(lines.keys() - gone)
    edited = (
        data.draw(st.dictionaries(st.sampled_from(rest), st.sampled_from(["told anew", "+ more"]), max_size=4))
        if rest
        else {}
    )
    update = f"## Decisions\n[gone: {', '.join(map(str, sorted(gone)))}]\n" if gone else "## Decisions\n"
    now = updated(written(before), update + "\n".join(f"[{n}] {text}" for n, text in edited.items()))
    if not gone and not edited:
        assert now == ""
        return
    told = {
        n: f"{line} more" if edited.get(n) == "+ more" else "- told anew" if n in edited else line
        for n, (_, line) in lines.items()
    }
    for title in before:
        body = "\n".join(told[n] for n in rest if lines[n][0] == title)
        assert not body or f"## {title}\n{body}" in now
