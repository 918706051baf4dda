"""The whole program in a real terminal: asked, answered, resized, killed, opened twice, and left."""

from __future__ import annotations

import json
import re
import signal
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.cli.conftest import Home
from tests.doubles.replies import call, calls, says
from tests.e2e.conftest import READY, Open, left_clean
from tests.e2e.serving import model_options, serving

pytestmark = pytest.mark.pty

QUESTION = "Which logger does the gauge at Pier 7 report to?"
BOTH_FILES = calls(
    call("read_file", "call_a", path="README.md"),
    call("read_file", "call_b", path="src/gauge.py"),
    text="I look.",
    reasoning="Both at once.",
)
COLOUR = re.compile(r"[34]8;2;(\d+);(\d+);(\d+)")
HOSTILE = "see [/tmp/x] [bold]hi[/bold] [@click=app.quit]boo[/] \x1b]0;evil\x07\x1b[2J\u202egnp.exe "


def sessions(home: Home) -> list[dict[str, object]]:
    return json.loads(home.start("sessions", "list", "--json").out)


def test_a_question_typed_before_anything_is_up_is_answered_from_the_files(chat: Open, harbour: Home) -> None:
    with chat(columns=100) as terminal:
        terminal.until("ctxchat")
        terminal.type(QUESTION)
        terminal.until(QUESTION)
        terminal.press("enter")
        terminal.until(lambda: terminal.shows("README.md:3") and terminal.shows("to the logger Cormorant"))
        terminal.until(lambda: "grep" in terminal.text and "read_file README.md" in terminal.text)
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
        assert left_clean(terminal)
        (row,) = sessions(harbour)
        assert terminal.shows(f"Go on with: ctxchat --session {row['id']}")
    assert row["title"] == QUESTION


@pytest.mark.parametrize(
    ("columns", "rows", "environ"),
    [(80, 24, {}), (80, 24, {"NO_COLOR": "1", "COLORTERM": "truecolor"}), (40, 20, {}), (20, 5, {})],
    ids=["80x24", "no-colour", "40x20", "20x5"],
)
def test_it_is_usable_at_any_size(chat: Open, columns: int, rows: int, environ: dict[str, str]) -> None:
    with chat(columns=columns, rows=rows, **environ) as terminal:
        terminal.until("%")
        terminal.type("Where is INTERVAL set?")
        terminal.press("enter")
        gauge = -1 if rows < 18 else -2  # the keys stand below it where there is room
        # Seen once: what is said of the tour comes when it comes, and may push the answer out of the smallest of them.
        terminal.until(lambda: "src/gauge.py" in terminal.raw and "~" not in terminal.lines[gauge])
        assert "%" in terminal.text
        assert all(len(line) <= columns for line in terminal.lines)
        if "NO_COLOR" in environ:
            assert all(red == green == blue for red, green, blue in COLOUR.findall(terminal.raw))
            assert terminal.lines[gauge].strip().startswith("ST")  # a letter in each cell of the largest parts
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


def test_parallel_calls_through_litellm_and_the_gauge_anchored_on_the_servers_count(chat: Open) -> None:
    looking = replace(BOTH_FILES, usage=counted(6_850, 30))
    answer = says("To Cormorant (README.md:3, src/gauge.py:2).", usage=counted(7_000, 40))
    with serving([looking, answer]) as double, chat(*model_options(double)) as terminal:
        terminal.until(READY)
        terminal.until(lambda: "~" in terminal.lines[-2] and "/28.7k" in terminal.lines[-2])
        terminal.type(QUESTION)
        terminal.press("enter")
        terminal.until("To Cormorant (README.md:3, src/gauge.py:2).")
        assert "read_file README.md" in terminal.text
        assert "read_file src/gauge.py" in terminal.text
        assert "thought" in terminal.text
        # 7,040 of a limit of 28,672 tokens, as the server counted: no estimate any more.
        terminal.until(lambda: "  25 %" in terminal.lines[-2] and "7.0k/28.7k" in terminal.lines[-2])
        assert "~" not in terminal.lines[-2].split("▒")[-1]
        terminal.type("and what of a draft, which is not counted yet")
        terminal.until(lambda: "~" in terminal.lines[-2].split("▒")[-1])


