"""Writing a message: keys, history, completion, pastes, what it weighs, and an editor of one's own."""

from __future__ import annotations

import resource
import stat
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.events import Paste

from ctxchat.core.budget import Window, make_budget
from ctxchat.core.cache_state import CacheState, NextCall
from ctxchat.core.calibration import Mix
from ctxchat.core.context_usage import ContextUsage, Counting, measure
from ctxchat.core.errors import CtxchatError
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.openai import to_wire
from ctxchat.core.options import AutoCold, Options
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile
from ctxchat.tui.app import AppFiles
from ctxchat.tui.chat.chips import Chip
from ctxchat.tui.chat.completion import Wanted, command_choices, completable, file_choices
from ctxchat.tui.chat.composer import draft_line
from ctxchat.tui.chat.empty_chat import Example
from ctxchat.tui.graphemes import sign_after, sign_before
from ctxchat.tui.terminal.early_keys import EarlyKeys
from ctxchat.tui.terminal.parser import InputParser
from ctxchat.tui.unsent.input_history import MAX_ENTRIES, InputHistory
from ctxchat.tui.unsent.outside_editor import edited
from ctxchat.tui.unsent.workspace_files import examples, files_of
from ctxchat.tui.widgets.field import Field
from tests.tui.chatting import chatting, until, words
from tests.tui.fakes import FakeServices, FakeSession
from tests.tui.harbour import ROW


