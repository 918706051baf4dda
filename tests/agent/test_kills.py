"""Killed at every write of a compaction and of the turn after it, on a real store: the old state or the new one, never a
third."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from ctxchat.core.head import Head
from ctxchat.core.journal import SessionState
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.summaries import earlier
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile, problems
from ctxchat.storage import sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import open_journal
from tests.agent.killed import ANSWER, QUESTION

METER = TokenCounter(PlanOptions().counter.count_text)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.agent.killed", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout.split()


def reopened(folder: Path) -> tuple[SessionState, tuple[str, ...], SessionState]:
    """The state on opening, what was found cut off, and the state on opening once more."""
    with Database(folder) as database:
        name = sessions.rows(database)[0].id
        first = open_journal(database, name)
        asyncio.run(first.journal.close())
        second = open_journal(database, name)
        asyncio.run(second.journal.close())
        assert not second.problems, "what was cut off is closed for good"
        return first.state, first.problems, second.state


def test_old_state_or_new_state(copies: tuple[Path, list[str]]):
    folder, names = copies
    before, _, _ = reopened(folder / "start")
    whole, _, _ = reopened(folder / next(n for n in names if n.startswith("whole:")).removeprefix("whole:"))
    assert whole.ledger.compactions and len(whole.compactions) == 1
    assert [m.text for m in whole.ledger.messages()][-1] == ANSWER
    kinds: set[tuple[bool, bool]] = set()
    for name in (n for n in names if not n.startswith("whole:")):
        state, _, again = reopened(folder / name)
        assert again == state
        ledger = state.ledger
        made = bool(ledger.compactions)
        kinds.add((made, len(ledger.groups) > len(before.ledger.groups)))
        assert ledger.groups[: len(before.ledger.groups)] == before.ledger.groups, "the record is whole"
        assert [c.edits for c in ledger.changes] == ([c.edits for c in whole.ledger.changes] if made else [])
        assert [p.outcome for p in state.compactions] in ([], ["compacted" if made else "failed"])
        assert not made or state.compactions
        assert len(earlier(ledger)) == made
        view = compile(ledger, Head(system="You are a test."), METER)
        assert problems(view) == []
        texts = [m.text for m in ledger.messages()][len(before.ledger.messages()) :]
        assert texts == [] or texts[0] == QUESTION
        for item in view.items:  # what a shortened result points to is there
            if "tool-results/" in item.message.text:
                path = "tool-results/" + item.message.text.split("tool-results/", 1)[1].split(".txt", 1)[0] + ".txt"
                assert list((folder / name).rglob(path)), (name, path)
    assert kinds == {(False, False), (True, False), (True, True)}


def test_what_had_been_said_before_the_kill_is_there(copies: tuple[Path, list[str]]):
    folder, names = copies
    said = [
        " ".join(m.text for m in reopened(folder / n)[0].ledger.messages()) for n in names if not n.startswith("whole:")
    ]
    places = [next((i for i, text in enumerate(said) if word in text), -1) for word in (QUESTION, "Looking", ANSWER)]
    assert -1 not in places and places == sorted(places)
    for word, place in zip((QUESTION, "Looking", ANSWER), places, strict=True):
        assert all(word in text for text in said[place:]), "once written it stays"
