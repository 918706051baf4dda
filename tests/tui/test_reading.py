"""In the transcript with keys and the mouse: marking and copying, folds, what has the focus; and what drawing it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.events import MouseEvent, MouseScrollDown, MouseScrollUp
from textual.geometry import Size

from ctxchat.core.events import TextDelta, ToolFinished, ToolStarted
from ctxchat.core.messages import Message
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.transcript.tool_block import ToolBlock
from tests.tui.chatting import blocks, chatting, idle, sure, until, words
from tests.tui.fakes import AT, FakeSession, Pause, Step, reply

LONG = (
    "The gauge at Pier 7 reports every ninety seconds to the logger, over a line older than the harbour master himself."
)
TOOLS: Sequence[Step] = [
    ToolStarted("a", "grep", {"pattern": "tide"}),
    ToolFinished("a", "grep", "ok", "one hit", 12, 0.2),
    ToolStarted("b", "read", {"path": "x.py"}),
    ToolFinished("b", "read", "ok", "the file", 12, 0.2),
    *reply("done"),
]


class Copied(CtxchatApp):
    """Keeps what went to the clipboard, and counts how often a screen was laid out."""

    copied = ""

    def copy_to_clipboard(self, text: str) -> None:
        self.copied = text


def where(app: CtxchatApp, text: str) -> tuple[int, int]:
    """Its first cell on screen."""
    rows = words(app).split("\n")
    return next((row.index(text), y) for y, row in enumerate(rows) if text in row)


def talk(*texts: str) -> FakeSession:
    roles = ("user", "assistant")
    return FakeSession(messages=[Message(n, roles[(n - 1) % 2], text, at=AT) for n, text in enumerate(texts, 1)])


async def test_what_the_mouse_marks_is_copied_as_the_text_it_is(tmp_path: Path) -> None:
    code = "```python\ndef f():\n    return 1\n```"
    async with chatting(tmp_path, talk("q", f"{LONG}\n\n- one\n- two\n  1. in it\n\n{code}"), (60, 30), app=Copied) as (
        app,
        pilot,
    ):
        await until(pilot, lambda: "return 1" in words(app))
        x, y = where(app, "The gauge")
        to_x, to_y = where(app, "return 1")
        await pilot.mouse_down(offset=(x, y))
        await pilot.hover(offset=(to_x + 5, to_y - 1))
        await pilot.hover(offset=(to_x + 7, to_y))
        await pilot.mouse_up(offset=(to_x + 7, to_y))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "Copied" in words(app))
        assert app.copied == f"{LONG}\n\n- one\n- two\n  1. in it\n\n\ndef f():\n    return 1"


async def test_two_clicks_mark_a_paragraph_and_three_the_message(tmp_path: Path) -> None:
    async with chatting(tmp_path, talk("q", f"{LONG}\n\nMore."), (60, 24), app=Copied) as (app, pilot):
        await until(pilot, lambda: "More." in words(app))
        for times, copied in ((2, LONG), (3, f"{LONG}\n\nMore.")):
            app.copied = ""
            await pilot.click(offset=where(app, "reports every"), times=times)
            await pilot.press("ctrl+c")
            await until(pilot, lambda: app.copied)
            assert app.copied == copied


async def test_what_is_marked_stays_marked_while_more_arrives(tmp_path: Path) -> None:
    session = talk("q", "First words. Second words.")
    session.script = lambda _: [TextDelta("new line\n\n" * 3), Pause(), *reply("end")]
    async with chatting(tmp_path, session, (80, 30), app=Copied) as (app, pilot):
        await pilot.click(offset=where(app, "First words"), times=2)
        app.controller.send_draft("go")
        await until(pilot, lambda: "new line" in words(app))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.copied == "First words. Second words.")
        session.approvals().set()
        await idle(app, pilot)


async def test_a_fold_is_opened_with_a_click_and_marking_across_it_opens_nothing(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(lambda _: TOOLS), (80, 24)) as (app, pilot):
        app.controller.send_draft("go")
        await until(pilot, lambda: "done" in words(app) and not app.controller.busy)
        await pilot.click(offset=where(app, "▸ grep"))
        await until(pilot, lambda: "one hit" in words(app) and "the file" not in words(app))
        x, y = where(app, "▸ read")
        await pilot.mouse_down(offset=(x + 2, y - 1))
        await pilot.hover(offset=(x + 4, y))
        await pilot.mouse_up(offset=(x + 4, y))
        await pilot.pause()
        assert "the file" not in words(app)


async def test_tab_goes_from_fold_to_fold_and_out_again_and_letters_go_to_the_composer(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(lambda _: TOOLS), (80, 24)) as (app, pilot):
        app.controller.send_draft("go")
        await until(pilot, lambda: "done" in words(app) and not app.controller.busy)
        app.chat.transcript.focus()
        await pilot.press("enter")
        await until(pilot, lambda: "one hit" in words(app))
        await pilot.press("tab", "space")
        await until(pilot, lambda: "the file" in words(app))
        assert [block.unfolded for block in blocks(app, ToolBlock)] == [True, True]
        await pilot.press("tab")
        assert not app.chat.transcript.has_focus
        app.chat.transcript.focus()
        await pilot.press("v", "u")
        await until(pilot, lambda: app.chat.composer.draft == "vu")


async def test_a_verb_of_a_mark_is_clicked_and_beside_it_nothing_happens(tmp_path: Path) -> None:
    session = talk("one", "two", "three", "four")
    session.fold()
    async with chatting(tmp_path, session, (100, 24)) as (app, pilot):
        await until(pilot, lambda: "undo " in words(app))
        x, y = where(app, "compacted")
        await pilot.click(offset=(x, y))
        await pilot.pause()
        assert session.state.ledger.compactions and app.screen is app.chat
        await until(pilot, lambda: "undo u" in words(app))  # the mark has the focus
        await pilot.click(offset=where(app, "undo u"))
        await sure(pilot)
        await until(pilot, lambda: not session.state.ledger.compactions and "branch b" not in words(app))


async def test_a_reply_that_streams_lays_nothing_out(tmp_path: Path) -> None:
    laid_out, pieces = 0, 20
    session = FakeSession(lambda _: [*(TextDelta(f"word {n} and more\n\n") for n in range(10)), Pause("a"), Pause("b")])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        app.controller.send_draft("go")
        await until(pilot, lambda: "word 9" in words(app))
        transcript = app.chat.transcript
        reflow = app.chat._compositor.reflow

        def counted(*given: object) -> object:
            nonlocal laid_out
            laid_out += 1
            return reflow(*given)

        app.chat._compositor.reflow = counted
        live = app.chat.presenter.live
        assert live
        before: Size = transcript.virtual_size
        for n in range(pieces):
            live.show_event(TextDelta(f"piece {n} of it\n\n"), "")
            await until(pilot, lambda n=n: f"piece {n} " in words(app))
        assert transcript.virtual_size.height == before.height + 2 * pieces
        assert laid_out == 0
        session.approvals("a").set()
        session.approvals("b").set()
        await idle(app, pilot)


async def test_of_a_line_that_grows_nothing_else_is_painted(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [TextDelta("first\n\nsecond"), Pause(), *reply("")])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        app.controller.send_draft("go")
        await until(pilot, lambda: "second" in words(app))
        painted: list[int] = []
        line = app.chat.transcript.render_line
        app.chat.transcript.render_line = lambda y: (painted.append(y), line(y))[1]
        assert app.chat.presenter.live
        app.chat.presenter.live.show_event(TextDelta(" third"), "")
        await until(pilot, lambda: "second third" in words(app))
        assert set(painted) <= {where(app, "second third")[1] - 1}
        session.approvals().set()
        await idle(app, pilot)


async def test_what_answers_the_person_is_in_sight_wherever_they_were_reading(tmp_path: Path) -> None:
    long = talk(*["\n".join(f"line {n} of {m}" for n in range(40)) for m in range(6)])
    async with chatting(tmp_path, long, (80, 24)) as (app, pilot):
        await until(pilot, lambda: "line 39 of 5" in words(app))
        await pilot.press("pageup", "pageup")
        await until(pilot, lambda: "line 39 of 5" not in words(app))
        await idle(app, pilot)
        app.chat.announce("The settings were edited.")
        await idle(app, pilot)
        assert "line 39 of 5" not in words(app), "what comes by itself moves nothing"
        await pilot.press(*"/cormorant", "enter")
        await until(pilot, lambda: "There is no command /cormorant." in words(app))


async def test_a_shorter_block_of_code_moves_no_further_than_to_its_end(tmp_path: Path) -> None:
    code = "\n\n".join(f"```\n{'x' * longest}{end}\n```" for longest, end in ((60, "_nearer"), (400, "_farther")))
    async with chatting(tmp_path, talk("q", code), (60, 24)) as (app, pilot):
        await until(pilot, lambda: "›" in words(app))
        app.chat.transcript.focus()
        await pilot.press(*["right"] * 60)
        await until(pilot, lambda: "_farther" in words(app))
        assert "x_nearer" in words(app) and "›" not in words(app)


async def test_a_long_line_of_code_moves_sideways_by_keys_and_wheel_and_is_copied_whole(tmp_path: Path) -> None:
    line = "print(" + ", ".join(f"number_{n}" for n in range(20)) + ")"
    async with chatting(tmp_path, talk("q", f"```python\n{line}\n```"), (60, 24), app=Copied) as (app, pilot):
        await until(pilot, lambda: "number_3" in words(app))
        assert "›" in words(app) and "number_19" not in words(app)
        app.chat.transcript.focus()
        await pilot.press(*["right"] * 30)
        await until(pilot, lambda: "number_19)" in words(app))
        assert "›" not in words(app) and "number_3" not in words(app)
        await pilot.press("left")
        await until(pilot, lambda: "number_19)" not in words(app))
        x, y = where(app, "number_17")
        for _ in range(30):
            app.screen._forward_event(wheel(MouseScrollUp, x, y))
        await until(pilot, lambda: "print(number_0" in words(app))
        app.screen._forward_event(wheel(MouseScrollDown, x, y))
        await until(pilot, lambda: "print(" not in words(app))
        await pilot.click(offset=(x, y), times=2)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.copied)
        assert app.copied == line


def wheel(kind: type[MouseEvent], x: int, y: int) -> MouseEvent:
    """One step of the wheel there, with shift."""
    return kind(None, x, y, 0, 0, 0, shift=True, meta=False, ctrl=False, screen_x=x, screen_y=y)