async def test_enter_sends_and_ctrl_j_makes_a_line(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (_, pilot):
        await pilot.press("a", "ctrl+j", "b", "enter")
        await until(pilot, lambda: session.sent == ["a\nb"])


@pytest.mark.parametrize("width", [80, 40, 20])
async def test_an_empty_editor_invites_on_one_line(tmp_path: Path, width: int) -> None:
    async with chatting(tmp_path, FakeSession(), size=(width, 24)) as (app, pilot):
        prompt = app.chat.composer.prompt
        await until(pilot, lambda: len(str(prompt.placeholder)) < prompt.content_size.width)
        assert str(prompt.placeholder).startswith("Ask")


SIGNS = ["e\u0301", "👩\u200d💻", "👍🏽", "🇩🇪", "\u1112\u1161\u11ab", "\u2764\ufe0f", "a", "日"]


@given(st.lists(st.sampled_from(SIGNS), max_size=6))
def test_signs_are_taken_whole(signs: list[str]) -> None:
    text, at = "".join(signs), 0
    for sign in signs:
        assert sign_after(text, at) == at + len(sign)
        at += len(sign)
        assert sign_before(text, at) == at - len(sign)
    early = EarlyKeys()
    early.feed(text.encode() + b"\x7f" * len(signs))
    assert early.text == ""


@pytest.mark.parametrize("sign", [sign for sign in SIGNS if len(sign) > 1])
async def test_backspace_and_arrows_take_a_whole_sign(tmp_path: Path, sign: str) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        prompt = app.chat.composer.prompt
        prompt.set_text(f"a{sign}b")
        await pilot.press("left", "left", "x", "delete", "right", "backspace")
        assert prompt.text == "ax"
        for event in InputParser(False).feed(sign):  # a keyboard of emoji sends them one by one
            app.post_message(event)
        await until(pilot, lambda: prompt.text == f"ax{sign}")


@pytest.mark.parametrize("sign", [sign for sign in SIGNS if len(sign) > 1])
async def test_a_field_takes_whole_signs_too(sign: str) -> None:
    class Asking(App[None]):
        def compose(self) -> ComposeResult:
            yield Field(f"a{sign}b")

    async with Asking().run_test() as pilot:
        await pilot.press("home", "right", "right", "backspace", "delete")
        assert pilot.app.query_one(Field).value == "a"


TYPED = ["\u3000", "\xa0", "\u202f", "\u200c", "\u200b", "\xad", "\U0001fae9", "\ue0b0"]
"""Spaces of other scripts, joiners, an emoji newer than Python's tables, a symbol of a font of one's own."""


@pytest.mark.parametrize("sign", TYPED)
@pytest.mark.parametrize("sent", ["{}", "\x1b[{};1;{}u"], ids=["plain", "kitty"])
async def test_every_character_that_is_typed_is_there(tmp_path: Path, sign: str, sent: str) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        keys = sent.format(ord(sign), ord(sign)) if sent.startswith("\x1b") else sign
        for event in InputParser(False).feed(f"a{keys}b"):
            app.post_message(event)
        await until(pilot, lambda: app.chat.composer.prompt.text == f"a{sign}b")
    early = EarlyKeys()
    early.feed(f"a{sign}b".encode())
    assert early.text == f"a{sign}b"


async def test_a_rare_line_end_that_is_typed_is_a_line_end(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        for event in InputParser(False).feed("a\u2028 b"):
            app.post_message(event)
        await until(pilot, lambda: app.chat.composer.prompt.text == "a\n b")


async def test_a_field_takes_every_character_too() -> None:
    class Asking(App[None]):
        def compose(self) -> ComposeResult:
            yield Field()

    async with Asking().run_test() as pilot:
        for event in InputParser(False).feed("a\u3000\u200cb"):
            pilot.app.post_message(event)
        await until(pilot, lambda: pilot.app.query_one(Field).value == "a\u3000\u200cb")


async def test_rare_line_ends_are_line_ends_and_the_first_indent_stays(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        app.chat.composer.prompt.post_message(Paste("\n  \n    def f():\u2028        pass\x85end\u2029"))
        await until(pilot, lambda: "end" in app.chat.composer.prompt.text)
        await pilot.press("enter")
        await until(pilot, lambda: session.sent == ["    def f():\n        pass\nend"])


def test_records_that_were_glued_on_one_line_are_both_there(tmp_path: Path) -> None:
    file = tmp_path / "history.txt"
    file.write_text('"one""two"\n"torn"three"\n"f\u2028our"\n"half')
    history = InputHistory(file)
    assert [history.back("") for _ in range(5)] == ["f\u2028our", "torn", "two", "one", None]


async def test_nothing_is_sent_when_there_is_nothing(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (_, pilot):
        await pilot.press("enter", "space", "enter")
        assert session.sent == []


async def test_the_editor_grows_to_eight_lines(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (80, 30)) as (app, pilot):
        heights = []
        for _ in range(12):
            heights.append(app.chat.composer.prompt.size.height)
            await pilot.press("ctrl+j")
        assert heights[0] == 1 and max(heights) == app.chat.composer.prompt.size.height == 8


async def test_history_walks_at_the_edges_and_keeps_the_draft(tmp_path: Path) -> None:
    file = tmp_path / "history" / "one.jsonl"
    session = FakeSession()
    async with chatting(tmp_path, session, files=AppFiles(history_file=file)) as (app, pilot):
        await pilot.press(*"first", "enter", *"second", "enter")
        await until(pilot, lambda: session.sent == ["first", "second"])
        prompt = app.chat.composer.prompt
        await pilot.press(*"draft", "up")
        assert prompt.text == "second"
        await pilot.press("up", "up")
        assert prompt.text == "first"
        await pilot.press("down", "down")
        assert prompt.text == "draft"
    assert InputHistory(file).back("") == "second"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_history_survives_a_broken_file_and_a_folder_in_its_place(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b'"fine"\n{\xff')
    history = InputHistory(broken)
    history.add_entry("new")
    again = InputHistory(broken)
    assert [again.back(""), again.back(""), again.back("")] == ["new", "fine", None]
    folder = InputHistory(tmp_path)
    folder.add_entry("x")
    assert folder.back("") == "x"


def test_two_windows_share_a_history_and_a_long_one_is_made_short(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    first, second = InputHistory(file), InputHistory(file)
    first.add_entry("from the first")
    second.add_entry("from the second")
    both = InputHistory(file)
    assert [both.back(""), both.back("")] == ["from the second", "from the first"]
    file.write_text("".join(f'"{number}"\n' for number in range(5 * MAX_ENTRIES)))
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, most[1]))  # as on a full disk
        assert InputHistory(file).back("") == str(5 * MAX_ENTRIES - 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert InputHistory(file).back("") == str(5 * MAX_ENTRIES - 1)
    assert len(file.read_text().splitlines()) == MAX_ENTRIES


async def test_slash_and_at_complete(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "gauge.py").write_text("")
    (tmp_path / "README.md").write_text("")
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        await until(pilot, lambda: app.chat.composer.prompt.files)
        await pilot.press(*"/ren")
        await until(pilot, lambda: "Rename this session" in words(app))
        await pilot.press("tab")
        assert app.chat.composer.prompt.text == "/rename "
        app.chat.composer.prompt.clear()
        await pilot.press(*"see @gau")
        await until(pilot, lambda: "src/gauge.py" in words(app))
        await pilot.press("enter")
        assert app.chat.composer.prompt.text == "see @src/gauge.py "
        await pilot.press("@", "down", "up", "escape")
        assert not app.controller.busy and session.sent == []
        app.chat.composer.prompt.clear()
        await pilot.press(*"see @README.md")
        await until(pilot, lambda: not app.chat.composer.prompt._completion.is_open)
        await pilot.press("enter")
        await until(pilot, lambda: session.sent == ["see @README.md"])


async def test_an_example_is_reached_by_tab_and_sent_by_two_enters(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("")
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        await until(pilot, lambda: len(app.chat.empty.query(Example)) == 4)
        await pilot.press("tab")
        assert app.focused is app.chat.empty.query(Example).first()
        await pilot.press("down", "up", "enter")
        await until(pilot, lambda: app.chat.composer.draft == "What is this folder about? @README.md")
        await pilot.press("enter")
        await until(pilot, lambda: session.sent == ["What is this folder about? @README.md"])


async def test_one_writes_behind_a_screen_that_a_first_line_opened(tmp_path: Path) -> None:
    session = FakeSession()
    services = FakeServices(tmp_path, session, rows=[msgspec.structs.replace(ROW, id="s2")])
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        await until(pilot, lambda: any(each.key == "s" for each in app.chat.empty.query(Example)))
        await pilot.press("tab", "s")
        await until(pilot, lambda: app.screen is not app.chat)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat and app.focused is app.chat.composer.prompt)


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("/", Wanted("command", "", 1)),
        ("/he", Wanted("command", "he", 3)),
        ("a /he", None),
        ("@", Wanted("file", "", 1)),
        ("see @src/g", Wanted("file", "src/g", 6)),
        ("me@example.org", None),
        ("/etc/x", None),
    ],
)
def test_what_can_be_completed(before: str, found: Wanted | None) -> None:
    assert completable(before) == found


def test_the_best_matches_come_first() -> None:
    files = ("docs/gauge.md", "src/gauge.py", "src/deep/er/gargantuan_usage.py", "README.md")
    assert file_choices("gauge.py", files)[0].label == "src/gauge.py"
    assert file_choices("", files)[0].label == "README.md"
    assert command_choices("se")[0].insert == "/search "
    assert file_choices("zzzz", files) == []


async def test_a_file_that_was_made_since_is_found_where_a_mention_begins(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("")
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        await until(pilot, lambda: app.chat.composer.prompt.files)
        (tmp_path / "sensor.py").write_text("")
        await pilot.press(*"see @sens")
        await until(pilot, lambda: "sensor.py" in words(app))
        (tmp_path / "sensor.py").rename(tmp_path / "hydrophone.py")
        await pilot.press("tab", "@", *"hydr")
        await until(pilot, lambda: "hydrophone.py" in words(app))


async def test_a_hostile_file_name_is_written_out_in_the_message(tmp_path: Path) -> None:
    name = "osc\x1b]52;c;aGk=\x07\u202etxt"
    (tmp_path / name).write_text("needle")
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        prompt = app.chat.composer.prompt
        await until(pilot, lambda: prompt.files)
        await pilot.press("@", "o", "s", "c", "tab")
        await until(pilot, lambda: app.chat.composer.attached.named)
        assert prompt.text == '@"osc\\x1b]52;c;aGk=\\x07\\u202etxt" '
        assert app.chat.composer.attached.named[0].text == "needle"
        prompt.set_text("from \x1b[2J elsewhere")
        assert prompt.text == "from  elsewhere"


async def test_tabs_that_were_pasted_stay_tabs(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        prompt = app.chat.composer.prompt
        prompt.post_message(Paste("all:\n\tcc x.c\n"))
        await until(pilot, lambda: prompt.text)
        assert prompt.text == "all:\n\tcc x.c\n"


def test_ignored_files_are_left_out(tmp_path: Path) -> None:
    for name in ("a.py", "b.log", "keep.log", "sub/c.log", "sub/build/x", "node_modules/y", ".git/z", "sub/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n")
    (tmp_path / "sub" / ".gitignore").write_text("build/\n")
    assert set(files_of(tmp_path)) == {".gitignore", "a.py", "keep.log", "sub/.gitignore", "sub/d.py"}
    assert len(files_of(tmp_path, most=2)) == 2
    assert files_of(tmp_path / "not there") == ()


def test_examples_are_made_from_the_folder() -> None:
    asked = examples(("README.md", "notes.txt", "src/a.py"))
    assert len(asked) == 3 and "@README.md" in asked[0] and "@src/a.py" in asked[1]
    assert len(examples(())) == 3
    assert "say?" not in " ".join(examples(("README.md", "a.py", "shot.png", "x.db", ".env.txt", "photo.JPG")))
    assert "What does @notes.txt say?" in examples(("README.md", "shot.png", "notes.txt"))
    assert "Explain @src/app.py" in examples(
        ("docs/demo.py", "src/__init__.py", "src/app.py", "src/deep/er.py", "test_a.py")
    )
    python = (
        "README.rst",
        "deps/README.md",
        "LICENSE",
        "build.py",
        "tide/_id.py",
        "tide/moon.py",
        "tide/tide.py",
        "NEWS.md",
    )
    assert examples(python) == [
        "What is this folder about? @README.rst",
        "Explain @tide/tide.py",
        "What does @NEWS.md say?",
    ]


async def test_a_huge_paste_is_attached_and_sent_whole(tmp_path: Path) -> None:
    session = FakeSession()
    paste = "".join(f"line {n} ``` [/x]\x1b[2J\n" for n in range(1000))
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press(*"look")
        app.chat.composer.prompt.post_message(Paste(paste))
        await until(pilot, lambda: app.query(Chip))
        assert app.chat.composer.prompt.text == "look" and "1,000 lines" in words(app)
        await pilot.press("enter")
        await until(pilot, lambda: session.sent)
        sent = to_wire(session.state.ledger.groups[0].first)["content"]
        assert session.sent == ["look"] and sent.startswith("look\n\n````paste-1.txt\n")
        assert all(f"line {n} ``` [/x]" in sent for n in range(1000))
        assert not app.query(Chip)
        await until(pilot, lambda: "1,000 lines" in words(app))


async def test_an_attachment_can_be_taken_away_or_into_the_text(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        for _ in range(2):
            app.chat.composer.prompt.post_message(Paste("x" * 9000))
        await until(pilot, lambda: len(app.query(Chip)) == 2)
        app.query(Chip).first().focus()
        await pilot.press("delete")
        await until(pilot, lambda: len(app.query(Chip)) == 1)
        app.query(Chip).first().focus()
        await pilot.press("enter")
        await until(pilot, lambda: not app.query(Chip))
        assert app.chat.composer.prompt.text == "x" * 9000


async def test_a_small_paste_is_text_without_control_sequences(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        app.chat.composer.prompt.post_message(Paste("a\rb\r\n\x1b[2Jc"))
        await until(pilot, lambda: app.chat.composer.prompt.text == "a\nb\nc")


async def test_the_draft_counts_while_it_is_written(tmp_path: Path) -> None:
    session = FakeSession(window=20_000)
    async with chatting(tmp_path, session) as (app, pilot):
        app.chat.composer.prompt.post_message(Paste("word " * 15_000))
        await until(pilot, lambda: "this message +25" in words(app))
        assert "over the limit by" in words(app)
        app.query(Chip).first().focus()
        await pilot.press("delete")
        await until(pilot, lambda: "this message" not in words(app))


@pytest.mark.parametrize("wish", ["ask", "send"])
async def test_what_a_cold_cache_costs_is_said_under_the_message(tmp_path: Path, wish: AutoCold) -> None:
    session = FakeSession(window=20_000)
    session.cache, session.options = CacheState(otherwise="cold", cold=NextCall(0.41)), Options(auto_cold=wish)
    async with chatting(tmp_path, session) as (app, pilot):
        app.chat.composer.set_draft("and now? " + "word " * 2_000)
        await until(pilot, lambda: "this message +" in words(app))
        assert ("cold: sent as it is ≈ $0.41" in words(app)) is (wish == "ask")


async def test_a_command_is_no_draft(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(window=20_000)) as (app, pilot):
        title = "a long title " * 400
        app.chat.composer.set_draft(f"rename {title}")
        await until(pilot, lambda: "this message +" in words(app))
        app.chat.composer.set_draft(f"/rename {title}")
        await until(pilot, lambda: "this message" not in words(app))


def context_usage(used: int, draft: int, window: int = 100_000) -> ContextUsage:
    view = compile(Ledger(), Head(system="x" * 3 * used), TokenCounter())
    budget = make_budget(Window(window, "configured"), 0, 0.8, 0.5)
    return measure(view, budget, Counting("m"), draft=Mix(draft))


def test_what_a_draft_would_do_is_said_where_it_matters() -> None:
    assert draft_line(context_usage(1_000, 10)) == ""
    assert draft_line(context_usage(1_000, 0)) == ""
    assert draft_line(context_usage(10_000, 5_000)) == "this message +5.0k → 15 %"
    assert draft_line(context_usage(79_000, 10_000)) == "this message +10.0k → 89 %, compaction would start"
    assert draft_line(context_usage(90_000, 20_000)).endswith("over the limit by 10.0k")


def test_ones_own_editor_has_the_text_and_may_say_no(tmp_path: Path) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nprintf "%s, edited" "$(cat "$2")" > "$2"\nexit "$1"\n')
    script.chmod(0o700)
    assert edited("draft", f"{script} 0", nullcontext) == "draft, edited"
    assert edited("draft", f"{script} 1", nullcontext) is None
    assert edited("draft", "rm", nullcontext) is None
    with pytest.raises(CtxchatError, match="not-there"):
        edited("draft", str(tmp_path / "not-there"), nullcontext)


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_a_blank_editor_is_none_and_vi_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: str) -> None:
    vi = tmp_path / "vi"
    vi.write_text('#!/bin/sh\necho "of vi" > "$1"\n')
    vi.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", blank)
    assert edited("draft", "", nullcontext) == edited("draft", blank, nullcontext) == "of vi\n"


async def test_where_no_terminal_can_be_given_away_it_is_said(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        await pilot.press(*"draft", "ctrl+g")
        await until(pilot, lambda: "An editor cannot be opened from here." in words(app))
        assert app.chat.composer.draft == "draft"
