"""The pictures of the documentation are drawn over the same doubles as the tests: a change of these is met here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    import make_pictures

    return make_pictures


@pytest.mark.parametrize(("name", "shown"), [("archive", "2 compactions"), ("rewind", "back to before this message")])
async def test_a_picture_is_drawn(pictures: Any, name: str, shown: str) -> None:
    drawing = await pictures.drawn(pictures.PICTURES[name], (100, 24))
    assert shown in re.sub("<[^>]+>", "", drawing).replace("&#160;", " ")


def test_every_picture_that_is_kept_can_be_drawn_again(pictures: Any) -> None:
    kept = {file.stem for file in (DOCS / "pictures").glob("*.svg")}
    assert kept <= {*pictures.PICTURES, "themes", "tour"}
