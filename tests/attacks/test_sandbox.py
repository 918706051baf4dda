# ruff: noqa: ASYNC221, ASYNC240
"""Attacks from inside a real sandbox: each command here tries to get out, or to leave something that runs later."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from ctxchat.core.errors import ToolError
from ctxchat.core.permissions import Grant
from ctxchat.core.ports import ToolContext, ToolOutput, ToolText
from ctxchat.tools.guarding import MAX_MOUNTS, Guarding
from ctxchat.tools.sandbox import NOTHING, find_sandbox
from ctxchat.tools.shell import NO_OUTPUT, Shell
from ctxchat.tools.unreadable import MAX_COVERED

from .judging import ten_commands

pytestmark = pytest.mark.skipif(
    find_sandbox().kind != "bubblewrap", reason="bubblewrap is missing or does not work here"
)


PYTHON = os.path.realpath(sys.executable)


class House:
    """A home with secrets, our own folders, and a project that is a repository with another one in it."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.work, self.home = self.root / "work", self.root / "home"
        self.config, self.data, self.session = (self.home / n for n in (".config/ctxchat", "data", "data/s1"))
        for folder in (self.work / "sub", self.home / ".ssh", self.config, self.session):
            folder.mkdir(parents=True)
        (self.home / ".ssh" / "id_ed25519").write_text("SECRET-KEY")
        (self.data / "ctxchat.db").write_text("SECRET-TALK")
        (self.config / "config.toml").write_text("# mine\n")
        for repository in (self.work, self.work / "sub"):
            subprocess.run(["git", "init", "-q", str(repository)], check=True)
        (self.work / ".vscode").mkdir()
        (self.work / ".gitlab-ci.yml").write_text("ours\n")
        hidden = [self.home / ".ssh", self.config, self.data, self.root / "later"]
        self.shell = Shell(find_sandbox(hidden=hidden, caches=self.data / "caches"), os.environ)
        self._ids = itertools.count(1)

    async def run(
        self, command: str, allowed: Grant = NOTHING, *, read_only: bool = False, **more: object
    ) -> ToolOutput:
        id = f"c{next(self._ids)}"
        context = ToolContext(id, str(self.work), str(self.session), allowance=allowed, read_only=read_only)
        async with aclosing(self.shell.run({"command": command, **more}, context)) as pieces:
            return [piece async for piece in pieces if isinstance(piece, ToolOutput)][-1]

    def print(self) -> dict[str, str]:
        """Everything below the root, but what commands may change: for a look whether anything was."""
        return {
            str(path.relative_to(self.root)): _what(path)
            for path in sorted(self.root.rglob("*"))
            if not path.is_relative_to(self.data / "s1") and not path.is_relative_to(self.data / "caches")
        }


def _what(path: Path) -> str:
    if path.is_symlink():
        return f"link {path.readlink()}"
    return path.read_text(errors="replace") if path.is_file() else "folder"


@pytest.fixture
def house(pytestconfig: pytest.Config) -> Iterator[House]:
    """Not below /tmp: that is a private one inside anyway."""
    with tempfile.TemporaryDirectory(dir=pytestconfig.cache.mkdir("attacks")) as root:  # type: ignore[union-attr]
        yield House(Path(root))


