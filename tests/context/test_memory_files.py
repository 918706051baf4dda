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
    assert (await around.gather()).memory == ()
    assert dict(around.troubles) == {"AGENTS.md": "is no regular file"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x")
    (tmp_path / "AGENTS.md").chmod(0)
    assert "could not be read" in load_memory(tmp_path).problems["AGENTS.md"]


def test_what_other_agents_read_counts_where_there_is_none_of_ours(tmp_path: Path) -> None:
    deep = repository(tmp_path)
    (deep / "CLAUDE.md").write_text("not this")
    (deep.parent / ".claude").mkdir()
    (deep.parent / ".claude/CLAUDE.md").write_text("for packages")
    mine = tmp_path / "claude.md"
    mine.write_text("mine")
    found = load_memory(deep, also=[mine, tmp_path / "none"])
    sources = [block.source_id for block in found.blocks]
    assert sources == [str(mine), "../../AGENTS.md", "../.claude/CLAUDE.md", "AGENTS.md"]


def test_imports_are_blocks_of_their_own_each_once_and_bounded(tmp_path: Path) -> None:
    deep = repository(tmp_path)
    (deep / "AGENTS.md").write_text(
        "See @docs/a.md, me@b.org, `@docs/code.md` and @none.\n```\n@docs/code.md\n```\n@../../../AGENTS.md"
    )
    (deep / "docs").mkdir()
    (deep / "docs/code.md").write_text("never")
    (deep / "docs/a.md").write_text("rule a\n@b.md @a.md @../AGENTS.md")
    for name, after in zip("bcdefg", "cdefgh", strict=True):
        (deep / f"docs/{name}.md").write_text(f"rule {name} @{after}.md")
    (deep / "docs/h.md").write_text("too deep")
    found = load_memory(deep)
    assert [b.source_id for b in found.blocks][1:] == ["AGENTS.md", *(f"docs/{name}.md" for name in "abcde")]
    assert set(found.problems) == {"docs/f.md", "../../../AGENTS.md"}
    assert "outside" in found.problems["../../../AGENTS.md"]
    (deep / "docs/a.md").write_text("x" * MEMORY_BYTES + "@b.md")
    (deep / "AGENTS.md").write_text("@docs/a.md @docs/b.md @docs/c.md " + "@docs/code.md")
    total = sum(len(block.text) for block in load_memory(deep).blocks)
    assert total < 3 * MEMORY_BYTES


async def test_folders_below_count_once_work_has_gone_there(tmp_path: Path) -> None:
    deep = repository(tmp_path)
    (deep / "src/core").mkdir(parents=True)
    (deep / "src/CLAUDE.md").write_text("in src")
    (deep / "src/core/AGENTS.md").write_text("in core")
    sources = WorkspaceSources(deep, tmp_path / "none", [])
    assert len(await sources.read_memory()) == 2
    assert not sources.go_to(["README.md/../..", "/etc/passwd", "../x"])
    assert sources.go_to(["src/core/a.py"]) and not sources.go_to(["src/core"])
    assert [b.source_id for b in await sources.read_memory()][2:] == ["src/CLAUDE.md", "src/core/AGENTS.md"]
