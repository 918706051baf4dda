"""Memory files over real folders: which apply, in which order, and what a bad one costs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxchat.context.gather import WorkspaceSources
from ctxchat.context.memory_files import MEMORY_BYTES, load_memory


def repository(tmp_path: Path) -> Path:
    """A repository with a package two folders down; `tmp_path/AGENTS.md` lies outside it."""
    (tmp_path / "AGENTS.md").write_text("outside")
    top = tmp_path / "repo"
    deep = top / "packages" / "gauge"
    deep.mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "AGENTS.md").write_text("Use tabs.\n")
    (deep / "AGENTS.md").write_text("\ufeffHere use spaces.")
    return deep


def test_from_the_user_to_the_nearest_and_not_past_the_repository(tmp_path: Path) -> None:
    deep = repository(tmp_path)
    user = tmp_path / "memory.md"
    user.write_text("Answer in Portuguese.")
    found = load_memory(deep, user)
    assert [(i.source_id, i.text) for i in found.blocks] == [
        ("user memory", "Answer in Portuguese."),
        ("../../AGENTS.md", "Use tabs."),
        ("AGENTS.md", "Here use spaces."),
    ]
    assert found.problems == {}


def test_without_a_repository_only_the_workspace_counts(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("above")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert load_memory(inner).blocks == ()
    assert [i.text for i in load_memory(tmp_path).blocks] == ["above"]


def test_a_huge_file_keeps_its_head_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("é" * MEMORY_BYTES)
    found = load_memory(tmp_path)
    text = found.blocks[0].text
    assert text.startswith("é" * (MEMORY_BYTES // 2)) and "\ufffd" not in text
    assert "only its first 100 kB are used" in text and "200 kB" in found.problems["AGENTS.md"]


def test_a_bad_file_is_reported_and_costs_only_itself(tmp_path: Path) -> None:
    deep = repository(tmp_path)
    (deep / "AGENTS.md").write_bytes(b"\x7fELF\0\0\0")
    found = load_memory(deep)
    assert [i.source_id for i in found.blocks] == ["../../AGENTS.md"]
    assert found.problems == {"AGENTS.md": "is not a text file"}


@pytest.mark.parametrize("kind", ["folder", "dangling", "outside", "pipe"])
def test_what_is_no_plain_file_of_the_repository_is_left_out(tmp_path: Path, kind: str) -> None:
    deep = repository(tmp_path)
    path = deep / "AGENTS.md"
    path.unlink()
    match kind:
        case "folder":
            path.mkdir()
        case "dangling":
            path.symlink_to(deep / "nowhere")
        case "outside":
            path.symlink_to(tmp_path / "AGENTS.md")
        case _:
            os.mkfifo(path)
    found = load_memory(deep)
    assert [i.source_id for i in found.blocks] == ["../../AGENTS.md"]
    assert list(found.problems) == ["AGENTS.md"]


async def test_a_faulty_file_is_among_the_troubles_that_a_person_is_told(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    around = WorkspaceSources(tmp_path, tmp_path / "none.md", [])
    assert (await around.around()).memory == ()
    assert dict(around.troubles) == {"AGENTS.md": "is no regular file"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x")
    (tmp_path / "AGENTS.md").chmod(0)
    assert "could not be read" in load_memory(tmp_path).problems["AGENTS.md"]
