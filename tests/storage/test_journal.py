"""A session is the fold of its journal: what was acknowledged is there, what was cut off is closed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.core.calibration import Anchor, Calibration, Mix
from ctxchat.core.errors import StorageError
from ctxchat.core.events import Usage
from ctxchat.core.grouping import single
from ctxchat.core.journal import (
    Changed,
    CompactionBegun,
    CompactionFinished,
    Measured,
    ModelChosen,
    Named,
    Partial,
    Record,
    Sealed,
    Spent,
    Undone,
    fold,
)
from ctxchat.core.ledger import Change
from ctxchat.core.messages import Group, Image, Message, Opaque, Reasoning, Text, ToolCall
from ctxchat.core.record import CompactionRecord, SideUsage
from ctxchat.storage import loading, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import open_journal
from tests.storage.samples import compaction, reply, turns, user

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


parts = st.one_of(
    st.builds(Text, words),
    st.builds(Image, words, st.integers(0, 9), st.integers(0, 9)),
    st.builds(Opaque, words, st.just("{}")),
)


contents = st.one_of(words, st.lists(parts, max_size=3).map(tuple))
scales = st.floats(0.2, 5)


@st.composite
def journals(draw: st.DrawFn) -> list[Record]:
    """Any journal an agent could write: groups with rising numbers, changes over them, undoings, measurements."""
    records: list[Record] = []
    groups: list[str] = []
    changes: list[str] = []
    seq = 1
    for number in range(draw(st.integers(0, 25))):
        match draw(
            st.sampled_from(["group", "group", "group", "change", "undo", "measured", "named", "model", "pass"])
        ):
            case "group":
                kind = draw(st.sampled_from(["user", "reply", "note"]))
                role = "assistant" if kind == "reply" else "user"
                message = Message(seq, role, draw(contents), reasoning=draw(st.none() | st.builds(Reasoning, words)))
                records.append(Sealed((single(kind, message, number),)))
                groups.append(f"g{seq}")
                seq += draw(st.integers(1, 3))
            case "change":
                covers = [g for g in groups if draw(st.booleans())]
                changed = compaction(f"c{number}", *covers) if covers else Changed(Change(f"c{number}", "pin"))
                records.append(msgspec.structs.replace(changed, scale=draw(scales)))
                changes.append(f"c{number}")
            case "undo" if changes:
                records.append(Undone(draw(st.sampled_from(changes)), scale=draw(scales)))
            case "measured":
                usage = Usage(draw(st.integers(0, 10**6)), 5, cost_usd=0.25)
                records.append(
                    Measured(
                        "m", usage, usage.prompt, Anchor(1, Mix(2), 3), Calibration(), turn_end=draw(st.booleans())
                    )
                )
            case "named":
                records.append(Named(draw(words)))
            case "model":
                records.append(ModelChosen(draw(words)))
            case _:
                records.append(CompactionBegun(f"p{number}", reason="manual", strategy="truncate"))
                records.append(ended(f"p{number}"))
    return records


def ended(id: str) -> CompactionFinished:
    sides = (SideUsage(10, 2), SideUsage(5, 1))
    return CompactionFinished(
        CompactionRecord(id, "manual", "truncate", "compacted", before=sides[0], after=sides[1], cost_usd=0.01)
    )


def listed(records: list[Record], database: Database, session: str) -> tuple[int, bool]:
    """What the list shows as used, and whether that is an estimate: the last reply's count, changed by compactions and by what
    was said since; what the messages hold where there was none."""
    used, estimated, since = 0, False, 0
    freed: dict[str, int] = {}
    tokens = dict(database.query("SELECT seq, tokens FROM messages WHERE session = ?", (session,)))
    for record in records:
        match record:
            case Sealed(groups=groups):
                said = [m for g in groups for m in g.messages if m.role != "assistant" or m.interrupted]
                since += sum(tokens[m.seq] for m in said)
            case Measured():
                used, estimated, since = record.used, False, 0
            case Changed(change=Change(record=CompactionRecord() as done)):
                used, estimated, since = done.after.used, True, 0
                freed[done.id] = done.before.used - done.after.used
            case Undone(change=name) if name in freed:
                used, estimated = used + freed.pop(name), True
            case _:
                pass
    if used:
        return used + since, estimated or since > 0
    return database.query("SELECT coalesce(sum(tokens), 0) FROM messages WHERE session = ?", (session,))[0][0], True


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(journals(), st.data())
def test_a_session_is_the_fold_of_what_was_written(
    database: Database, records: list[Record], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(records)))
    session = sessions.create(database, records=records[:cut])
    begun = loading.read_news(database, session)
    sessions.append(database, session, *records[cut:])
    loaded = loading.load_state(database, session, owned=True)
    assert loaded.state == fold(records)
    assert fold(loading.read_news(database, session, begun.last).records, fold(begun.records)) == loaded.state
    assert loaded.repairs == ()
    row = sessions.row(database, session)
    assert row.messages == len(loaded.state.ledger.messages())
    assert (row.used, row.estimated) == listed(records, database, session)
    assert row.compactions == len(loaded.state.ledger.compactions) or loaded.state.skipped


def test_many_groups_are_covered_by_place_and_come_back_by_name(database: Database) -> None:
    records: list[Record] = [*turns(60)]
    ids = [g.id for r in turns(60) for g in r.groups]
    second = compaction("c2", *ids[30:70:2], *ids[100:140])
    records += [compaction("c1", *ids[:90]), msgspec.structs.replace(second, scale=1.5)]
    session = sessions.create(database, records=records)
    assert loading.load_state(database, session).state == fold(records)
    bodies = database.query("SELECT length(body) FROM journal WHERE session = ? ORDER BY seq DESC LIMIT 2", (session,))
    assert all(size < 1200 for (size,) in bodies)


async def test_what_is_acknowledged_can_be_read_by_another_window(database: Database) -> None:
    session = sessions.create(database)
    journal = open_journal(database, session).journal
    await journal.write(Sealed((user(1, "hello"),)), Named("greeting"))
    with Database(database.folder) as other:
        state = loading.load_state(other, session).state
    assert state.title == "greeting"
    assert [m.text for m in state.ledger.messages()] == ["hello"]
    await journal.close()


async def test_writes_keep_their_order(database: Database) -> None:
    session = sessions.create(database)
    journal = open_journal(database, session).journal
    await asyncio.gather(*(journal.write(Sealed((user(seq, str(seq)),))) for seq in range(1, 60)))
    state = loading.load_state(database, session).state
    assert [m.seq for m in state.ledger.messages()] == list(range(1, 60))


async def test_halves_of_surrogate_pairs_cost_a_sign_and_not_the_message(database: Database) -> None:
    session = sessions.create(database)
    journal = open_journal(database, session).journal
    await journal.write(Sealed((reply(1, "cut \ud83d off"),)), Named("\udc00"))
    state = loading.load_state(database, session).state
    assert state.ledger.messages()[0].text == "cut \ufffd off"
    assert sessions.row(database, session).title == "\ufffd"


# ── cut off ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def reopened(database: Database, partial: Partial) -> tuple[str, tuple[str, ...], list[Group]]:
    """A session with one user message and this partial round, whose process died."""
    session = sessions.create(database, records=[Sealed((user(1, "go"),))])
    journal = open_journal(database, session).journal
    await journal.keep(Partial(Message(2, "assistant", "older")))
    await journal.keep(partial)
    await journal.close()
    seen = loading.load_state(database, session)
    opened = open_journal(database, session)
    assert seen.state == opened.state
    again = loading.load_state(database, session)
    assert (again.state, again.problems) == (opened.state, ())
    await opened.journal.close()
    return session, opened.problems, list(opened.state.ledger.groups[1:])


async def test_a_reply_cut_off_is_kept_and_marked(database: Database) -> None:
    _, problems, groups = await reopened(database, Partial(Message(2, "assistant", "half an ans"), turn=1))
    (group,) = groups
    assert (group.kind, group.turn, group.first.content, group.first.interrupted) == ("reply", 1, "half an ans", True)
    assert "m2" in problems[0]


async def test_an_empty_reply_leaves_nothing(database: Database) -> None:
    _, problems, groups = await reopened(database, Partial(Message(2, "assistant", "  ")))
    assert (groups, problems) == ([], ())


async def test_a_round_cut_off_is_closed(database: Database) -> None:
    calls = (ToolCall("a", "shell", "{}"), ToolCall("b", "shell", "{}"))
    done = Message(3, "tool", "fine", call_id="b")
    _, _, groups = await reopened(database, Partial(Message(2, "assistant", "", calls=calls), (done,), 1))
    (group,) = groups
    assert group.kind == "round"
    assert [(m.seq, m.content) for m in group.messages] == [(2, ""), (4, loading.INTERRUPTED), (3, "fine")]


@pytest.mark.parametrize("said", ["half an ans", " "])
async def test_what_a_round_that_was_cut_off_had_cost_is_counted_once(database: Database, said: str) -> None:
    noted = (Measured("m", Usage(100, 5, cost_usd=0.25), 105), Spent("m", 0.5))
    session, _, _ = await reopened(database, Partial(Message(2, "assistant", said), turn=1, noted=noted))
    assert loading.load_state(database, session).state.cost_usd == 0.75


async def test_a_write_forgets_the_partial_round(database: Database) -> None:
    session = sessions.create(database)
    journal = open_journal(database, session).journal
    await journal.keep(Partial(Message(1, "assistant", "half")))
    await journal.write(Sealed((reply(1, "whole"),)))
    await journal.close()
    assert [m.text for m in loading.load_state(database, session).state.ledger.messages()] == ["whole"]


async def test_a_pass_without_an_end_is_closed_once(database: Database) -> None:
    session = sessions.create(
        database, records=[*turns(2), CompactionBegun("c1", reason="manual", strategy="summarize")]
    )
    assert loading.load_state(database, session).problems == ()  # another window may be at it
    opened = open_journal(database, session)
    assert "c1" in opened.problems[0]
    assert [(p.id, p.outcome, p.reason) for p in opened.state.compactions] == [("c1", "failed", "manual")]
    await opened.journal.close()
    again = open_journal(database, session)
    assert again.problems == ()
    assert again.state == opened.state
    await again.journal.close()


async def test_a_pass_whose_change_is_there_counts_as_made(database: Database) -> None:
    session = sessions.create(database, records=[*turns(2), CompactionBegun("c1"), compaction("c1", "g1", "g2")])
    opened = open_journal(database, session)
    assert [(p.outcome, p.before.used) for p in opened.state.compactions] == [("compacted", 1000)]
    await opened.journal.close()


async def test_what_older_versions_wrote_twice_is_one_pass_paid_once(database: Database) -> None:
    made = compaction("c1", "g1", "g2")
    assert made.change.record is not None
    result = msgspec.structs.replace(made.change.record, at="", cost_usd=0.5, summary="")
    change = msgspec.structs.replace(made.change, record=msgspec.structs.replace(made.change.record, cost_usd=0.75))
    session = sessions.create(
        database,
        records=[
            *turns(2),
            CompactionBegun("c1"),
            CompactionFinished(result, "then"),
            Changed(change),
            CompactionBegun("c2"),
            ended("c2"),
        ],
    )
    state = loading.load_state(database, session, owned=True).state
    assert [(p.id, p.cost_usd) for p in state.compactions] == [("c1", 0.75), ("c2", 0.01)]
    assert state.cost_usd == pytest.approx(0.51) and len(state.endings) == 2


@pytest.mark.parametrize("figure", [2**63, 10**25])
async def test_a_figure_that_no_column_holds_is_an_error_and_changes_nothing(database: Database, figure: int) -> None:
    opened = open_journal(database, sessions.create(database, records=turns(1)))
    precious = Sealed((user(9, "precious", 2),))
    with pytest.raises(StorageError) as problem:
        await opened.journal.write(
            precious, Measured("m", Usage(figure, 1), figure, Anchor(1, Mix(2), 3), Calibration())
        )
    assert problem.value.hint == "Nothing was changed."
    await opened.journal.write(precious)
    await opened.journal.close()
    assert loading.load_state(database, opened.journal.session).state.ledger.messages()[-1].text == "precious"


# ── followed by another ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_came_since_is_read_while_another_works_on_it(database: Database) -> None:
    session = sessions.create(database, records=[Sealed((user(1, "go"),))])
    journal = open_journal(database, session).journal
    first = loading.read_news(database, session)
    assert fold(first.records) == loading.load_state(database, session).state and first.under_way is None
    assert loading.read_news(database, session, first.last) == loading.JournalNews((), first.last, None)

    await journal.keep(Partial(Message(2, "assistant", "half an ans"), turn=1))
    half = loading.read_news(database, session, first.last)
    assert half.under_way and half.under_way.assistant.text == "half an ans" and half.records == ()

    await journal.write(Sealed((reply(2, "whole"),)), compaction("k1", "g1"))
    news = loading.read_news(database, session, half.last)
    assert (news.under_way, news.last) == (None, first.last + 2)
    assert fold(news.records, fold(first.records)) == loading.load_state(database, session).state
    await journal.close()


def test_what_cannot_be_read_is_left_out_of_what_came_since(database: Database) -> None:
    session = sessions.create(database, records=[Sealed((user(1, "go"),)), Sealed((reply(2, "yes"),))])
    with database.transaction() as connection:
        connection.execute("UPDATE journal SET body = x'ff' WHERE session = ? AND seq = 1", (session,))
        connection.execute("INSERT OR REPLACE INTO partials VALUES (?, ?, ?)", (session, "2026", b"\xff"))
    news = loading.read_news(database, session)
    assert [type(record) for record in news.records] == [Sealed] and news.under_way is None
