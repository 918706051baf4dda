"""What ctxchat starts for itself never comes from a project: no program of its PATH, no module beside the person's files."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ctxchat
from ctxchat.own_processes import find_program, module_command, outside_path, own_places

PACKAGE = Path(ctxchat.__file__).parent

STARTS = {
    "run", "Popen", "call", "check_call", "check_output", "getoutput", "create_subprocess_exec", "create_subprocess_shell",
    "system", "popen", "posix_spawn", "posix_spawnp", "execv", "execve", "execvp", "execvpe", "spawnv", "spawnvp", "startfile",
}  # fmt: skip
STARTERS = {
    "bootstrap/history_import.py",  # module_command
    "cli/worktree.py",  # find_program
    "context/workspace.py",  # a command that it is handed
    "models/process.py",  # module_command
    "tools/reaper.py",  # what it is told to run
    "tools/processes.py",  # what its callers give it: each is one of those below
    "tools/sandbox.py",  # find_program
    "tui/browser.py",  # code_command, and the browser by outside_path
    "tui/unsent/clipboard.py",  # find_program
    "tui/unsent/outside_editor.py",  # the person's editor, by find_program
}
CHILDREN = {
    "bootstrap/hooks.py",
    "tools/job_keeper.py",
    "tools/jobs.py",
    "tools/mcp/host.py",
    "tools/shell.py",
    "tools/worker_client.py",
}
"""Who calls `tools.processes.child`, with what `find_program` and `module_command` give."""
NAME_THE_INTERPRETER = {"own_processes.py", "cli/common.py", "tools/mcp/connection.py"}
"""Two of them in the remedy for a missing package."""


def _faults(name: str, tree: ast.AST) -> list[str]:
    """What a module of ours does that only those above may."""
    nodes = list(ast.walk(tree))
    used = {
        (node.value.id, node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    imported = {
        (node.module or "", alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    starts = {(module, each) for module in ("subprocess", "os", "asyncio") for each in STARTS} - {("asyncio", "run")}
    opens = {("click", "launch"), ("click", "edit"), ("click", "echo_via_pager"), ("webbrowser", "open")}
    rules = {
        "starts a process": used & starts and name not in STARTERS,
        "has a child": ("ctxchat.tools.processes", "child") in imported and name not in CHILDREN,
        "imports what starts a process": any(
            module in {"subprocess", "os"} and what in STARTS for module, what in imported
        ),
        "opens another program": used & opens,
        "looks up a program": ("shutil", "which") in used | imported,
        "names the interpreter": ("sys", "executable") in used and name not in NAME_THE_INTERPRETER,
    }
    return [f"{name} {what}" for what, holds in rules.items() if holds]


def test_nothing_else_starts_a_process_or_looks_up_a_program() -> None:
    files = {str(file.relative_to(PACKAGE)): file for file in PACKAGE.rglob("*.py")}
    assert len(files) > 100
    assert not [each for name, file in sorted(files.items()) for each in _faults(name, ast.parse(file.read_text()))]


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess\nsubprocess.run([])",
        "import os\nos.system('x')",
        "import asyncio\nasyncio.create_subprocess_shell('x')",
        "from ctxchat.tools.processes import child",
        "from os import execv",
        "import click\nclick.launch('x')",
        "import webbrowser\nwebbrowser.open('x')",
        "import shutil\nshutil.which('x')",
        "from shutil import which",
        "import sys\nsys.executable",
    ],
)
def test_a_module_that_does_is_found(line: str) -> None:
    assert len(_faults("tui/new.py", ast.parse(line))) == 1
    assert not _faults("tui/new.py", ast.parse("import asyncio\nasyncio.run(main())"))


def _program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\nexit 0\n")
    (folder / name).chmod(0o755)
    return folder / name


def test_a_program_is_never_one_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, other, good = tmp_path / "work", tmp_path / "other", tmp_path / "good"
    for folder in (work / "bin", other / ".venv/bin", work / "deep/er"):
        _program(folder, "bwrap")
    (other / ".venv/pyvenv.cfg").write_text("")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/bwrap").symlink_to(work / "bin/bwrap")
    (tmp_path / "way").symlink_to(work / "bin")
    (good / "bwrap").mkdir(parents=True)
    evil = [
        work / "bin",
        "",
        ".",
        "bin",
        other / ".venv/bin",
        work / "deep/er",
        tmp_path / "linked",
        tmp_path / "way",
        good,
    ]
    path = os.pathsep.join(map(str, evil))
    monkeypatch.chdir(work)
    assert find_program("bwrap", str(work), path) == find_program("bwrap", path=path) == ""
    assert outside_path(str(work), path).split(os.pathsep) == [str(tmp_path / "linked"), str(good)]
    real = _program(tmp_path / "real", "bwrap")
    assert find_program("bwrap", str(work), f"{path}{os.pathsep}{real.parent}") == str(real)


@pytest.mark.parametrize("module", ["ctxchat.tools.search_worker", "ctxchat.models.litellm_worker", "ctxchat"])
def test_a_module_beside_the_project_is_not_imported(module: str, tmp_path: Path) -> None:
    evil = f"open({str(tmp_path / 'RAN')!r}, 'w')\nraise SystemExit(9)\n"
    for name in (
        "click",
        "msgspec",
        "json",
        "runpy",
        "mcp",
        "sitecustomize",
        "ctxchat/__init__",
        "src/msgspec",
        "src/click",
    ):
        (tmp_path / f"{name}.py").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(evil)
    environ = {
        **os.environ,
        "PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path}",
        "PYTHONSTARTUP": str(tmp_path / "click.py"),
    }
    more = ("--version",) if module == "ctxchat" else ()
    ran = subprocess.run(
        module_command(module, *more),
        cwd=tmp_path,
        env=environ,
        input="",
        capture_output=True,
        text=True,
    )
    assert not (tmp_path / "RAN").exists() and ran.returncode != 9, ran.stderr
    assert "ctxchat" in ran.stdout or not more


def test_the_console_script_imports_nothing_from_the_folder_it_is_started_in(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(f"open({str(tmp_path / 'RAN')!r}, 'w')\n")
    start = "import sys; from ctxchat.cli import entry; sys.argv[1:] = ['--help']; sys.path.insert(0, ''); entry()"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-P", "-c", start], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert ran.returncode == 0 and "Usage" in ran.stdout and not (tmp_path / "RAN").exists()


def test_the_places_of_the_program_are_known() -> None:
    places = own_places()
    assert any(Path(sys.prefix).resolve().is_relative_to(place) for place in places)
    assert str(PACKAGE.resolve()) in places
