"""The log for reports of faults: what happened is in it, no word of what was said, and no secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ctxchat.bootstrap.log_file import log_to
from ctxchat.core.errors import UsageError
from ctxchat.core.events import Failed, TextDelta, ToolFinished, ToolStarted, log_line
from tests.agent.desk import Desk, Echo
from tests.doubles.planted import planted
from tests.doubles.scripted import ScriptedModel, calls, says


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = list(logging.root.handlers)
    yield
    for handler in set(logging.root.handlers) - set(before):
        logging.root.removeHandler(handler)
        handler.close()
    logging.getLogger("ctxchat").setLevel(logging.NOTSET)


async def test_a_turn_stands_in_it_without_a_word_of_what_was_said(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    log_to(str(file))
    log_to(str(file))
    desk = Desk(ScriptedModel([calls(("echo", {"text": "zanzibar"})), says("Mombasa.")]), tools=[Echo()])
    await desk.say("Where is Pemba?")
    lines = file.read_text().splitlines()
    told = [line.split()[5] for line in lines if "ctxchat.session" in line]
    assert told[0] == "turn_started" and told[-1] == "turn_finished" and told.count("tool_finished") == 1
    assert not any(word in file.read_text() for word in ("zanzibar", "Mombasa", "Pemba"))
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_fault_is_told_in_words_with_secrets_masked(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    log_to(str(file))
    key = next(each for each in planted() if "github" in each.kind.lower())
    logging.getLogger("ctxchat.session").debug(log_line(Failed("auth", f"{key.before}{key.secret}{key.after}", "")))
    assert "[masked" in file.read_text() and key.secret not in file.read_text()


def test_pieces_are_left_out_and_texts_are_their_lengths() -> None:
    assert log_line(TextDelta("half")) == ""
    assert log_line(ToolStarted("c1", "shell", {"command": "ls"})) == "tool_started call_id=c1 name=shell arguments=<1>"
    ended = ToolFinished("c1", "shell", "ok", "one two", 2, 0.1)
    assert "output=<7>" in log_line(ended) and "seconds=0.1" in log_line(msgspec.structs.replace(ended, tokens=3))


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--log"):
        log_to(str(tmp_path / "nowhere" / "log.txt"))
