"""The tool `skill`: the text of a skill, or one of the files beside it, when the model needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ServedSkills, ToolContext, ToolOutput
from ctxchat.core.prompt_files import SKILL_TOOL, PromptFile, skill_text
from ctxchat.repository_files import files_below, read_checked
from ctxchat.tools.text import clip_line
from ctxchat.tools.tool import Arguments, Pieces, Tool

MAX_FILE_BYTES = 400_000
"""Bytes of one file of a skill that are shown."""

MAX_SEARCHED = 2_000
"""Files and folders of a skill that are searched for files to list."""

MAX_LISTED = 40
"""Files of a skill that are listed after its text."""


class SkillArguments(Arguments, frozen=True):
    name: str
    arguments: Annotated[str, msgspec.Meta(description="Arguments for the skill, where it takes any")] = ""
    file: Annotated[str, msgspec.Meta(description="Read this file of the skill instead of its text")] = ""


class ReadSkill(Tool[SkillArguments]):
    """`prompts` gives the skills in force, those of a trusted folder and the person's own; `served` those of MCP servers, which
    need permission like the servers' tools. `unchanged` tells whether a project's trusted files are as they were."""

    name = SKILL_TOOL
    about = "Read a skill (named at the beginning of this conversation) before doing what it is for, and follow it."
    arguments = SkillArguments
    reads_only = True

    def __init__(
        self,
        prompts: Callable[[], Sequence[PromptFile]],
        unchanged: Callable[[], bool] = lambda: True,
        served: ServedSkills | None = None,
    ) -> None:
        super().__init__()
        self._prompts, self._unchanged, self._served = prompts, unchanged, served

    def access_needed(self, arguments: SkillArguments, context: ToolContext) -> AccessRequest:
        skill = self._find(arguments.name)
        file = f": {clip_line(arguments.file, 100)}" if arguments.file else ""
        if skill.server:
            preview = f"{skill.path}\n{skill.description}\nCommands it asks for need your approval as usual."
            rule = f"{skill.name} {skill.version[:16]}".rstrip()  # what is approved is this version
            summary = f"{skill.server}: skill {clip_line(skill.name.partition(':')[2], 100)}{file}"
            return AccessRequest("network", skill.name, False, summary, preview=preview, patterns=(rule,))
        return AccessRequest("none", summary=f"skill {skill.name}{file}")

    async def execute(self, arguments: SkillArguments, context: ToolContext) -> Pieces:
        skill = self._find(arguments.name)
        if skill.server and self._served:
            text = await self._served.read_skill(skill, arguments.file)
            filled = msgspec.structs.replace(skill, body=text)
            yield ToolOutput(text if arguments.file else skill_text(filled, arguments.arguments))
            return
        if arguments.file:
            text = await asyncio.to_thread(_file_of, skill, arguments.file)
            if skill.origin == "project" and not await asyncio.to_thread(self._unchanged):
                raise ToolError(
                    "A file the user trusted in this folder has changed, so this file is not read.",
                    "The user can review it with /trust.",
                )
            yield ToolOutput(text)
            return
        text = skill_text(skill, arguments.arguments)
        beside = await asyncio.to_thread(_files_beside, skill)
        yield ToolOutput("\n\n".join(part for part in (text, beside) if part))

    def _find(self, name: str) -> PromptFile:
        every = [*self._prompts(), *(self._served.skills if self._served else ())]
        skills = [each for each in every if each.kind == "skill" and each.by_model]
        wanted = name.strip().removeprefix("/")
        found = next((skill for skill in skills if skill.name == wanted), None)
        if (
            found is None and self._served and "://" in wanted
        ):  # a skill that its server does not list, named by its address
            return PromptFile(wanted, "skill", "", path=wanted.partition(":")[2], origin="server")
        if found is None:
            names = ", ".join(dict.fromkeys(skill.name for skill in skills)) or "none"
            raise ToolError(f"There is no skill {clip_line(wanted, 80)!r}.", f"There are: {names}.")
        return found


def _files_beside(skill: PromptFile) -> str:
    folder = Path(skill.folder) if skill.folder else None
    if folder is None:
        return ""
    files = files_below(folder, MAX_SEARCHED)
    if files is None:
        return f"[It has more than {MAX_SEARCHED} files and folders; read files with `file`, by the names that its text gives]"
    names = [path.relative_to(folder).as_posix() for path in sorted(files)]
    names = [name for name in names if name.lower() != "skill.md"]
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"[Files of this skill, to be read with `file`: {', '.join(names[:MAX_LISTED])}{more}]" if names else ""


def _file_of(skill: PromptFile, name: str) -> str:
    if not skill.folder:
        raise ToolError(f"The skill {skill.name} has no other files.")
    folder = Path(skill.folder)
    found = read_checked(folder / name, folder, MAX_FILE_BYTES)
    if found.problem:
        raise ToolError(
            f"{clip_line(name, 200)} {found.problem}.", "Name a file of this skill, relative to its folder."
        )
    if b"\0" in found.data[:8192]:
        raise ToolError(
            f"{clip_line(name, 200)} is not a text file.", f"It lies in {folder}: a command can use it there."
        )
    cut = f"\n[… {found.size:,} bytes in all]" if found.size > MAX_FILE_BYTES else ""
    return found.data.decode("utf-8-sig", errors="replace") + cut