GUARDED = [
    "echo evil >> .git/config",
    "echo evil > .git/hooks/pre-commit",
    "git config core.fsmonitor evil",
    "git -C sub config alias.st '!evil'",
    "echo evil > sub/.git/config",
    "echo '{}' > .vscode/tasks.json",
    "echo evil > .gitlab-ci.yml",
    "sed -i s/ours/evil/ .gitlab-ci.yml",
    "mv .git .g; rm -rf .git; rmdir .vscode",
    "ln -s .git link; echo evil >> link/config; rm link",
    "ln .git/config twin; echo evil >> twin; rm -f twin",
    "echo evil > x; mv -f x .git/config; rm -f x",
    "echo evil > x; mv -f x .gitlab-ci.yml; rm -f x",
    "chmod -R 777 .git; echo evil >> .git/config",
    "umount .git; mount -o remount,rw,bind .git; echo evil >> .git/config",
    "unshare -Urm sh -c 'umount .git; mount -o remount,bind,rw .git; echo evil >> .git/config'",
    "python3 -c \"import ctypes; ctypes.CDLL(None).umount2(b'.git', 2); open('.git/config', 'a').write('evil')\"",
    "echo evil > .git/../.git/config; (cd .git && echo evil > config)",
    "echo evil > /proc/self/cwd/.git/config; echo evil > /proc/1/root$PWD/.git/config",
    "exec 9< .git; echo evil > /proc/self/fd/9/config",
]


async def changing(commands: Sequence[str], house: House) -> list[str]:
    """Those of the commands that change anything: all are tried in one sandbox, and one by one where something changed."""
    before = house.print()
    await house.run("\n".join(f"({command})" for command in commands))
    if house.print() == before:
        return []
    return [command for command in commands if await _changes(command, house)]


async def _changes(command: str, house: House) -> bool:
    before = house.print()
    await house.run(command)
    return house.print() != before


async def test_what_is_guarded_cannot_be_changed(house: House) -> None:
    assert await changing(GUARDED, house) == []


async def test_a_change_would_be_seen_and_named(house: House) -> None:
    assert await changing(["true", "echo x > seen", "rm -f nothing"], house) == []
    assert await changing(["true", "echo $RANDOM >> seen"], house) == ["echo $RANDOM >> seen"]


NEW = {
    "mkdir .ctxchat; echo 'permissions.mode = \"all\"' > .ctxchat/config.toml": ".ctxchat",
    "mkdir -p .github/workflows; echo evil > .github/workflows/x.yml": ".github",
    "echo evil > .envrc": ".envrc",
    "mkdir deep; git init -q deep/er; echo evil >> deep/er/.git/config": "deep/er/.git",
    "mkdir e; echo 'gitdir: ../evil' > e/.git": "e/.git",
    "mkdir evil; touch evil/tasks.json; mkdir n; mv evil n/.vscode": "n/.vscode",
    "ln -s sub .idea": ".idea",
    "mkdir a; mkdir a/.ctxchat; mv a b": "b/.ctxchat",
    "mkdir .GitHub .Vscode": ".GitHub, .Vscode",
    "mkdir a; git init -q --bare a/b; rm -rf a/b/hooks": "a/b/HEAD, a/b/config",
    "mkdir shut; mkdir shut/.idea; chmod 500 shut": "shut/.idea",
    "mkdir -p node_modules/x; git init -q node_modules/x": "node_modules/x/.git",
    "(setsid sh -c 'sleep 0.2; mkdir .circleci' &); sleep 0.1": "",
}


async def test_what_comes_to_a_guarded_place_is_taken_away_and_kept(house: House) -> None:
    """All in one sandbox, each in a folder of its own."""
    found = await house.run("\n".join(f"(mkdir n{n}; cd n{n}; mkdir sub; {command})" for n, command in enumerate(NEW)))
    named = re.search(r"without anybody asking: (.*?)\. It lies in (\S+)\. ", found.text)
    wanted = [f"n{n}/{name}" for n, names in enumerate(NEW.values()) for name in names.split(", ") if name]
    assert named and sorted(named[1].split(", ")) == sorted(wanted)
    for name in wanted:
        assert not os.path.lexists(house.work / name) and os.path.lexists(Path(named[2]) / name)
    assert not list(house.work.rglob(".circleci"))


