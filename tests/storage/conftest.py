from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxchat.storage.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "data") as database:
        yield database
