"""The transcript over a long record: what is seen is drawn, nothing jumps, and a reply that streams lays nothing out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from ctxchat.core.calibration import level
from ctxchat.core.context_usage import ContextUsage, Counting, measure
from ctxchat.core.events import ReasoningDelta, TextDelta, ToolFinished
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.ledger import Change, Edit
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.record import CompactionRecord, FactCount, PutBack, SideUsage
from ctxchat.presentation.history import Shown, items
from ctxchat.presentation.inventory import inventory
from ctxchat.presentation.text import short
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.transcript.blocks import SPINNER, Block, CompactionMark, NoticeBlock, ReplyBlock, UserBlock, Waiting
from ctxchat.tui.transcript.column import MAX_DRAWN_ITEMS, TranscriptColumn
from ctxchat.tui.transcript.record_blocks import blocks_for
from ctxchat.tui.transcript.tool_block import ToolBlock
from tests.tui.chatting import blocks, chatting, focus_on, said, sure, until, words
from tests.tui.fakes import AT, FakeSession, Pause, reply


def long_talk(messages: int) -> list[Message]:
    return [
        Message(seq=n, role="user" if n % 2 else "assistant", content=f"message number {n}.", at=AT)
        for n in range(1, messages + 1)
    ]


def reading(app: CtxchatApp) -> list[str]:
    """Some lines in the middle, without the scrollbar."""
    return [line[:80] for line in words(app).split("\n")[5:12]]


def numbers(app: CtxchatApp) -> list[int]:
    """Of the messages on screen, from top to bottom."""
    return [int(n) for n in re.findall(r"message number (\d+)\.", words(app))]


async def test_a_spinner_goes_on_until_the_end_of_a_stream(tmp_path: Path) -> None:
    script = [ReasoningDelta("Let me see."), Pause("thinks"), TextDelta("At Pier"), Pause("speaks"), *reply(" 7.")]
    session = FakeSession(lambda _: script)

    def spinners() -> set[str]:
        return {spinner for spinner in SPINNER if spinner in words(app)}

    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        for shown, then in (("thinking", "thinks"), ("At Pier", "speaks")):
            await until(pilot, lambda shown=shown: shown in words(app))
            first = spinners()
            await until(pilot, lambda first=first: first and spinners() and spinners() != first)
            session.approvals(then).set()
        await until(pilot, lambda: "At Pier 7." in words(app) and not spinners())


async def test_of_a_long_record_only_the_end_is_made(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(messages=long_talk(1000))) as (app, pilot):
        await until(pilot, lambda: "message number 1000." in words(app))
        assert len(blocks(app, Block)) < 40


async def test_every_line_up_to_the_first_message_can_be_read_and_nothing_jumps(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(messages=long_talk(70))) as (app, pilot):
        await until(pilot, lambda: "message number 70." in words(app))
        seen, before = set(numbers(app)), words(app).split("\n")
        while app.chat.transcript.scroll_y >= 3:
            app.chat.transcript.scroll_relative(y=-3)
            await pilot.pause()
            now = words(app).split("\n")
            assert [line[:80] for line in now[5:20]] == [line[:80] for line in before[2:17]], "three lines further"
            seen, before = seen | set(numbers(app)), now
        assert seen == set(range(1, 71))


async def test_pages_up_and_down_come_back_to_the_same_lines(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(messages=long_talk(300))) as (app, pilot):
        await until(pilot, lambda: "message number 300." in words(app))
        pictures = []
        for _ in range(8):
            pictures.append(reading(app))
            await pilot.press("pageup")
        for picture in reversed(pictures):
            await pilot.press("pagedown")
            assert reading(app) == picture


async def test_scrolling_through_everything_never_holds_more_than_a_part(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(messages=long_talk(1500))) as (app, pilot):
        transcript, most = app.chat.transcript, 0
        await until(pilot, lambda: "message number 1500." in words(app))
        for share in range(30, -1, -1):
            transcript.scroll_to(y=transcript.max_scroll_y * share / 30)
            await pilot.pause()
            most = max(most, len(blocks(app, Block)))
        assert MAX_DRAWN_ITEMS // 2 < most < 2 * MAX_DRAWN_ITEMS
        await until(pilot, lambda: numbers(app)[:1] == [1])
        transcript.to_end()
        await until(pilot, lambda: "message number 1500." in words(app))


async def test_lines_share_their_styles_however_many_are_drawn(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(messages=long_talk(300))) as (app, pilot):
        transcript = app.chat.transcript
        await until(pilot, lambda: "message number 300." in words(app))
        styles: dict[int, object] = {}
        for share in range(11):
            transcript.scroll_to(y=transcript.max_scroll_y * share / 10)
            await pilot.pause()
            for y in range(transcript.size.height):
                styles.update((id(segment.style), segment.style) for segment in transcript.render_line(y))
        assert len(styles) < 20


async def test_a_cell_tells_which_letter_stands_there(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(lambda _: reply("a漢字b"))) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "a漢字b" in words(app) and not app.controller.busy)
        transcript = app.chat.transcript
        y = next(y for y in range(transcript.size.height) if "a漢" in transcript.render_line(y).text)
        indent = transcript.render_line(y).text.index("a")
        pane = transcript.content_region
        for cell, letter in ((0, 0), (1, 1), (3, 2), (5, 3), (6, 4), (30, 4)):
            widget, place = app.screen.get_widget_and_offset_at(pane.x + indent + cell, pane.y + y)
            assert widget is transcript and place and place.x == letter
        assert transcript.text_at(0, transcript.size.height + 100) is None


async def test_a_reader_who_scrolled_up_is_left_alone_while_text_arrives(tmp_path: Path) -> None:
    session = FakeSession(
        lambda _: [Pause("a"), *(TextDelta(f"new line {n}\n\n") for n in range(60)), Pause("b"), *reply("end")],
        long_talk(60),
    )
    async with chatting(tmp_path, session) as (app, pilot):
        transcript = app.chat.transcript
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.controller.busy)
        await pilot.press("pageup", "pageup")
        await pilot.pause()
        before, y = reading(app), transcript.scroll_y
        session.approvals("a").set()
        await until(pilot, lambda: transcript.virtual_size.height > 200)
        assert transcript.scroll_y == y and reading(app) == before
        session.approvals("b").set()
        await until(pilot, lambda: not app.controller.busy)
        assert reading(app) == before


async def test_the_end_stays_in_sight_for_one_who_did_not(tmp_path: Path) -> None:
    session = FakeSession(
        lambda _: [*(TextDelta(f"new line {n}\n\n") for n in range(60)), Pause(), *reply("the end")], long_talk(60)
    )
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "new line 59" in words(app))
        session.approvals().set()
        await until(pilot, lambda: "the end" in words(app) and not app.controller.busy)


async def test_what_was_said_here_is_forgotten_and_made_again_like_the_rest(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(messages=long_talk(2 * MAX_DRAWN_ITEMS))) as (app, pilot):
        app.controller.send_draft("question one")
        await until(
            pilot, lambda: len(app.chat.transcript.items) == 2 * MAX_DRAWN_ITEMS + 2 and not app.controller.busy
        )
        for share in range(20, -1, -1):
            app.chat.transcript.scroll_to(y=app.chat.transcript.max_scroll_y * share / 20)
            await pilot.pause()
        assert "question one" not in said(app, UserBlock)
        app.chat.transcript.to_end()
        await until(pilot, lambda: "question one" in words(app) and "You said: question one" in words(app))


async def test_going_to_a_message_far_back(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(messages=long_talk(400))) as (app, pilot):
        app.chat.transcript.go_to("g51")
        await until(pilot, lambda: "message number 51." in words(app))
        app.chat.transcript.go_to("not there")


def compacted(session: FakeSession) -> Change:
    ledger = session.state.ledger
    record = CompactionRecord(
        id="k1", reason="auto", strategy="pipeline", outcome="compacted", before=SideUsage(118_400, 214),
        after=SideUsage(31_200, 60), folded_messages=42, facts=FactCount(44, 41),
    )  # fmt: skip
    summary = single("summary", Message(seq=900, role="user", content="summary"), 0)
    covers = tuple(g.id for g in ledger.groups[:-4])
    return Change(id="k1", kind="compaction", edits=(Edit("digest", covers, summary),), record=record)


async def test_a_compaction_is_a_ruled_line_that_can_be_undone(tmp_path: Path) -> None:
    session = FakeSession(messages=long_talk(30))
    change = compacted(session)
    session.state = type(session.state)(ledger=session.state.ledger.apply(change))
    async with chatting(tmp_path, session, (120, 36)) as (app, pilot):
        await until(pilot, lambda: blocks(app, CompactionMark))
        line = said(app, CompactionMark)
        assert "42 messages compacted −87.2k kept 41 of 44 facts" in line and " undo " in line and "undo u" not in line
        assert "view F3" in line  # which works wherever the focus is
        assert [s.key for s in app.chat.transcript.items].index("change:k1") == 26
        focus_on(app, *blocks(app, CompactionMark))
        assert "view v" in said(app, CompactionMark)
        await sure(pilot, "u")
        await until(pilot, lambda: not blocks(app, CompactionMark))
        assert session.state.ledger.changes == ()
        assert "message number 30." in words(app)


@pytest.mark.parametrize("size", [(40, 20), (20, 20)])
async def test_a_narrow_mark_says_all_of_it_in_more_lines(tmp_path: Path, size: tuple[int, int]) -> None:
    session = FakeSession(messages=long_talk(30))
    change = compacted(session)
    assert change.record is not None
    record = msgspec.structs.replace(change.record, lost=("a", "b", "c"))
    session.state = type(session.state)(
        ledger=session.state.ledger.apply(msgspec.structs.replace(change, record=record))
    )
    async with chatting(tmp_path, session, size) as (app, pilot):
        await until(pilot, lambda: blocks(app, CompactionMark))
        (mark,) = blocks(app, CompactionMark)
        shown = app.chat.transcript.words(mark)
        assert all(len(line) <= size[0] for line in shown.split("\n"))
        assert all(words in shown for words in ("kept 41 of 44", "view", "undo", "branch", "re-insert 3"))


async def test_what_came_back_of_a_compaction_is_told_on_its_mark(tmp_path: Path) -> None:
    session = FakeSession(messages=long_talk(30))
    whole = compacted(session)
    assert whole.record is not None
    session.state = type(session.state)(ledger=session.state.ledger.apply(whole))
    async with chatting(tmp_path, session, (120, 36)) as (app, pilot):
        await until(pilot, lambda: blocks(app, CompactionMark))
        record = msgspec.structs.replace(whole.record, folded_messages=30, back=PutBack(12, 8_100))
        left = msgspec.structs.replace(whole, record=record)
        session.state = type(session.state)(ledger=session.state.ledger.undo("k1").apply(left))
        app.chat.changed(session.context_usage, "Undone in part")
        line = "30 messages compacted −79.1k 12 put back"
        await until(pilot, lambda: line in said(app, CompactionMark))


async def test_branching_opens_a_copy(tmp_path: Path) -> None:
    session = FakeSession(messages=long_talk(30))
    session.state = type(session.state)(ledger=session.state.ledger.apply(compacted(session)))
    async with chatting(tmp_path, session, (120, 36)) as (app, pilot):
        await until(pilot, lambda: blocks(app, CompactionMark))
        focus_on(app, *blocks(app, CompactionMark))
        await sure(pilot, "b")
        await until(pilot, lambda: app.session is not None and app.session.id.startswith("s1-"))


async def test_details_unfold_and_fold(tmp_path: Path) -> None:
    from ctxchat.core.messages import Reasoning, ToolCall

    talk = [
        Message(seq=1, role="user", content="q"),
        Message(
            seq=2, role="assistant", reasoning=Reasoning("deep thought"), calls=(ToolCall("c", "read", '{"path":"a"}'),)
        ),
        Message(seq=3, role="tool", call_id="c", name="read", content="the file's words"),
    ]
    async with chatting(tmp_path, FakeSession(messages=talk)) as (app, pilot):
        await until(pilot, lambda: "read a" in words(app))
        assert "the file's words" not in words(app)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "the file's words" in words(app))
        await pilot.press("ctrl+o")
        await until(pilot, lambda: "the file's words" not in words(app))


async def test_a_very_long_answer_is_whole(tmp_path: Path) -> None:
    long = "# Title\n\n" + "\n".join(f"- item **{n}**" for n in range(300))
    session = FakeSession(
        messages=[Message(seq=1, role="user", content="q"), Message(seq=2, role="assistant", content=long)]
    )
    async with chatting(tmp_path, session) as (app, pilot):
        await until(pilot, lambda: "item 299" in words(app))
        assert all(f"• item {n}" in said(app, ReplyBlock) for n in range(300))


async def test_an_answer_is_whole_although_a_line_below_it_changes_in_the_same_moment(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        app.chat.remove_class("-empty")
        answer, below = ReplyBlock("one line"), ReplyBlock("below")
        app.chat.transcript.add_block(answer)
        app.chat.transcript.add_block(below)
        await until(pilot, lambda: "below" in words(app))
        answer.append_text("\n\n".join("12345"))
        below.append_text("\n\nchanged as well")
        await until(pilot, lambda: all(f"\n  {n} " in words(app) for n in "2345") and "changed as well" in words(app))


async def test_a_call_that_is_stopped_as_it_comes_into_the_record_spins_no_more(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        app.chat.remove_class("-empty")
        answer, call = ReplyBlock("one line"), ToolBlock("c1", "shell", {"command": "make"})
        app.chat.transcript.add_block(answer)
        app.chat.transcript.add_block(call)
        await until(pilot, lambda: "shell make" in words(app))
        call.progress("working")  # drawn at once; what follows is due a moment later
        call.stop()
        group = single("reply", Message(1, "assistant", "one line", at=AT), 1)
        app.chat.transcript.extend_record([Shown(group)], {}, {"g1": [answer, call]})
        await until(pilot, lambda: "cancelled" in words(app))


@pytest.mark.parametrize(("width", "line"), [(78, "does not exist. Did you mean"), (40, "does not ex"), (18, "✗")])
def test_why_a_call_failed_stands_in_its_line(width: int, line: str) -> None:
    why = "docs/configuration.md does not exist. Did you mean docs/compaction.md, docs/contributing.md?"
    finished = ToolFinished("c1", "read_file", "error", why, 30, 0.01)
    drawn = ToolBlock("c1", "read_file", {"path": "docs/configuration.md"}, finished).draw(width)
    assert line in drawn[0].words.plain and drawn[0].words.cell_length <= width


def test_no_sign_of_a_failure_stands_alone_where_there_is_room() -> None:
    finished = ToolFinished("c1", "read_file", "error", "a.py", 5, 0.01)
    assert "✗ a.py" in ToolBlock("c1", "read_file", {"path": "a.py"}, finished).draw(78)[0].words.plain


async def test_a_pass_between_turns_is_marked_between_them(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session, (100, 40)) as (app, pilot):
        for text in ("one", "two"):
            await pilot.press(*text, "enter")
            await until(pilot, lambda text=text: f"You said: {text}" in words(app) and not app.controller.busy)
        session.fold()
        await app.chat.refresh_session()
        await pilot.press(*"six", "enter")
        await until(pilot, lambda: "You said: six" in words(app) and not app.controller.busy)
        wanted = ("said: one", "said: two", "compacted", "said: six")
        found = [w for row in words(app).split("\n") for w in wanted if w in row]
        assert found == list(wanted)


class Dear(FakeSession):
    """Its server counts half as much again as we do."""

    @property
    def context_usage(self) -> ContextUsage:
        return measure(self.view, self.budget, Counting(self.model, level(1.5)))


async def test_a_result_weighs_in_the_chat_what_it_weighs_in_the_x_ray(tmp_path: Path) -> None:
    call = ToolCall(id="c1", name="read_file", arguments='{"path": "a.py"}')
    said = [
        Message(1, "user", "read it", at=AT),
        Message(2, "assistant", "", calls=(call,), at=AT),
        Message(3, "tool", "word " * 1_000, call_id="c1", at=AT),
        Message(4, "assistant", "done", at=AT),
    ]
    async with chatting(tmp_path, Dear(messages=said)) as (app, pilot):
        await until(pilot, lambda: "read_file" in words(app))
        row = next(r for r in inventory(app.session.view, app.session.context_usage) if r.kind == "result")
        assert row.tokens > 1_400
        assert any(line.rstrip().endswith(short(row.tokens)) for line in words(app).split("\n") if "read_file" in line)


def test_words_of_ours_stand_above_what_happened_after_them() -> None:
    session, column = FakeSession(messages=long_talk(30)), TranscriptColumn(lambda stack: None)
    ledger = session.state.ledger
    column.set_record(items(ledger), {})
    column.set_width(80)
    asked, waiting, told = (
        NoticeBlock("info", "The agent asks for room"),
        Waiting("making room"),
        NoticeBlock("info", "later"),
    )
    for block in (asked, waiting, told):
        column.add_block(block)
    change = msgspec.structs.replace(compacted(session), at="9999-01-01T00:00:00Z")
    column.extend_record(items(ledger.apply(change)), {}, {})
    column.discard(waiting)
    *_, above, mark, below = reversed(list(column.upwards()))
    assert (above, below) == (asked, told) and isinstance(mark, CompactionMark)


def test_items_that_come_one_by_one_without_blocks_stand_where_they_belong() -> None:
    """As of a sub-agent that is looked at while it works: each at the end, however many there are."""
    shown = items(FakeSession(messages=long_talk(560)).state.ledger)
    column = TranscriptColumn(lambda stack: None)
    column.set_record(shown[:1], {})
    column.set_width(80)
    for end in range(2, len(shown) + 1):
        column.extend_record(shown[:end], {}, {})
    drawn = sum(len(column.lines(index)) for index in range(len(column)))
    assert len(column) == len(shown) and column.heights.total == drawn


def test_an_item_that_stays_below_another_has_the_gap_of_the_one_above_it_now() -> None:
    call = ToolCall("c1", "read_file", '{"path": "x.py"}')
    said = [
        Message(1, "user", "read it", at=AT),
        Message(2, "assistant", "Yes.", calls=(call,), at=AT),
        Message(3, "tool", "a = 1", call_id="c1", at=AT),
        Message(4, "assistant", "", calls=(msgspec.structs.replace(call, id="c2"),), at=AT),
        Message(5, "tool", "a = 2", call_id="c2", at=AT),
        Message(6, "assistant", "done", at=AT),
        Message(7, "user", "thanks", at=AT),
    ]
    shown = items(FakeSession(messages=said).state.ledger)

    def drawn(column: TranscriptColumn, record: Sequence[Shown]) -> list[list[str]]:
        column.set_record(record, {})
        column.set_width(80)
        return [[line.words.plain for line in column.lines(index)] for index in range(len(column))]

    for left_out in range(len(shown)):
        column, rest = TranscriptColumn(lambda stack: None), [*shown[:left_out], *shown[left_out + 1 :]]
        drawn(column, shown)
        assert drawn(column, rest) == drawn(TranscriptColumn(lambda stack: None), rest)


async def test_a_jump_takes_the_focus_from_a_block_and_its_highlight_has_its_whole_time(tmp_path: Path) -> None:
    session = FakeSession(messages=long_talk(70))
    async with chatting(tmp_path, session) as (app, pilot):
        await until(pilot, lambda: "message number 70." in words(app))
        transcript, mark = app.chat.transcript, CompactionMark(compacted(session))
        transcript.add_block(mark)
        focus_on(app, mark)
        group = transcript.items[3].group
        assert group and mark._focused
        transcript._scroll_to_item(group.id)
        assert not mark._focused
        first = transcript._highlight_timer
        transcript._scroll_to_item(group.id)
        assert first and first._task is None, "the end of the first is not that of the second"


def test_an_edit_of_the_record_is_shown_as_what_it_replaced() -> None:
    call = ToolCall("c1", "edit_file", '{"path": "x.py", "old": "a = 1\\nb = 2", "new": "a = 1\\nb = 3"}')
    said = [
        Message(1, "assistant", calls=(call,), at=AT),
        Message(2, "tool", "Changed x.py: +1 −1.", call_id="c1", at=AT),
    ]
    (block,) = blocks_for(Shown(group=group_messages(said)[0]), {})
    assert isinstance(block, ToolBlock)
    block.press("fold")
    words = [line.words.plain for line in block.draw(60)]
    assert "+1 −1" in words[0] and words[1:4] == [" a = 1", "-b = 2", "+b = 3"]


async def test_the_focus_is_seen_where_a_compaction_begins_above_what_is_on_screen(tmp_path: Path) -> None:
    session = FakeSession(messages=long_talk(30))
    session.state = type(session.state)(ledger=session.state.ledger.apply(compacted(session)))
    async with chatting(tmp_path, session, (40, 14)) as (app, pilot):
        transcript = app.chat.transcript
        await until(pilot, lambda: blocks(app, CompactionMark))
        (mark,) = blocks(app, CompactionMark)

        def first_line() -> int:
            """The line of the pane at which the mark begins."""
            top = transcript._first_line_of(transcript._column.stack_of(mark), mark)
            return top - round(transcript.scroll_y)

        transcript.scroll_relative(y=first_line() + 1, animate=False, force=True)
        await until(pilot, lambda: first_line() < 0)
        plain = transcript.visual_style.rich_style.bgcolor
        await pilot.press("tab")
        await until(pilot, lambda: transcript._focused is mark)
        await until(pilot, lambda: first_line() >= 0)
        assert plain not in {
            segment.style and segment.style.bgcolor for segment in transcript.render_line(first_line())
        }