async def test_a_command_that_is_stopped_leaves_nothing_there_either(house: House) -> None:
    context = ToolContext("c", str(house.work), str(house.session))
    pieces = house.shell.run({"command": "mkdir .idea; touch .idea/x; echo there; sleep 60"}, context)
    assert await anext(pieces) == ToolText("there\n")
    await pieces.aclose()
    assert not (house.work / ".idea").exists()
    assert list(house.session.glob("taken-away/*/.idea/x"))


async def test_a_renamed_folder_takes_its_repository_along_and_a_new_one_does_not_stay(house: House) -> None:
    before = _what(house.work / "sub/.git/config")
    found = await house.run("mv sub gone; mkdir -p sub/.git; echo evil > sub/.git/config; echo evil > gone/.git/config")
    assert "without anybody asking: sub/.git. It lies" in found.text
    assert _what(house.work / "gone/.git/config") == before and not (house.work / "sub/.git").exists()


async def test_links_at_guarded_places_lead_where_they_did(house: House) -> None:
    (house.work / "editor").mkdir()
    (house.work / ".idea").symlink_to("editor")
    await house.run("echo evil > editor/x; rm .idea; mkdir .idea; echo evil > .idea/x")
    assert (house.work / ".idea").readlink() == Path("editor") and not list((house.work / "editor").iterdir())
    await house.run("rm .idea")
    assert (house.work / ".idea").readlink() == Path("editor")


async def test_what_repositories_point_to_is_guarded_too(house: House) -> None:
    work = house.work
    subprocess.run(["git", "-C", str(work), "config", "core.hooksPath", "tools/hooks"], check=True)
    (work / "tools/hooks").mkdir(parents=True)
    (work / "store").mkdir()
    (work / "store/config").write_text("[core]\n")
    (work / "tree").mkdir()
    (work / "tree/.git").write_text("gitdir: ../store\n")
    os.link(work / ".git/config", work / "twin")
    before = house.print()
    await house.run(
        "echo evil > tools/hooks/pre-commit; echo evil > store/config; echo evil > tree/.git; echo evil > twin"
    )
    assert house.print() == before


def test_very_many_places_are_guarded_by_the_folders_they_lie_in(tmp_path: Path) -> None:
    for number in range(MAX_MOUNTS):
        (tmp_path / "a" / str(number) / ".git").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert set(Guarding(str(tmp_path)).paths()) == {f"{tmp_path}/.git", f"{tmp_path}/a"}
    for number in range(MAX_MOUNTS):
        (tmp_path / str(number) / ".git").mkdir(parents=True)
    assert Guarding(str(tmp_path)).paths() == (str(tmp_path),)


async def test_a_person_can_allow_the_repository_and_commits_work_then_but_hooks_stay(house: House) -> None:
    commit = (
        "echo x > a.txt; git add a.txt && git -c user.name=a -c user.email=a@b commit -qm x; git log --oneline | wc -l"
    )
    assert "Read-only file system" in (await house.run(commit)).text
    access_request = house.shell.access_request({"command": commit}, ToolContext("d", str(house.work)))
    assert str(house.work / ".git") in access_request.allowance.folders
    allowed = Grant(folders=(str(house.work / ".git"),))
    assert (await house.run(commit, allowed)).text.endswith("1")
    config = _what(house.work / ".git/config")
    evil = "mkdir other; echo evil > other/config; echo ../other > .git/commondir; echo evil > .git/config.worktree"
    found = await house.run(f"echo evil > .git/config; echo evil > .git/hooks/pre-commit; mv .git x; {evil}", allowed)
    assert ".git/commondir, .git/config.worktree" in found.text or ".git/config.worktree, .git/commondir" in found.text
    assert _what(house.work / ".git/config") == config and not (house.work / ".git/hooks/pre-commit").exists()
    assert not (house.work / ".git/commondir").exists()


