"""Paths that try to lead somewhere else than they say, at the moment they are judged or after it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxchat.agent.turn.permissions import judge
from ctxchat.core.errors import ToolError
from ctxchat.core.permissions import Mode, Rule
from ctxchat.core.ports import ToolContext
from ctxchat.tools import edit_file
from ctxchat.tools.edit_file import WriteFile
from ctxchat.tools.read_file import ReadFile

from .judging import verdict

WIDE = [Rule("write_file", "**"), Rule("read_file", "**")]


def said(tool: str, path: str, root: Path, mode: Mode = "ask") -> str:
    context = ToolContext("c", str(root))
    if tool == "read_file":
        access_request = ReadFile().access_request({"path": path}, context)
    else:
        access_request = WriteFile().access_request({"path": path, "content": "x"}, context)
    return judge(tool, access_request, mode, WIDE, str(root)).verdict


OUTSIDE = [
    "leak",
    "out/secret",
    "src/../../x",
    "/etc/hostname",
    "~/x",
    "/proc/self/root/etc/hostname",
    "out/../out/new",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_what_leads_out_is_asked_even_under_rules_for_all_of_the_folder(path: str, project: Path):
    assert said("read_file", path, project) == "ask"


@pytest.mark.parametrize("path", ["out/new", "../new"])
def test_writing_outside_is_asked_in_auto_edit_too(path: str, project: Path):
    assert said("write_file", path, project, "auto-edit") == "ask"


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        "src/hooks/pre-commit",
        "src/../.git/new",
        ".GIT/config",
        ".Git/hooks/x",
        ".g\u200cit/config",
        ".vscode/tasks.json",
        ".github/workflows/x.yml",
        "plain/.envrc",
        ".ctxchat/config.toml",
        "plain/HEAD",
        ".nobody-thought-of-it",
        ".nobody-thought-of-it/x",
        "src/../.newrc",
    ],
)
def test_guarded_places_are_asked_under_rules_and_in_auto_edit(path: str, project: Path):
    assert said("write_file", path, project) == said("write_file", path, project, "auto-edit") == "ask"
    assert said("write_file", path, project, "all") == "allow"
    if "\u200c" not in path:
        for command in (f"touch {path}", f"cp a.py {path}", f"tee {path}", f"mkdir -p {path}", f"dd of={path}"):
            wide = [f"shell: {command.split()[0]} **"]
            assert verdict(command, project, "auto-edit", tuple(wide)).verdict == "ask", command
    assert verdict("touch .gitignore src/.new out.txt", project, "ask", ("shell: touch **",)).verdict == "allow"


@pytest.mark.parametrize(
    "path", ["/dev/zero", "/proc/self/environ", "/sys/kernel", "a\0b", "/dev/fd/0", "", "  ", "C:\\x"]
)
def test_devices_and_what_is_no_path_are_refused(path: str, project: Path):
    for tool in ("read_file", "write_file"):
        with pytest.raises(ToolError):
            said(tool, path, project)


async def test_a_pipe_holds_nobody_up(project: Path, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    context = ToolContext("c", str(tmp_path))
    with pytest.raises(ToolError, match="not a plain file"):
        WriteFile().access_request({"path": "pipe", "content": "x"}, context)
    with pytest.raises(ToolError, match="not a plain file"):
        _ = [piece async for piece in ReadFile().run({"path": "pipe"}, context)]


async def test_a_folder_that_becomes_a_link_after_the_judgement_is_not_written_through(tmp_path: Path):
    root, hooks = tmp_path / "work", tmp_path / "hooks"
    (root / "src").mkdir(parents=True)
    hooks.mkdir()
    tool, context = WriteFile(), ToolContext("c", str(root))
    tool.access_request({"path": "src/x", "content": "x"}, context)
    (root / "src").rename(root / "was")
    (root / "src").symlink_to(hooks)
    with pytest.raises(ToolError):
        _ = [piece async for piece in tool.run({"path": "src/x", "content": "x"}, context)]
    assert not list(hooks.iterdir())


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="Linux")
def test_a_link_put_in_the_way_in_the_very_last_moment_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root, hooks = tmp_path / "work", tmp_path / "hooks"
    (root / "src").mkdir(parents=True)
    hooks.mkdir()
    change = WriteFile().change(edit_file.WriteArguments("src/x", "x"), ToolContext("c", str(root)))

    def swapped(look: Callable[[Path], bool]) -> Callable[[Path], bool]:
        def then_swap(path: Path) -> bool:
            answer = look(path)
            (root / "src").rename(root / "was")
            (root / "src").symlink_to(hooks)
            return answer

        return then_swap

    monkeypatch.setattr(edit_file, "unmoved", swapped(edit_file.unmoved))
    edit_file._store(change)
    assert not list(hooks.iterdir()) and (root / "was" / "x").read_text() == "x"
