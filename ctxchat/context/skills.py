"""An index of skills: notes on how to do things, each a Markdown file the agent can read when it needs it.

Only names, first lines and paths go into a request; the texts stay where they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ctxchat.context.textfile import read_text

MOST_SKILLS = 50
HEAD_BYTES = 4_000
LINE = 160


class Skill(msgspec.Struct, frozen=True):
    """A skill's name, what it is for in one line, and its file."""

    name: str
    line: str
    path: str


class Skills:
    """ContextProvider `skills`. Folders are searched in order; the first skill of a name wins."""

    source_id = "skills"

    def __init__(self, *folders: Path, within: Path | None = None) -> None:
        """`within`: no link leads out of this folder."""
        self._folders, self._within = folders, within

    async def provide(self) -> str:
        """One line a skill; empty when there are none."""
        skills = await asyncio.to_thread(find_skills, *self._folders, within=self._within)
        if not skills:
            return ""
        lines = [f"- {s.name}: {s.line} ({s.path})" for s in skills[:MOST_SKILLS]]
        more = [f"… and {len(skills) - MOST_SKILLS} more"] if len(skills) > MOST_SKILLS else []
        return "\n".join(["Skills, to be read before doing what they describe:", *lines, *more])


def workspace_skills(root: Path) -> Path:
    """Where a workspace keeps its own."""
    return root / ".ctxchat" / "skills"


def find_skills(*folders: Path, within: Path | None = None) -> tuple[Skill, ...]:
    """Skills in these folders, by name: `deploy.md` and `deploy/SKILL.md` are both called `deploy`. One that cannot be read, or
    that does not lie `within` a folder, is none. Blocking."""
    found: dict[str, Skill] = {}
    for folder in folders:
        for name, path in _files(folder):
            if name not in found:
                file = read_text(path, HEAD_BYTES, within)
                if file.problem and not file.text:
                    continue
                line = _first_line(file.text)
                found[name] = Skill(name, line or "no description", str(path))
    return tuple(found[name] for name in sorted(found))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return
    for path in inside:
        if path.is_dir():
            if (path / "SKILL.md").is_file():
                yield path.name, path / "SKILL.md"
        elif path.suffix == ".md" and path.is_file():
            yield path.stem if path.name != "SKILL.md" else folder.name, path


def _first_line(text: str) -> str:
    """A `description:` in the front matter, else the first line that says something."""
    lines = [line.strip() for line in text.splitlines()]
    if lines and lines[0] == "---" and "---" in lines[1:]:
        end = lines.index("---", 1)
        described = [line.partition(":")[2].strip(" '\"") for line in lines[1:end] if line.startswith("description:")]
        if described and described[0]:
            return described[0][:LINE]
        lines = lines[end + 1 :]
    first = next((line.lstrip("# ").strip() for line in lines if line.lstrip("# ").strip()), "")
    return first[:LINE]