async def test_with_commits_allowed_daily_work_goes_on_and_nothing_that_git_runs_changes(house: House) -> None:
    git = house.work / ".git"
    for place in ("modules/dep/hooks", "worktrees/tree", "hooks", "info"):
        (git / place).mkdir(parents=True, exist_ok=True)
    (git / "modules/dep/config").write_text("[core]\n")
    (git / "worktrees/tree/commondir").write_text("../..\n")
    with (git / "config").open("a") as config:
        config.write(
            "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../more.config\n[user]\n\tname = a\n\temail = a@b\n"
        )
    (house.work / "more.config").write_text("[alias]\n")
    allowed = Grant(folders=(str(git),))
    daily = (
        "set -e; echo 1 > a; git add a; git commit -qm one; git checkout -qb side; echo 2 >> a; git commit -qam two; git tag t; "
        "echo 3 >> a; git stash -q; git stash pop -q; git checkout -q a; git checkout -q -; echo 4 > b; git add b; "
        "git commit -qm three; git merge -q side -m four; git rm -q b; git reset -q --hard; git branch -d side; "
        "git commit -q --amend -m five; git log --oneline | wc -l"
    )
    found = await house.run(daily, allowed)
    assert found.text.endswith("\n4") and found.status == "ok", found.text
    keep = ("config", "hooks", "modules", "worktrees", "info", "description")
    before = {str(path): _what(path) for name in keep for path in (git / name, *(git / name).rglob("*"))}
    evil = (
        "cd .git; for f in config hooks/pre-commit modules/dep/config modules/dep/hooks/post-checkout worktrees/tree/commondir "
        "worktrees/tree/config.worktree info/attributes; do echo evil >> $f; done; rm -rf hooks modules worktrees; mkdir -p "
        "modules/new rebase-merge; echo evil > modules/new/config; echo 'exec evil' > rebase-merge/git-rebase-todo; "
        "echo evil > config.worktree; ln -sf /tmp/x commondir; cd ..; mkdir -p tools/hooks; echo evil > tools/hooks/pre-commit; "
        "echo evil >> more.config"
    )
    found = await house.run(evil, allowed)
    assert {str(path): _what(path) for name in keep for path in (git / name, *(git / name).rglob("*"))} == before
    assert not (house.work / "tools/hooks").exists() and (house.work / "more.config").read_text() == "[alias]\n"
    new = ("config.worktree", "commondir", "rebase-merge")
    assert not any(os.path.lexists(git / name) for name in new) and all(f".git/{name}" in found.text for name in new)


async def test_ten_commands_of_a_day_do_their_work_in_a_clone(house: House) -> None:
    """Those that nobody is asked about where nothing can be written, the commit as a yes with its tick lets it run. What two more
    do depends on programs of a project."""
    made = (
        "set -e; git init -q origin; cd origin; mkdir src; echo 'def judge(): 1' > src/a.py; echo '[x]' > pyproject.toml; "
        "git config user.name a; git config user.email a@b; git add -A; git commit -qm 1; echo 2 >> src/a.py; git commit -qam 2; "
        "cd ..; git clone -q origin clone; cd clone; git config user.name a; git config user.email a@b; echo 3 >> src/a.py"
    )
    subprocess.run(["bash", "-c", made], cwd=house.root, check=True)
    house.work = house.root / "clone"
    before = house.print()
    for command, asked, *_ in ten_commands():
        if not asked:
            found = await house.run(command, read_only=True)
            assert found.status == "ok" and found.text != NO_OUTPUT, (command, found.text)
    assert house.print() == before
    (commit,) = [command for command, *_ in ten_commands() if "commit" in command]
    assert (await house.run(commit)).status == "error"
    found = await house.run(commit, Grant(folders=(str(house.work / ".git"),)))
    assert found.status == "ok" and "1 file changed" in found.text


