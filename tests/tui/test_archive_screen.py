"""The archive: the timeline, what each compaction put away, and the ways back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Markdown, Static, TabbedContent, TextArea
from textual.widgets._footer import FooterKey

from ctxchat.core.changes import preview_undo
from ctxchat.core.facts import Memory
from ctxchat.core.journal import Changed, SessionState, fold
from ctxchat.core.messages import Message
from ctxchat.core.tokens import TokenCounter
from ctxchat.presentation.compactions import archived, compaction_entries, compared, previous, put_away
from ctxchat.presentation.text import short
from ctxchat.storage.archive import Archived
from ctxchat.storage.exporting import FOLDER, write_compaction
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.panel import Confirm, Heading
from ctxchat.tui.panels.reader import MAX_SHOWN_CHARS, ReaderScreen, whole_message
from ctxchat.tui.panels.undoing import UndoScreen
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.rows import Rows
from tests.tui.chatting import sure, until
from tests.tui.fakes import FakeServices
from tests.tui.harbour import ROW, SUMMARY_B, HarbourSession, digest, state
from tests.tui.panel_app import PanelApp

UNASKED = object()


class Opened(PanelApp):
    def __init__(self, desk: HarbourSession, folder: Path) -> None:
        super().__init__()
        self.desk = desk
        self.doors = FakeServices(folder)
        self.result: Any = UNASKED

    def on_mount(self) -> None:
        self.push_screen(ArchiveScreen(self.desk, self.doors), self.take)

    def take(self, result: Any) -> None:
        self.result = result

    def rows(self, which: str) -> list[str]:
        rows = self.screen.query_one(which, Rows)
        return [rows.render_line(y).text for y in range(rows.size.height)]

    async def at_rest(self, pilot: Pilot[object]) -> None:
        """What was begun has ended. Not for what waits for an answer."""
        await pilot.pause()
        await self.workers.wait_for_complete()
        await pilot.pause()

    def text(self, which: str) -> str:
        return str(self.screen.query_one(which, Static).render())


def desk() -> HarbourSession:
    return HarbourSession(state(30), window=24_000)


async def test_each_compaction_is_told_in_three_lines(tmp_path: Path) -> None:
    app = Opened(desk(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        lines = app.rows("#passes")
        assert "auto" in lines[0] and "failed" in lines[0] and "came back empty" in lines[1] and not lines[3].strip()
        assert all(words in lines[4] for words in ("by hand", "24.4k → 9.2k", "−15.2k", "active"))
        assert "→ a summary of" in lines[5] and "and 41 facts" in lines[5]
        assert lines[6].strip() == "written by claude-haiku-4-5 in 8.7 s for $0.05"
        assert [len([line for line in lines if line.strip()]), app.screen.query_one("#detail").display] == [9, False]
        await pilot.resize_terminal(40, 20)
        await until(pilot, lambda: "by hand; claude-haiku-4-5, $0.05" in app.rows("#passes")[6])
        assert "by hand" not in app.rows("#passes")[4] and app.rows("#passes")[4].rstrip().endswith("active")


async def test_a_click_on_any_line_of_one_chooses_it(tmp_path: Path) -> None:
    app = Opened(desk(), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        for line, chosen in ((4, "k2"), (10, "k1"), (6, "k2"), (1, "k3")):
            await pilot.click("#passes", offset=(9, line))
            screen = app.screen
            assert isinstance(screen, ArchiveScreen) and screen.chosen is not None and screen.chosen.id == chosen
        await pilot.resize_terminal(80, 9)
        await pilot.press("end")
        await until(pilot, lambda: "written by" in app.rows("#passes")[-1])


async def test_the_tabs_show_summary_facts_difference_and_record(tmp_path: Path) -> None:
    app = Opened(desk(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("down", "enter")
        assert app.screen.query_one(Markdown).source == SUMMARY_B
        assert "24.4k → 9.2k   −15.2k" in app.screen.query_one(Heading).render().plain
        await pilot.press("2")
        await app.at_rest(pilot)
        assert "✓ `journalctl -u cormorant --since today`" in app.text("#facts-text")
        await pilot.press("4")
        assert "+- Restart Cormorant at 02:00 (open)" in app.text("#diff-text")
        await pilot.press("5")
        record = app.text("#record-text")
        assert "claude-haiku-4-5" in record and "kept 41 of 44" in record and "8.7 s" in record


async def test_messages_are_as_they_were_and_earlier_compactions_open_in_place(tmp_path: Path) -> None:
    app = Opened(desk(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("down", "3")
        await app.at_rest(pilot)
        assert "compaction of" in app.rows("#archived")[0]
        await pilot.press("down", "down", "down", "enter")
        await pilot.pause()
        assert isinstance(app.screen, ReaderScreen)
        assert "tide-gauge-7 level" in app.screen.query_one(TextArea).text
        await pilot.press("escape", "home", "enter")
        screen = app.screen
        assert isinstance(screen, ArchiveScreen)
        assert screen.chosen is not None and screen.chosen.id == "k1"


def roomy() -> HarbourSession:
    """Where everything fits."""
    return HarbourSession(state(30), window=200_000)


async def test_an_undone_pass_stays_whole_on_screen_and_can_be_redone(tmp_path: Path) -> None:
    app = Opened(roomy(), tmp_path)
    before, start = app.desk.context_usage.used, app.desk.view.items
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await pilot.press("down")
        line = app.rows("#passes")[4]
        await sure(pilot, "u")
        await app.at_rest(pilot)
        assert [c.id for c in app.desk.state.ledger.compactions] == ["k1"]
        assert app.desk.context_usage.used > before
        undone = app.rows("#passes")[4]
        assert undone.rstrip().endswith("undone") and undone.split()[0] == line.split()[0], "with the time it was made"
        assert "all of it is in the window again" in app.rows("#passes")[6]
        assert "1 compaction, 1 undone, 1 without effect" in app.screen.query_one(Heading).render().plain
        await pilot.press("enter")
        await app.at_rest(pilot)
        assert (
            app.screen.query_one(Markdown).source.endswith(SUMMARY_B)
            and "Undone" in app.screen.query_one(Markdown).source
        )
        await pilot.press("2")
        await app.at_rest(pilot)
        assert "✓ `journalctl -u cormorant --since today`" in app.text("#facts-text")
        await pilot.press("3")
        await app.at_rest(pilot)
        assert "How often did the gauge" in "".join(app.rows("#archived"))
        await pilot.press("5")
        assert "undone" in app.text("#record-text") and "claude-haiku-4-5" in app.text("#record-text")
        await sure(pilot, "u")
        await app.at_rest(pilot)
        assert app.desk.view.items == start, "it is redone exactly"
        await pilot.press("escape")
        await app.at_rest(pilot)
        assert "undone" not in app.rows("#passes")[4]


async def test_a_word_typed_in_the_archive_undoes_and_redoes_nothing(tmp_path: Path) -> None:
    app = Opened(roomy(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        start = app.desk.state.ledger
        await pilot.press("down", "u")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press(*"sed")
        await until(pilot, lambda: isinstance(app.screen, ArchiveScreen))
        await app.at_rest(pilot)
        assert app.desk.state.ledger is start and app.result is UNASKED
        await sure(pilot, "u")
        await app.at_rest(pilot)
        undone = app.desk.state.ledger
        assert undone is not start
        await pilot.press("u")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("escape")
        await app.at_rest(pilot)
        assert app.desk.state.ledger is undone


async def test_what_was_changed_since_stands_in_the_way_of_a_redo(tmp_path: Path) -> None:
    app = Opened(roomy(), tmp_path)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await sure(pilot, "down", "u")
        await app.at_rest(pilot)
        await app.desk.pin("g1")
        await sure(pilot, "u")
        await app.at_rest(pilot)
        assert [c.id for c in app.desk.state.ledger.compactions] == ["k1"]
        assert any("Undo that first" in toast.message for toast in app._notifications)


async def test_a_session_that_is_open_elsewhere_offers_nothing_that_would_change_it(tmp_path: Path) -> None:
    of = roomy()
    of.read_only = "This session is open in another window."
    app = Opened(of, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("down", "u", "3")
        await app.at_rest(pilot)
        await pilot.press("down", "r")
        await app.at_rest(pilot)
        assert [c.id for c in of.state.ledger.changes] == ["k1", "k2"]
        actions = {active.binding.action for active in app.screen.active_bindings.values()}
        assert {"branch", "export"} <= actions and not {"change('undo')", "change('redo')", "restore"} & actions


def tight() -> HarbourSession:
    """Where not all of it fits any more."""
    begun = state(30, passes=0)
    ids = [g.id for g in begun.ledger.groups][:-12]
    return HarbourSession(fold([Changed(digest(begun.ledger, "k2", ids, SUMMARY_B, minute=200))], begun), window=20_000)


async def test_what_would_come_back_stands_beside_what_was_written_of_it(tmp_path: Path) -> None:
    app = Opened(tight(), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await app.at_rest(pilot)
        await sure(pilot, "u")
        await until(pilot, lambda: any(app.screen.query("#taken").results(Rows)) and app.screen.rows.items)
        looked = preview_undo(app.desk.state.ledger, "k2", app.desk._measured, TokenCounter().count_text, Memory())
        back = app.screen.query_one("#taken", Rows)
        assert [kept.group.id in looked.part_groups for kept in back.items[:3]] == [True] * 3
        assert "✓" in app.rows("#taken")[1] and "before → after" in app.text("#record Static")
        await pilot.resize_terminal(80, 24)
        record = app.screen.query_one("#record")
        await until(pilot, lambda: back.region.height > 3 and not record.region.height)
        await pilot.press("escape")


async def test_what_an_earlier_one_put_away_is_not_among_what_would_come_back(tmp_path: Path) -> None:
    app = Opened(desk(), tmp_path)
    looked = preview_undo(app.desk.state.ledger, "k2", app.desk._measured, TokenCounter().count_text, Memory())
    async with app.run_test(size=(120, 36)) as pilot:
        app.push_screen(UndoScreen(looked, app.desk.state))
        await until(pilot, lambda: any(rows.items for rows in app.screen.query("#taken").results(Rows)))
        assert isinstance(app.screen, UndoScreen)
        first = next(c for c in app.desk.state.ledger.compactions if c.id == "k1")
        gone = {g for edit in first.edits for g in edit.covers}
        assert len(app.screen.rows.items) == looked.messages > 0
        assert gone.isdisjoint(kept.group.id for kept in app.screen.rows.items)


async def test_an_undo_that_does_not_fit_says_by_how_much_and_offers_what_does(tmp_path: Path) -> None:
    app = Opened(tight(), tmp_path)
    looked = preview_undo(app.desk.state.ledger, "k2", app.desk._measured, TokenCounter().count_text, Memory())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await sure(pilot, "u")
        await pilot.pause()
        assert isinstance(app.screen, UndoScreen)
        assert f"{short(looked.after.excess)} more than the window holds" in app.text("#why")
        assert f"newest {looked.part_messages} messages fit" in app.text("#ways")
        triggers = {
            gauge.render_line(0).text.index("╷") for gauge in app.screen.query(Gauge) if "over" not in gauge.words
        }
        bars = {len(gauge._cells) for gauge in app.screen.query(Gauge)}
        assert any("over" in gauge.words for gauge in app.screen.query(Gauge))
        assert len(triggers) == 1 and len(bars) == 1, "one scale, whatever stands beside it"
        await pilot.resize_terminal(40, 20)
        await pilot.pause()
        assert [key.description for key in app.screen.query(FooterKey)] == ["put back part", "all", "back"]
        await pilot.press("escape")
        await app.at_rest(pilot)
        assert len(app.desk.state.ledger.compactions) == 1, "esc leaves everything as it is"
        await sure(pilot, "u")
        await pilot.pause()
        await pilot.press("enter")
        await app.at_rest(pilot)
        assert 0 < looked.part_messages < looked.messages
        assert (
            looked.after_part is not None
            and app.desk.context_usage.used == looked.after_part.used < looked.after_part.trigger_tokens
        )
        shown = {g for e in app.desk.state.ledger.live() if not e.change for g in e.covers}
        assert shown.issuperset(looked.part_groups)
        (one,) = compaction_entries(app.desk.state)
        back = one.record.back
        assert (back.messages, one.record.stands) == (looked.part_messages, one.record.after.used + back.tokens)
        line = app.rows("#passes")[0]
        assert (
            line.rstrip().endswith("in part")
            and f"{short(one.record.before.used)} → {short(one.record.stands)}" in line
        )
        await pilot.press("5")
        assert f"{looked.part_messages} messages, {short(back.tokens)}" in app.text("#record-text")
        await pilot.press("escape")
        assert f"auto; put back since: {looked.part_messages} messages" in app.rows("#passes")[2]
        await sure(pilot, "u")
        await pilot.pause()
        await sure(pilot, "a")
        await app.at_rest(pilot)
        assert app.desk.context_usage.used == looked.after.used, "the rest comes back too, where somebody wants it"


async def test_one_message_is_put_back_alone(tmp_path: Path) -> None:
    app = Opened(desk(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("down", "r")
        await app.at_rest(pilot)
        assert app.screen.focused is app.screen.query_one("#archived"), "first it is chosen"
        await sure(pilot, "down", "r")
        await app.screen.workers.wait_for_complete()
        note = app.desk.state.ledger.groups[-1]
        assert note.source == "restore:g1" and "day 1" in note.first.text


async def test_a_branch_begins_at_the_message(tmp_path: Path) -> None:
    app = Opened(desk(), tmp_path)
    app.doors.rows = [ROW]
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("down", "3")
        await app.at_rest(pilot)
        await sure(pilot, "down", "down", "b")
        await app.screen.workers.wait_for_complete()
        await pilot.pause()
        assert app.result == "s1-m2"


async def test_the_export_is_a_file_that_is_never_overwritten(tmp_path: Path) -> None:
    app = Opened(roomy(), tmp_path)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await pilot.press("down", "x")
        await app.screen.workers.wait_for_complete()
        [path] = files_in(tmp_path / FOLDER)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines[0]["type"] == "compaction" and lines[0]["record"]["id"] == "k2" and not lines[0]["undone"]
        assert [line["id"] for line in lines[1:5]] == ["m1", "m2", "m3", "m4"]
        assert path.stat().st_mode & 0o077 == 0
        await pilot.press("x")
        await app.screen.workers.wait_for_complete()
        assert files_in(tmp_path / FOLDER) == [path], "what says the same is not written twice"
        await sure(pilot, "u")
        await pilot.press("x")
        await app.screen.workers.wait_for_complete()
        again = next(p for p in files_in(tmp_path / FOLDER) if p != path)
        assert json.loads(again.read_text().splitlines()[0])["undone"], "it says that it was undone since"
        assert not json.loads(path.read_text().splitlines()[0])["undone"]


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_nothing_compacted_is_said_and_nothing_can_go_wrong(tmp_path: Path) -> None:
    app = Opened(HarbourSession(SessionState()), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.rows("#passes")[0].startswith("Nothing was compacted")
        await pilot.press("u", "r", "b", "x", "enter", "3")
        await pilot.pause()
        assert app.result is UNASKED
        await pilot.press("escape")
        assert app.result is None


async def test_of_one_that_left_no_summary_the_messages_are_shown(tmp_path: Path) -> None:
    begun = state(12, passes=0)
    made = digest(begun.ledger, "k1", [begun.ledger.groups[2].id], "", minute=20)
    app = Opened(HarbourSession(fold([Changed(made)], begun), window=24_000), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await app.at_rest(pilot)
        assert app.screen.query_one(TabbedContent).active == "messages"
        assert app.screen.focused is app.screen.query_one("#archived")
    app = Opened(desk(), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await app.at_rest(pilot)
        assert app.screen.query_one(TabbedContent).active == "summary", "a failed one put nothing away"


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20), (20, 8)])
async def test_details_are_over_the_list_and_esc_comes_back_to_it(size: tuple[int, int], tmp_path: Path) -> None:
    app = Opened(desk(), tmp_path)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        detail = app.screen.query_one(TabbedContent)
        assert not detail.size.height
        await pilot.press("down", "enter")
        await pilot.pause()
        assert detail.size.height > 0 and not app.screen.query_one("#passes").size.height
        await pilot.press("escape")
        await pilot.pause()
        assert not detail.size.height and app.screen.focused is app.screen.query_one("#passes")
        assert app.result is UNASKED
        await pilot.press("escape")
        assert app.result is None


def test_every_archived_message_is_listed_once_and_as_it_was() -> None:
    of = desk()
    newest = next(p for p in compaction_entries(of.state) if p.id == "k2")
    kept = archived(newest, of.state.ledger)
    messages = [k.message for k in kept if k.nested is None]
    assert messages == list(of.state.ledger.messages())[: len(messages)]
    assert [k.nested.id for k in kept if k.nested] == ["k1"]


def test_secrets_do_not_leave_with_an_export(tmp_path: Path) -> None:
    of = desk()
    ledger = of.state.ledger
    group = ledger.groups[0]
    told = msgspec.structs.replace(group.first, content="the key is sk-" + "a1B2" * 8)
    groups = (msgspec.structs.replace(group, messages=(told,)), *ledger.groups[1:])
    one = next(p for p in compaction_entries(of.state) if p.change)
    assert one.change is not None
    archived_ = Archived("s1", one.change, put_away(one, type(ledger)(groups, ledger.changes)))
    text = write_compaction(tmp_path, archived_).read_text()
    assert "a1B2a1B2" not in text and "[masked" in text
    assert all(json.loads(line) for line in text.splitlines())


def test_the_previous_summary_is_that_of_the_one_before() -> None:
    found = compaction_entries(state(30))
    assert [p.id for p in found] == ["k3", "k2", "k1"]
    assert [p.state_word for p in found] == ["failed", "active", "active"]
    before = previous(found[1], found)
    assert before is not None and before.id == "k1"
    assert previous(found[2], found) is None
    assert compared("a\nb", "a\nb") == []


def test_a_message_longer_than_can_be_shown_says_so() -> None:
    text = whole_message(Message(1, "tool", "x" * (MAX_SHOWN_CHARS + 1_234), call_id="c"))
    assert text.endswith("1,234 more characters: the export holds them")


async def test_hostile_text_is_text(tmp_path: Path) -> None:
    begun = state(12, passes=0, title="[/x] \x1b]0;t\x07[@click=app.quit]boo")
    ids = [g.id for g in begun.ledger.groups]
    change = digest(begun.ledger, "k[/b]", ids[:6], "[/nope] \x1b[2J", minute=30, model="[red]m", strategy="[/s]")
    begun = msgspec.structs.replace(begun, ledger=begun.ledger.apply(change))
    app = Opened(HarbourSession(begun), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        for key in "12345":
            await pilot.press(key)
            await pilot.pause()
        assert "[red]m" in app.text("#record-text")
        assert "\x1b" not in app.export_screenshot()
