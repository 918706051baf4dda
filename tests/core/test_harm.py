"""What a command destroys is named, and never offered for good."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxchat.core.harm import harms
from ctxchat.tools.command_line import parts_of
from tests.attacks.judging import offered


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("git push --force && rm -rf /", ("overwrites what was pushed", "deletes")),
        ("git -C . -c a=b push -fu origin main", ("overwrites what was pushed",)),
        ("git push origin +main", ("overwrites what was pushed",)),
        ("git push origin :main", ("overwrites what was pushed",)),
        ("git reset --hard HEAD~3", ("discards work",)),
        ("git clean -xfd", ("deletes",)),
        ("git branch -D x", ("discards work",)),
        ("sudo rm -r x", ("deletes",)),
        ("/bin/rm -fR x", ("deletes",)),
        ("bash -c 'rm --recursive x'", ("deletes",)),
        ("find . -name '*.o' -delete", ("deletes",)),
        ("find . -exec rm -rf {} +", ("deletes",)),
        ("xargs rm -rf", ("deletes",)),
        ("dd if=a of=/dev/sda", ("erases a disk",)),
        ("mkfs.ext4 /dev/sda1", ("erases a disk",)),
        ("npm publish", ("publishes",)),
        ("kubectl -n prod delete pod x", ("deletes",)),
        ("docker compose -f a.yml down -v", ("deletes",)),
        ("rsync --del a b", ("deletes",)),
        ("git restore .", ("discards work",)),
        ("git checkout -- .", ("discards work",)),
        ("git checkout .", ("discards work",)),
        ("git branch -d -f x", ("discards work",)),
    ],
)
def test_what_is_destroyed_is_named_and_no_rule_is_offered(command: str, said: tuple[str, ...], tmp_path: Path) -> None:
    assert harms(parts_of(command, os.path.realpath(tmp_path))) == said
    assert offered(command, tmp_path) == ()


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git push -u origin main",
        "git branch -d x",
        "rm a.txt",
        "make",
        "git stash",
        "npm run build",
        "find . -name r",
        "dd if=a of=/dev/null",
        "fdisk -l",
        "docker compose down",
        "rsync --delay-updates a b",
        "git restore --staged .",
        "git checkout main",
    ],
)
def test_what_is_not_is_offered_as_ever(command: str, tmp_path: Path) -> None:
    assert harms(parts_of(command, os.path.realpath(tmp_path))) == ()
    assert command.startswith("find") or offered(command, tmp_path)


def test_no_rule_is_offered_for_a_name_that_passes_for_another(tmp_path: Path) -> None:
    assert offered("git status", tmp_path, ()) is not None
    for command in ("g\u0456t push", "make && g\u0456t push", "env g\u0456t push", "\u0441\u043e\u0440\u0443 a b"):
        assert offered(command, tmp_path) == (), command
    assert offered("git commit -m '\u043f\u0440\u0438'", tmp_path)