async def test_in_a_linked_worktree_commits_work_and_nothing_that_git_runs_changes(house: House) -> None:
    tree, git = house.root / "tree", house.work / ".git"
    run = ["git", "-C", str(house.work), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*run, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    for name in ("tree", "objects"):
        subprocess.run([*run, "worktree", "add", "-q", str(house.root / name)], check=True)
    (git / "config").write_text((git / "config").read_text() + "[user]\n\tname = a\n\temail = a@b\n")
    main, house.work = house.work, tree
    commit = "set -e; echo x > a; git add a; git commit -qm two; git checkout -qb side; git stash list; git log --oneline | wc -l"
    access_request = house.shell.access_request({"command": commit}, ToolContext("d", str(tree)))
    assert access_request.allowance.folders == (str(git),)
    allowed = Grant(folders=access_request.allowance.folders)
    found = await house.run(commit, allowed)
    assert found.status == "ok" and found.text.endswith("2"), found.text
    keep = (
        "config",
        "hooks",
        "worktrees/objects",
        "worktrees/tree/commondir",
        "worktrees/tree/gitdir",
        "info",
        "index",
    )
    before = {str(path): _what(path) for name in keep for path in (git / name, *(git / name).rglob("*"))}
    evil = (
        f"cd {git}; for f in config hooks/pre-commit worktrees/objects/HEAD worktrees/objects/config.worktree info/attributes "
        "worktrees/tree/config.worktree worktrees/tree/commondir worktrees/tree/gitdir config.worktree commondir; do "
        "echo evil > $f; done; mkdir -p worktrees/new modules/x; mv worktrees w; mv hooks h"
    )
    found = await house.run(evil, allowed)
    after = {str(path): _what(path) for name in keep for path in (git / name, *(git / name).rglob("*"))}
    assert after == before
    new = [
        git / name
        for name in ("config.worktree", "commondir", "modules", "worktrees/new", "worktrees/tree/config.worktree")
    ]
    assert not any(map(os.path.lexists, new)) and all(str(path) in found.text for path in new)
    (tree / ".git").write_text(f"gitdir: {main / 'sub/.git'}\n")
    assert (
        str(git) not in house.shell.access_request({"command": commit}, ToolContext("d", str(tree))).allowance.folders
    )


OUTSIDE = [
    "echo evil > ../outside",
    "echo evil >> ../home/.config/ctxchat/config.toml; mkdir -p ../home/.config/ctxchat; touch ../home/.config/ctxchat/x",
    "rm -rf ../home/data ../home/.ssh; touch ../home/data/ctxchat.db",
    "ln -s ../home/.config/ctxchat c; echo evil > c/config.toml; rm c",
    "mv ../home ../away; mkdir -p ../later; touch ../home/.bashrc",
    "ln ../home/.ssh/id_ed25519 k; rm -f k",
    "echo evil > /proc/self/root$PWD/../outside",
]  # fmt: skip


async def test_nothing_outside_can_be_written(house: House) -> None:
    assert await changing(OUTSIDE, house) == []


async def test_secrets_and_our_own_data_cannot_be_read(house: House) -> None:
    read = (
        "cat {0}/.ssh/* {0}/data/*.db {0}/.config/ctxchat/*; ls -a {0}/.ssh {0}/data; ln -s {0}/.ssh s; cat s/*; rm s"
    ).format
    found = await house.run(read(house.home))
    assert "SECRET" not in found.text and "id_ed25519" not in found.text and "# mine" not in found.text
    if os.geteuid() == 0:
        assert "root:" not in (await house.run("cat /etc/shadow")).text


async def test_what_a_rule_forbids_to_read_is_empty_for_every_program(house: House) -> None:
    for name in ("keys/one", "keys/deep/two", "src/.env", "src/.ENV.local", "plain", "seen", "deep/er/one/x"):
        (house.work / name).parent.mkdir(parents=True, exist_ok=True)
        (house.work / name).write_text("OPEN\n" if name == "seen" else "SECRET\n")
    python = "import os; [print(open(os.path.join(d, f), 'rb').read()) for d, _, n in os.walk('.') for f in n if f != 'index']"
    read = (
        "grep -r E .; rg -uu E; cat * */* */*/*; find . -type f -exec cat {} +; tar c . | cat; cp -r . /tmp/x; grep -r E /tmp/x; "
        f"{PYTHON} -c {shlex.quote(python)}; mv keys k; mv src s; mv deep d; cat k/* s/.*; ln plain p; cat p; umount plain; "
        "cat plain"
    )
    patterns = ("keys/**", "**/.env*", "./plain", "deep/er/one/*")
    for read_only in (False, True):
        context = ToolContext("c", str(house.work), str(house.session), read_only=read_only, unreadable=patterns)
        async with aclosing(house.shell.run({"command": read}, context)) as pieces:
            text = [piece async for piece in pieces if isinstance(piece, ToolOutput)][-1].text
        assert "OPEN" in text and "SECRET" not in text
    assert len([path for path in house.work.rglob("*") if path.is_file() and "SECRET" in path.read_text()]) == 6
    assert not any((house.work / name).exists() for name in "ksd")
    many = ToolContext("d", str(house.work), str(house.session), unreadable=("many/*.txt",))
    (house.work / "many").mkdir()
    for number in range(MAX_COVERED + 1):
        (house.work / f"many/{number}.txt").touch()
    (house.work / "many/other").touch()
    with pytest.raises(ToolError, match="too many"):
        _ = [piece async for piece in house.shell.run({"command": "ls"}, many)]


async def test_of_a_home_folder_only_toolchains_are_seen(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(house.home))
    places = (
        ".pgpass", ".config/sops/age/keys.txt", ".config/BraveSoftware/Brave/Cookies", ".claude/history", ".codex/auth.json",
        ".config/gh/hosts.yml", ".netrc", ".bash_history", "notes/diary", ".local/share/keyrings/x", ".cargo/credentials.toml",
        ".npmrc", ".m2/settings.xml", ".config/pip/pip.conf", ".cache/huggingface/token", ".new-tool/token",
    )  # fmt: skip
    seen = (".cargo/bin/tool", ".gitconfig", ".pyenv/version", "data/set", ".cache/uv/x")
    for name in (*places, *seen):
        (house.home / name).parent.mkdir(parents=True, exist_ok=True)
        (house.home / name).write_text("SECRET" if name in places else f"OPEN {name}\n")
    house.shell = Shell(find_sandbox(str(house.work), readable=[house.home / "data"]), os.environ)
    found = await house.run(f"cd {house.home}; cat {' '.join((*places, *seen))}; find . -type f; touch x .cargo/bin/x")
    assert "SECRET" not in found.text and not (house.home / "x").exists()
    assert [name for name in seen if f"OPEN {name}" not in found.text] == []
    assert "diary" not in found.text.partition("[In the sandbox")[0].rpartition("cat: ")[2].partition("\n")[2]


async def test_the_program_itself_cannot_be_replaced(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    program = house.work / "deep/env"
    (program / "bin").mkdir(parents=True)
    (program / "bin/python").write_text("ours")
    monkeypatch.setattr("sys.prefix", str(program))
    before = house.print()
    commands = (
        "echo evil > deep/env/bin/python",
        "rm -rf deep",
        "mv deep d; mkdir -p deep/env/bin; echo evil > deep/env/bin/python",
        "mv deep/env deep/e; mkdir deep/env",
    )
    for command in commands:
        await house.run(command)
        assert house.print() == before, command


async def test_a_resolver_is_reached_with_the_network_only(house: House) -> None:
    command = house.shell._sandbox.wrap(["x"], str(house.work))
    assert "/run/systemd/resolve" not in command
    assert "/run/systemd/resolve" in house.shell._sandbox.wrap(["x"], str(house.work), allowed=Grant(network=True))


async def test_who_works_above_their_secrets_writes_nothing_there(house: House) -> None:
    before = house.print()
    context = ToolContext("c", str(house.home), str(house.session))
    command = "touch x; mv .ssh s; mv data d; mkdir data; mv .config c; mkdir -p .config/ctxchat; echo evil > .bashrc"
    async with aclosing(house.shell.run({"command": command}, context)) as pieces:
        text = [piece async for piece in pieces if isinstance(piece, ToolOutput)][-1].text
    assert house.print() == before and "holds your home folder or secrets and is read-only" in text


async def test_no_network_and_no_sockets(house: House) -> None:
    abstract = f"\0ctxchat-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind(abstract)
        hidden.listen()
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            code = f"""
import socket
I, U = socket.AF_INET, socket.AF_UNIX
for family, address in ((I, ("127.0.0.1", {port})), (U, {abstract!r}), (I, ("1.1.1.1", 53))):
    try:
        s = socket.socket(family); s.settimeout(3); s.connect(address); print("REACHED", address)
    except OSError as e: print(e)
"""
            (house.work / "t.py").write_text(code)
            assert "REACHED" not in (await house.run("python3 t.py")).text
            assert f"('127.0.0.1', {port})" in (await house.run("python3 t.py", Grant(network=True))).text
    assert "SOCKET" not in (await house.run("find /run /tmp /var/tmp -type s -printf SOCKET 2>/dev/null")).text


async def test_other_processes_are_not_to_be_seen_or_touched(house: House) -> None:
    command = f"kill -9 {os.getpid()}; ls /proc | grep -c '^[0-9]'; cat /proc/{os.getpid()}/environ; kill -9 -1"
    found = await house.run(command)
    assert int(re.search(r"^(\d+)$", found.text, re.M)[1]) < 10 and "No such process" in found.text
    assert "PATH=" not in found.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could")
async def test_the_kernels_settings_cannot_be_written_by_root_either(house: House) -> None:
    command = (
        "for f in kernel/core_pattern kernel/hostname vm/swappiness; do cat /proc/sys/$f > /proc/sys/$f; done; "
        "grep CapEff /proc/self/status"
    )
    found = await house.run(command)
    assert found.text.count("Read-only file system") == 3 and "CapEff:\t0000000000000000" in found.text


async def test_package_managers_have_a_cache_of_their_own(house: House) -> None:
    found = await house.run(
        'mkdir -p "$UV_CACHE_DIR" "$PIP_CACHE_DIR" && touch "$UV_CACHE_DIR/x" && echo "$UV_CACHE_DIR"'
    )
    assert found.text.startswith(str(house.data / "caches")) and (Path(found.text.strip()) / "x").exists()
    real = Path.home() / ".cache/uv"
    if real.is_dir():
        assert (await house.run('echo "[$UV_CACHE_DIR]"', Grant(folders=(str(real),)))).text.startswith("[")


async def test_outside_this_once_is_outside(house: House) -> None:
    await house.run("echo x > ../outside; mkdir .github", Grant(outside=True))
    assert (house.root / "outside").exists() and (house.work / ".github").exists()
    folder = house.root / "cache"
    folder.mkdir()
    assert "Read-only" in (await house.run(f"touch {folder}/x")).text
    await house.run(f"touch {folder}/x", Grant(folders=(str(folder),)))
    assert (folder / "x").exists()


async def test_what_the_sandbox_stopped_says_what_could_be_asked_for(house: House) -> None:
    found = await house.run(f"touch {house.root}/x")
    assert f": {house.root}/x. If the command needs a folder, call again with folders" in found.text
    for command in ("echo > .git/x", "touch .git/x", "python3 -c \"open('.git/x', 'w')\""):
        assert "(.git, editor and CI files): .git/x. If" in (await house.run(f"{command}; exit 1")).text
    found = await house.run("python3 -c \"import socket; socket.getaddrinfo('example.com', 80)\"")
    assert "call again with network: true" in found.text
    assert "[The sandbox" not in (await house.run("exit 3")).text
