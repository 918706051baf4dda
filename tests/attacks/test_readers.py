"""Each reader of a project's own files against what a project may put in their place: a pipe, a device, a link out of the
folder, a file without end, patterns made to take for ever. In a process of its own, which is ended where it hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GUARDED = (
    "from ctxchat.tools.guarding import Guarding, linked_worktree; "
    "print(linked_worktree(str(root)), Guarding(str(root)).paths())"
)
READERS = {
    "memory": ("AGENTS.md", "from ctxchat.context.memory_files import load_memory as read; print(read(root).blocks)"),
    "skill": (
        ".ctxchat/skills/deploy.md",
        "from ctxchat.config.effective import load_settings; print(load_settings(root, config=root / 'none').project.lines)",
    ),
    "skill in a folder": (
        ".ctxchat/skills/deploy/SKILL.md",
        "from ctxchat.config.effective import load_settings; print(load_settings(root, config=root / 'none').project.lines)",
    ),
    "settings": (
        ".ctxchat/config.toml",
        "from ctxchat.config.effective import load_settings; print(load_settings(root, config=root / 'none').settings.theme)",
    ),
    "names for completion": (
        ".gitignore",
        "from ctxchat.tui.unsent.workspace_files import files_of; print(files_of(root))",
    ),
    "walk": (".gitignore", "from ctxchat.tools.walking import walk; print(list(walk(str(root))))"),
    "checkpoint": (".gitignore", "from ctxchat.tools.tree import Tree; print(Tree(str(root)).scan(lambda new: None))"),
    "worktree": (".git", GUARDED),
    "repository of a worktree": (
        "gitdir",
        f"(root / '.git').rmdir(); (root / '.git').write_text('gitdir: .'); {GUARDED}",
    ),
    "what a repository shares": (".git/commondir", GUARDED),
    "configuration of a repository": (".git/config", GUARDED),
    "encoding": (
        ".editorconfig",
        "from ctxchat.tools.editorconfig import agreed_encoding; from ctxchat.tools.paths import ResolvedPath; "
        "print(agreed_encoding(ResolvedPath(root.resolve() / 'a.py', 'a.py', True)))",
    ),
    "exclude": (".git/info/exclude", "from ctxchat.tools.walking import walk; print(list(walk(str(root))))"),
    "mention": ("notes.md", "from ctxchat.tools.mentions import look_all; print(look_all('@notes.md', root))"),
}
SECRET = 'theme = "stolen-words"\nstolen-words'
HOSTILE = "*a" * 30 + "b\n" + "**/a/" * 10 + "b\n" + f"a = b{' ' * 90_000}c\n" + "\n" * 200_000


def put(place: Path, kind: str, outside: Path) -> None:
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "device":
            place.symlink_to("/dev/zero")
        case "link out":
            place.symlink_to(outside / "secret")
        case "folder out":
            place.parent.rmdir()
            place.parent.symlink_to(outside)
            (outside / place.name).write_text(SECRET)
        case "without end":
            place.touch()
            os.truncate(place, 1 << 40)
        case _:
            place.write_text(HOSTILE)


KINDS = ("pipe", "device", "link out", "folder out", "without end", "patterns")
LOOP = """
import json, sys
from pathlib import Path
for kind, root in json.loads(sys.argv[1]).items():
    print(f"<{kind}>", flush=True)
    root = Path(root)
    CODE
"""


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_waits_for_nothing_and_reads_nothing_of_others(tmp_path: Path, reader: str) -> None:
    name, code = READERS[reader]
    roots: dict[str, str] = {}
    for kind in KINDS:
        if kind == "folder out" and "/" not in name:
            continue  # it lies at the top
        root, outside = tmp_path / kind / "work", tmp_path / kind / "outside"
        (root / name).parent.mkdir(parents=True)
        outside.mkdir()
        (outside / "secret").write_text(SECRET)
        (root / ("a" * 200)).write_text("x")
        (root / "a.py").write_text("x")
        if name != ".git":
            (root / ".git").mkdir(exist_ok=True)
        put(root / name, kind, outside)
        roots[kind] = str(root)
    folders = {f"CTXCHAT_{which}_DIR": str(tmp_path / which) for which in ("CONFIG", "DATA")}
    ran = subprocess.run(
        [sys.executable, "-c", LOOP.replace("CODE", code), json.dumps(roots)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **folders},
    )
    assert ran.returncode == 0, ran.stdout[-100:] + ran.stderr
    assert "stolen-words" not in ran.stdout and all(f"<{kind}>" in ran.stdout for kind in roots)