def counted(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def test_hostile_text_is_shown_and_does_nothing_while_the_window_is_dragged_about(chat: Open) -> None:
    tool = calls(call("[bold]\x1b[2Jrm", "x", path="[/red]\x1b]0;evil\x07"), reasoning=HOSTILE)
    replies = [tool, says(HOSTILE * 12 + "and that was all.", delay=0.005)]
    with serving(replies) as double, chat(*model_options(double), columns=100) as terminal:
        terminal.until(READY)
        terminal.type("a draft [bold]of[/bold] mine")
        terminal.until("[bold]of[/bold]")
        terminal.press("enter")
        terminal.until(lambda: len(double.requests) > 1)
        for columns, rows in ((20, 5), (200, 60), (2, 5), (1, 1), (100, 36)):
            terminal.resize(columns, rows)
            terminal.settle(0.1, 0.4)
        terminal.until("and that was all.")
        assert terminal.shows("[bold]hi[/bold] [@click=app.quit]boo[/] gnp.exe")
        assert "\x1b]0;" not in terminal.raw
        assert "\u202e" not in terminal.raw
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


def test_killed_in_mid_stream_everything_shown_as_done_is_there_at_the_next_start(chat: Open, harbour: Home) -> None:
    slow = says("Cormorant it is. " + "More words follow here. " * 100, delay=0.02)
    with serving([BOTH_FILES, slow, says("Gone on with.")]) as double:
        with chat(*model_options(double), columns=100) as terminal:
            terminal.until(READY)
            terminal.type(QUESTION)
            terminal.press("enter")
            terminal.until("More words follow here. " * 5)
            terminal.kill(signal.SIGKILL)
            assert terminal.wait() == -signal.SIGKILL
        (row,) = sessions(harbour)
        with chat("--session", str(row["id"])[:10], *model_options(double), columns=100) as terminal:
            terminal.until("interrupted")
            for shown in (QUESTION, "I look.", "read_file README.md", "read_file src/gauge.py", "Cormorant it is."):
                assert terminal.shows(shown)
            terminal.type("Go on")
            terminal.press("enter")
            terminal.until("Gone on with.")
        again = double.requests[-1].body["messages"]
    assert [m["role"] for m in again if m["role"] == "tool"] == ["tool", "tool"]
    assert "Cormorant it is." in str(again)


def test_a_session_open_elsewhere_is_read_only_and_the_draft_stays(chat: Open, harbour: Home) -> None:
    id = str(json.loads(harbour.start("run", "Where is INTERVAL set?", "--json").out.splitlines()[0])["session"])
    with ExitStack() as windows:
        first = windows.enter_context(chat("--session", id))
        first.until("src/gauge.py:2")
        second = windows.enter_context(chat("--session", id, columns=80, rows=24))
        second.until("is open in another window")
        assert second.shows("src/gauge.py:2")
        second.type("am I heard?")
        second.press("enter")
        second.until("Nothing was sent")
        second.until(lambda: any("am I heard?" in line for line in second.lines[-6:]))
        second.press("ctrl+q")
        assert second.wait() == 0
        first.type("And LOGGER?")
        first.press("enter")
        first.until("src/gauge.py:1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_asked_to_end_in_mid_stream_it_leaves_the_terminal_clean(chat: Open, harbour: Home, number: int) -> None:
    with serving([says("A long answer. " * 400, delay=0.02)]) as double, chat(*model_options(double)) as terminal:
        terminal.until(READY)
        terminal.type("Tell me")
        terminal.press("enter")
        terminal.until("A long answer.")
        terminal.kill(number)
        terminal.wait()
        assert left_clean(terminal)
    (row,) = sessions(harbour)
    assert "A long answer." in harbour.start("sessions", "show", str(row["id"])).out


def test_a_start_that_fails_leaves_the_terminal_clean_and_says_why(chat: Open) -> None:
    with chat("--config", "/no/such.toml") as terminal:
        assert terminal.wait() == 2
        assert left_clean(terminal)
        after = terminal.raw.split("\x1b[?1049l")[-1]
    assert "/no/such.toml: there is no such settings file." in after


def test_a_broken_settings_file_a_data_folder_in_the_way_and_an_unknown_session_do_not_stop_the_start(
    chat: Open, harbour: Home
) -> None:
    (harbour.settings / "config.toml").write_text('thme = "dark"\n')
    with chat("--session", "nosuch", columns=100) as terminal:
        terminal.until("config.toml:1: thme: is unknown, did you mean theme?")
        terminal.until("nosuch")
        terminal.type("still here")
        terminal.until("still here")
    harbour.data.rename(harbour.root / "moved")
    harbour.data.write_text("in the way")
    with chat() as terminal:
        terminal.until("CTXCHAT_DATA_DIR")
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


@pytest.mark.parametrize(("term", "why"), [("dumb", "TERM is dumb"), ("", "TERM is not set")])
def test_a_dumb_terminal_is_told_what_to_use(chat: Open, term: str, why: str) -> None:
    with chat(TERM=term) as terminal:
        assert terminal.wait() == 2
        assert why in terminal.raw
        assert "ctxchat run" in terminal.raw
        assert "\x1b" not in terminal.raw
