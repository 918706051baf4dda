"""Paths as a search writes them, and read again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.found_paths import below_folders, whole_paths

NAMES = st.text("ab.-[]1é", min_size=1, max_size=4).filter(
    lambda name: name != "." and not (name[0] == "[" and name[-1] == "]")
)
PATHS = st.lists(st.builds("/".join, st.lists(NAMES, min_size=1, max_size=3)), unique=True, max_size=9)


def test_a_folder_is_said_once() -> None:
    paths = ["a.md", "src/b.py", "src/c.py", "d.md", "e.md", "src/deep/f.py", "g.md"]
    rows = [row for rows in below_folders(paths) for row in rows]
    assert rows == ["a.md", "src/", "b.py", "c.py", "./d.md", "./e.md", "src/deep/f.py", "g.md"]


@given(PATHS)
def test_each_path_is_read_again_as_it_was(paths: list[str]) -> None:
    rows = [row for rows in below_folders(paths) for row in rows]
    assert list(whole_paths([*rows, "[only the first are shown]"], hits=False)) == [
        *paths,
        "[only the first are shown]",
    ]


def test_hits_stand_below_their_path() -> None:
    rows = ["src/", "b.py", "1 x", "2-y/", "--", "9\t  z", "c.py", "3:src/", "d.md", "1 x"]
    found = list(whole_paths(rows, hits=True))
    assert found == ["src/b.py", "1 x", "2-y/", "--", "9\t  z", "src/c.py", "3:src/", "src/d.md", "1 x"]


@given(
    st.lists(
        st.sampled_from(["a.md", "1 b.md", "n/2024-11-02.md", "n/c.md", "n/d.md", "7-x/e.md", "7-x/f.md"]), unique=True
    )
)
def test_a_path_that_begins_with_a_number_is_no_hit(paths: list[str]) -> None:
    rows = [row for rows in below_folders(paths) for row in (*rows, "1 hit")]
    found = [line.removeprefix("./") for line in whole_paths(rows, hits=True)]
    assert found == [line for path in paths for line in (path, "1 hit")]
