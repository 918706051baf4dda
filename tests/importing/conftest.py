"""A store, and files of other agents brought into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from ctxchat.bootstrap.history_import import Imported, import_file
from ctxchat.core.journal import SessionState
from ctxchat.importing import formats
from ctxchat.storage import loading
from ctxchat.storage.database import Database

Bring = Callable[[Path], list[Imported]]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "data") as database:
        yield database


@pytest.fixture
def brought(database: Database) -> Bring:
    """What comes of a file, whose format must be recognised."""

    def work(file: Path) -> list[Imported]:
        form = formats.recognised(file)
        assert form, f"{file} is not recognised"
        return list(import_file(database, form, file))

    return work


def put(file: Path, lines: Iterable[object]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return file


def state(database: Database, session: str) -> SessionState:
    """The session as its journal says, which must be whole, with every group in view or behind a change exactly once."""
    loaded = loading.load_state(database, session)
    assert loaded.problems == ()
    ledger = loaded.state.ledger
    covered = [g for entry in ledger.live() for g in entry.covers]
    assert sorted(covered) == sorted(g.id for g in ledger.groups)
    return loaded.state


def shown(state: SessionState) -> list[str]:
    """The words a model would see, message by message."""
    return [m.text for e in state.ledger.live() if e.group for m in e.group.messages]
