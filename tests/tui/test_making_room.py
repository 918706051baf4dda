"""Making room from the chat, end to end over the real session: preview, edited summary, consent, ghost, what was lost."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

import pytest

from ctxchat.core.events import CompactionSuggested
from ctxchat.core.permissions import Answer
from ctxchat.presentation.compactions import compaction_entries
from ctxchat.tui.chat.approval import ApprovalPanel
from ctxchat.tui.chat.offers import SuggestionPanel
from ctxchat.tui.panels.compaction_text import record
from ctxchat.tui.panels.preview import PreviewScreen
from ctxchat.tui.panels.summary import SummaryEditor, SummaryScreen
from ctxchat.tui.panels.undoing import UndoScreen
from ctxchat.tui.transcript.blocks import PAST, CompactionMark
from tests.doubles.scripted import says
from tests.tui.chatting import ASK, blocks, chatting, focus_on, idle, sure, until, words
from tests.tui.fakes import FakeServices, FakeSession, Pause, reply
from tests.tui.real import LONG, SUMMARY, Writer, say, talking

ANSWERS = repeat(says("so it is"))
QUESTIONS = [f"question {n}? {LONG}" for n in range(4)]


async def test_the_preview_is_agreed_to_and_the_pass_leaves_its_mark(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS, said=QUESTIONS) as (app, pilot, desk):
        used = desk.session.context_usage.used
        await pilot.press(*"draft", "f8")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen))
        await pilot.press("f8")  # once more: as it stands
        await until(pilot, lambda: app.screen is app.chat and blocks(app, CompactionMark))
        assert desk.session.context_usage.used < used and len(desk.state.ledger.compactions) == 1
        assert app.chat.composer.draft == "draft"
        assert "compacted" in words(app)
        await until(pilot, lambda: "alt+u undo" in words(app))
        await pilot.press("alt+u")
        await until(pilot, lambda: "Undone: the model sees" in words(app))
        await until(pilot, lambda: "alt+u" not in words(app))


async def test_shift_tab_goes_back_through_the_preview_and_changes_no_permission(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS, said=QUESTIONS) as (app, pilot, desk):
        mode = desk.approvals.mode
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen))
        first = app.focused
        await pilot.press("tab")
        assert app.focused is not first
        await pilot.press("shift+tab")
        assert isinstance(app.screen, PreviewScreen) and app.focused is first and desk.approvals.mode == mode
        await pilot.press("escape", "shift+tab")
        await until(pilot, lambda: desk.approvals.mode != mode)


async def test_shift_f8_and_compact_now_run_without_looking(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS, said=QUESTIONS) as (app, pilot, desk):
        await pilot.press("shift+f8")
        await until(pilot, lambda: len(desk.state.ledger.compactions) == 1)
        for n in range(3):
            await say(app, pilot, f"question {n}? {LONG}")
        await pilot.press(*"/compact now", "enter")
        await until(pilot, lambda: len(desk.state.ledger.compactions) == 2)


async def test_the_summary_is_read_and_mended_before_it_is_applied(tmp_path: Path) -> None:
    writer = Writer(waits=True)
    async with talking(tmp_path, ANSWERS, writer=writer, said=QUESTIONS) as (app, pilot, desk):
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, SummaryScreen) and "## Goal" in words(app))
        await pilot.press("enter", *"x")  # not before it is whole
        assert isinstance(app.screen, SummaryScreen)
        writer.go.set()
        await until(pilot, lambda: app.screen.query_one(SummaryEditor).text == SUMMARY)
        await until(pilot, lambda: not app.screen.query_one(SummaryEditor).read_only)
        await pilot.press(*"Mine. ", "enter")
        await until(pilot, lambda: app.screen is app.chat and desk.state.ledger.compactions)
        record = desk.state.ledger.compactions[-1].record
        assert record and record.summary.startswith("Mine. ## Goal") and len(writer.asked) == 1


async def test_esc_at_the_summary_leaves_everything_as_it_was(tmp_path: Path) -> None:
    writer = Writer(waits=True)
    async with talking(tmp_path, ANSWERS, writer=writer, said=QUESTIONS) as (app, pilot, desk):
        before = desk.state
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, SummaryScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert desk.state is before and not app.controller.busy


async def test_during_a_pass_typing_goes_on_and_a_message_is_delivered_once_after_it(tmp_path: Path) -> None:
    writer = Writer(waits=True)
    async with talking(tmp_path, ANSWERS, writer=writer, said=QUESTIONS) as (app, pilot, desk):
        await pilot.press("shift+f8")
        await until(pilot, lambda: app.controller.busy and writer.asked)
        await pilot.press(*"later", "enter", *"draft")
        assert len(desk.state.ledger.compactions) == 0 and "later" in words(app)
        writer.go.set()
        await until(pilot, lambda: desk.state.ledger.turn == 5 and not app.controller.busy)
        said = [g.first.text for g in desk.state.ledger.groups if g.kind == "user"]
        assert said.count("later") == 1 and said[-1] == "later" and len(desk.state.ledger.compactions) == 1
        assert app.chat.composer.draft == "draft"


async def test_esc_stops_a_pass_and_says_that_nothing_changed(tmp_path: Path) -> None:
    writer = Writer(waits=True)
    async with talking(tmp_path, ANSWERS, writer=writer, said=QUESTIONS) as (app, pilot, desk):
        before = desk.session.context_usage.used
        await pilot.press("shift+f8")
        await until(pilot, lambda: writer.asked and "esc stops" in words(app))
        await pilot.press("escape")
        await until(pilot, lambda: "everything is as it was" in words(app))
        assert desk.session.context_usage.used == before and not desk.state.ledger.compactions


async def test_what_the_model_no_longer_sees_as_it_was_has_a_mark_until_that_is_undone(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS, said=QUESTIONS, size=(100, 44)) as (app, pilot, desk):
        transcript = app.chat.transcript
        assert PAST not in words(app)
        await pilot.press("shift+f8")
        await until(pilot, lambda: desk.state.ledger.compactions and blocks(app, CompactionMark))
        await idle(app, pilot)
        transcript.scroll_home(animate=False)
        await until(pilot, lambda: PAST in words(app))
        await pilot.press(*"/undo", "enter")
        await until(pilot, lambda: not desk.state.ledger.compactions)
        await until(pilot, lambda: PAST not in words(app))


# ── consent ──

FULL = CompactionSuggested(170_000, 200_000, 0.85, 60_000)


async def test_the_question_whether_to_make_room_takes_neither_draft_nor_focus(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [FULL, Pause(), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(SuggestionPanel))
        assert "85 % full" in words(app) and "170.0k → ~60.0k" in words(app)
        await pilot.press(*"nasi")
        assert app.chat.composer.draft == "nasi" and session.agreed == []
        await pilot.press("tab", "a")
        await until(pilot, lambda: session.agreed == [("after", "")])
        await until(pilot, lambda: not app.query(SuggestionPanel))
        assert app.chat.composer.draft == "nasi" and app.focused is app.chat.composer.prompt


async def test_the_question_is_answered_with_instructions_or_put_off(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [FULL, Pause(), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(SuggestionPanel))
        await pilot.press("tab", "i", *"keep ids", "enter")
        await until(pilot, lambda: session.agreed == [("now", "keep ids")])
        session.approvals().set()
        await until(pilot, lambda: not app.controller.busy)
        await pilot.press("y", "enter")
        await until(pilot, lambda: app.query(SuggestionPanel))
        await pilot.click(next(a for a in app.query(".answer") if "snooze" in str(a.render())))
        await until(pilot, lambda: session.snoozed == [3] and not app.query(SuggestionPanel))


async def test_a_call_to_be_allowed_and_the_question_stand_side_by_side(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [FULL, ASK, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (40, 20)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.query(SuggestionPanel))
        await pilot.press("y")  # the call has the focus: it holds up the work
        await until(pilot, lambda: session.answers == [("c1", Answer("once"))])
        await until(pilot, lambda: not app.controller.busy)
        assert app.query(SuggestionPanel)  # it can still be said


async def test_now_when_the_turn_is_over_runs_the_pass_at_once(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS, window=12_000, auto_compact="ask") as (app, pilot, desk):
        while not app.query(SuggestionPanel):
            assert desk.state.ledger.turn < 20
            await say(app, pilot, f"question? {LONG}")
        assert not desk.state.ledger.compactions
        await pilot.press("tab", "n")
        await until(pilot, lambda: len(desk.state.ledger.compactions) == 1 and not app.query(SuggestionPanel))


async def test_compact_during_a_turn_is_done_where_no_call_is_open(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [Pause(), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.controller.busy)
        await pilot.press(*"/compact keep ids", "enter")
        await until(pilot, lambda: session.agreed == [("now", "keep ids")])


# ── the ghost, and what was lost ──


async def test_a_prepared_compaction_is_a_ghost_on_the_bar_as_soon_as_it_stands(tmp_path: Path) -> None:
    writer = Writer(waits=True)
    async with talking(tmp_path, ANSWERS, window=12_000, writer=writer, prepare=True) as (app, pilot, desk):
        while not writer.asked:
            assert desk.state.ledger.turn < 20
            await say(app, pilot, f"question? {LONG}")
            await until(pilot, lambda: writer.asked or not desk.compactor._prefetch.busy)
        assert desk.session.compaction.ghost == 0 and not desk.state.ledger.compactions
        writer.go.set()
        await until(pilot, lambda: desk.session.compaction.ghost)
        await until(pilot, lambda: "░" in words(app).split("\n")[-3])  # what it would free
        assert "ready to free F8" in words(app).split("\n")[-2]


async def test_what_a_compaction_lost_is_put_back_from_its_mark(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session, (120, 36)) as (app, pilot):
        for text in ("one", "two"):
            await pilot.press(*text, "enter")
            await until(pilot, lambda text=text: f"You said: {text}" in words(app) and not app.controller.busy)
        session.fold(lost=("exit code 137", "10.0.4.17", "/etc/tide.conf"))
        await app.chat.refresh_session()
        await until(pilot, lambda: "kept 41 of 44 facts" in words(app))
        assert "re-insert 3" in words(app)
        focus_on(app, *blocks(app, CompactionMark))
        await sure(pilot, "r")
        await until(pilot, lambda: session.reinserted == ["k1"])
        await until(pilot, lambda: "3 facts put back" in words(app))
        await until(pilot, lambda: "kept 41 of 44 facts, 3 put back" in words(app))
        assert "re-insert" not in words(app)
        assert "kept 41 of 44, 3 put back" in record(compaction_entries(session.state)[0]).plain
        await pilot.press("alt+i")
        await until(pilot, lambda: any("Nothing to put back" in n.message for n in app._notifications))
        await pilot.press(*"/undo", "enter")
        await until(pilot, lambda: "re-insert 3" in words(app))


@pytest.mark.parametrize("way", ["alt+i", "/reinsert"])
async def test_what_a_compaction_lost_is_put_back_from_the_composer(tmp_path: Path, way: str) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session, (120, 36)) as (app, pilot):
        for text in ("one", "two"):
            await pilot.press(*text, "enter")
            await until(pilot, lambda text=text: f"You said: {text}" in words(app) and not app.controller.busy)
        await pilot.press(*([way] if way == "alt+i" else [*way, "enter"]))
        await until(pilot, lambda: any("Nothing to put back" in n.message for n in app._notifications))
        assert session.reinserted == []
        session.fold(lost=("exit code 137", "10.0.4.17", "/etc/tide.conf"))
        await app.chat.refresh_session()
        await pilot.press(*([way] if way == "alt+i" else [*way, "enter"]))
        await until(pilot, lambda: session.reinserted == ["k1"])


async def test_a_branch_from_a_mark_goes_up_to_that_compaction(tmp_path: Path) -> None:
    session = FakeSession()
    services = FakeServices(tmp_path, session)
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        for text in ("one", "two"):
            await pilot.press(*text, "enter")
            await until(pilot, lambda text=text: f"You said: {text}" in words(app) and not app.controller.busy)
        session.fold()
        await app.chat.refresh_session()
        await until(pilot, lambda: blocks(app, CompactionMark))
        assert "re-insert" not in words(app)
        focus_on(app, *blocks(app, CompactionMark))
        await sure(pilot, "b")
        await until(pilot, lambda: app.session is not session)
        assert services.forks == [("s1", "k1")]


# ── opening ──


async def test_what_was_damaged_is_said_when_a_session_is_opened(tmp_path: Path) -> None:
    session = FakeSession(notices=["Entry 12 could not be read and was left out [/x]."])
    async with chatting(tmp_path, session) as (app, _):
        assert "Entry 12 could not be read and was left out [/x]." in words(app)


async def test_a_session_that_can_only_be_read_offers_a_copy(tmp_path: Path) -> None:
    session = FakeSession(read_only="This session is open in another window.")
    services = FakeServices(tmp_path, session)
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: "goes on in a copy" in words(app))
        assert session.sent == []
        await pilot.click(app.query_one(".-offer"))
        await until(pilot, lambda: app.session is not session)
        assert services.forks == [("s1", "")] and app.chat.composer.draft == "hello"
        await pilot.press("enter")
        fresh = app.session
        await until(pilot, lambda: fresh.sent == ["hello"])


# ── back, and there again ──


async def test_undo_in_the_chat_asks_where_it_would_not_fit_and_redo_is_exact(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS, window=12_000, auto_compact="off") as (app, pilot, desk):
        while not desk.session.context_usage.used > 0.5 * desk.session.context_usage.limit:
            await say(app, pilot, f"question? {LONG * 3}")
        await pilot.press(*"/compact now", "enter")
        await until(pilot, lambda: desk.state.ledger.compactions and not app.controller.busy)
        put_away = desk.session.view.items
        await pilot.press(*"/undo", "enter")
        await until(pilot, lambda: desk.state.undone)
        assert not isinstance(app.screen, UndoScreen), "it fits: nothing is asked"
        told = desk.state.undone[-1].record
        assert told is not None and told.shortened < told.folded_messages
        await until(pilot, lambda: f"Undone: the model sees {told.folded_messages} messages as before." in words(app))
        await pilot.press(*"/redo", "enter")
        await until(pilot, lambda: not desk.state.undone and desk.session.view.items == put_away)
        await until(pilot, lambda: f"Redone: {told.folded_messages - told.shortened} messages compacted" in words(app))
        await pilot.press(*"/redo", "enter")
        await until(pilot, lambda: "There is nothing to redo." in words(app))
        while not (await desk.session.changes.preview_undo()).after.excess:
            await say(app, pilot, f"question? {LONG * 3}")
        await pilot.press(*"/undo", "enter")
        await until(pilot, lambda: isinstance(app.screen, UndoScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert len(desk.state.ledger.compactions) == 1
        await desk.session.changes.restore("g1")
        await pilot.press(*"/undo", "enter")
        await until(pilot, lambda: "the model no longer sees what was put back" in words(app))


async def test_what_an_undo_costs_with_the_next_message_is_said_with_it(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS, window=12_000, auto_compact="off") as (app, pilot, desk):
        while not desk.session.context_usage.used > 0.5 * desk.session.context_usage.limit:
            await say(app, pilot, f"question? {LONG * 3}")
        await pilot.press(*"/compact now", "enter")
        await until(pilot, lambda: desk.state.ledger.compactions and not app.controller.busy)
        await say(app, pilot, "and now?")
        await pilot.press(*"/undo", "enter")
        await until(pilot, lambda: "tokens of the next message anew" in " ".join(words(app).split()))


async def test_everything_up_to_a_message_by_its_id(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS) as (app, pilot, desk):
        for n in range(4):
            await say(app, pilot, f"question {n}? {LONG}")
        await pilot.press(*"/free m4", "enter")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.chat and blocks(app, CompactionMark))
        (change,) = desk.state.ledger.compactions
        assert [name for edit in change.edits for name in edit.covers] == ["g1", "g2", "g3", "g4"]
        await pilot.press(*"/free m2", "enter")
        await until(pilot, lambda: any("in the archive already" in n.message for n in app._notifications))
