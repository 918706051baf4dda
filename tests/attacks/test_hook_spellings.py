"""One hook of a repository, spelled in many ways, in a real sandbox: before trust it does not run, trusted it does what it says
and nothing outside, and changed it does not run again until somebody has looked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ctxchat.bootstrap.hooks import HookCommands, hooks_of
from ctxchat.config.effective import Loaded
from ctxchat.config.trust import trust
from ctxchat.core.errors import CtxchatError
from ctxchat.core.hooks import RunCommand
from ctxchat.tools.sandbox import Sandbox, find_sandbox
from tests.config.conftest import Home

pytestmark = pytest.mark.skipif(
    find_sandbox().kind != "bubblewrap", reason="bubblewrap is missing or does not work here"
)

PINNED = [
    "./check.sh", "'./'check.sh", "sh check.sh", "bash ./check.sh", "./check.sh; true", "true && ./check.sh || true",
    "if true; then ./check.sh; fi", "timeout 5 ./check.sh", "bash -c './check.sh'", '"$CLAUDE_PROJECT_DIR"/check.sh',
    "$PWD/check.sh", "(./check.sh)",
]  # fmt: skip
"""All they start is a file that was looked at: they run without a sandbox, too."""

SPELLINGS = [
    *PINNED, "./check.sh & wait", "./che*.sh", "cd tools && ../check.sh", "cd tools; sh ../check.sh", ". ./check.sh",
    "source check.sh", "eval './check.sh'", "exec ./check.sh", "env X=1 ./check.sh", "X=1 ./check.sh", "sh -c 'sh check.sh'",
    "make lint", "echo ./check.sh | xargs sh", "cat check.sh | sh", "sh < check.sh", "f() { ./check.sh; }; f",
    "$(echo ./check.sh)", "python -m tools.check",
]  # fmt: skip


class Repository:
    """It has the same script behind all spellings, which tries what no hook of a repository may."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.work = self.home.workspace
        self.outside = root / "outside"
        (self.work / ".git/hooks").mkdir(parents=True)
        (self.work / "tools").mkdir()
        self.script = self.work / "check.sh"
        self.script.write_text(
            f"#!/bin/sh\ntouch {self.work}/ran\nfor f in {self.outside} {self.home.config}/config.toml {self.work}/.git/hooks/x "
            f"{self.work}/.ctxchat/config.toml {self.work}/check.sh.bak; do echo x >> $f; done\n"
        )
        self.script.chmod(0o755)
        (self.work / "Makefile").write_text("lint:\n\t@./check.sh\n")
        (self.work / "tools/check.py").write_text("import subprocess; subprocess.run(['sh', 'check.sh'])\n")

    def has(self, command: str) -> None:
        line = msgspec.json.encode(command).decode()
        hook = f"[[hooks]]\nevent = 'turn_started'\naction = 'run'\nsandbox = false\ncommand = {line}\n"
        self.home.project.write_text(hook)

    def trust(self) -> Loaded:
        trust(self.home.config, self.work, self.home.load().project)
        return self.home.load()

    async def run(self, loaded: Loaded, sandbox: Sandbox) -> bool:
        """Whether the hooks in force ran the script. Raises CtxchatError where one is refused."""
        (self.work / "ran").unlink(missing_ok=True)
        commands = HookCommands(
            self.work,
            os.environ,
            lambda: loaded,
            sandbox=lambda: sandbox,
            session_folder=str(self.home.data / "session"),
        )
        for hook in hooks_of(loaded.settings.hooks):
            assert isinstance(hook.action, RunCommand)
            await commands(hook.action, b"{}")
        return (self.work / "ran").exists()


@pytest.fixture
def repository(pytestconfig: pytest.Config) -> Iterator[Repository]:
    """Not below /tmp: that is a private one inside anyway."""
    with tempfile.TemporaryDirectory(dir=pytestconfig.cache.mkdir("attacks")) as root:  # type: ignore[union-attr]
        yield Repository(Path(root).resolve())


@pytest.mark.parametrize("command", SPELLINGS)
async def test_one_hook_in_many_spellings(command: str, repository: Repository) -> None:
    sandbox = find_sandbox(str(repository.work))
    repository.has(command)
    settings = repository.home.project.read_text()
    assert not await repository.run(repository.home.load(), sandbox)
    trusted = repository.trust()
    assert await repository.run(trusted, sandbox)
    assert not repository.outside.exists() and not (repository.home.config / "config.toml").exists()
    assert not (repository.work / ".git/hooks/x").exists() and repository.home.project.read_text() == settings
    (repository.work / "check.sh.bak").unlink()
    assert repository.home.load().trusted
    for file in (repository.script, repository.work / "Makefile", repository.work / "tools/check.py"):
        file.write_text(file.read_text() + "\n# evil\n")
    assert not repository.home.load().trusted
    with pytest.raises(CtxchatError, match="changed since"):
        await repository.run(trusted, sandbox)
    assert not (repository.work / "ran").exists()
    assert not await repository.run(repository.home.load(), sandbox)


@pytest.mark.parametrize("command", SPELLINGS)
async def test_without_a_sandbox_only_what_was_looked_at_runs(command: str, repository: Repository) -> None:
    repository.script.write_text(f"#!/bin/sh\ntouch {repository.work}/ran\n")
    repository.has(command)
    if command in PINNED:
        assert await repository.run(repository.trust(), Sandbox())
    else:
        with pytest.raises(CtxchatError, match="no sandbox"):
            await repository.run(repository.trust(), Sandbox())
        assert not (repository.work / "ran").exists()
