"""Files that are written anew stay the same files: their owner, mode, attributes, other names and mounts."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ctxchat import atomic_write
from ctxchat.config.atomic import write_text
from ctxchat.core.ports import ToolContext
from ctxchat.tools.checkpoints import Checkpoints
from ctxchat.tools.edit_file import EditFile

root = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mount(source: Path, file: Path) -> bool:
    """False where nothing may be mounted."""
    return subprocess.run(["mount", "--bind", str(source), str(file)], check=False, capture_output=True).returncode == 0


def test_a_new_file_and_a_replaced_one(tmp_path: Path) -> None:
    file = tmp_path / "a"
    atomic_write.write_atomically(file, b"one", new_mode=0o640)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"one", 0o640)
    file.chmod(0o4750)
    atomic_write.write_atomically(file, b"two")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"two", 0o4750)
    assert names(tmp_path) == ["a"]


def test_a_file_with_several_names_keeps_them(tmp_path: Path) -> None:
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"long before")
    other.hardlink_to(file)
    atomic_write.write_atomically(file, b"after")
    assert other.read_bytes() == b"after" and other.samefile(file)
    assert names(tmp_path) == ["a", "b"]


def test_attributes_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"before")
    try:
        os.setxattr(file, "user.note", b"mine")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes here")
    inode = file.stat().st_ino
    atomic_write.write_atomically(file, b"after")
    assert (file.read_bytes(), os.getxattr(file, "user.note")) == (b"after", b"mine")
    assert file.stat().st_ino != inode  # in one step all the same


@root
def test_the_owner_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"before")
    os.chown(file, 1234, 4321)
    file.chmod(0o6755)
    atomic_write.write_atomically(file, b"after")
    found = file.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o6755)


@root
@pytest.mark.parametrize("which", ["another's", "in a folder that is not ours"])
def test_a_file_that_cannot_be_replaced_is_written_into(which: str, tmp_path: Path) -> None:
    """As somebody who may write in the file, and cannot make it theirs or touch its folder."""
    folder = tmp_path / "f"
    folder.mkdir()
    file = folder / "a"
    file.write_bytes(b"before")
    file.chmod(0o666)
    folder.chmod(0o1777 if which == "another's" else 0o755)
    for above in (tmp_path, *tmp_path.parents[:3]):
        above.chmod(above.stat().st_mode | 0o011)
    inode = file.stat().st_ino
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            atomic_write.write_atomically(file, b"after")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    found = file.stat()
    assert (file.read_bytes(), found.st_uid, found.st_ino, names(folder)) == (b"after", 0, inode, ["a"])


@root
async def test_a_mounted_file_is_edited(tmp_path: Path) -> None:
    workspace, source = tmp_path / "work", tmp_path / "source"
    workspace.mkdir()
    source.write_text("x = 1\n")
    (workspace / "m").touch()
    if not await asyncio.to_thread(mount, source, workspace / "m"):
        pytest.skip("nothing may be mounted here")
    try:
        kept = Checkpoints(workspace, tmp_path / "kept")
        edit, context = EditFile(), ToolContext("call", str(workspace))
        arguments = {"path": "m", "old": "x = 1", "new": "x = 2"}
        access_request = edit.access_request(arguments, context)
        await kept.begin_call(access_request.access, access_request.target)
        [piece async for piece in edit.run(arguments, context)]
        _, changes, _ = await kept.end_call()
        assert source.read_text() == "x = 2\n" and [change.path for change in changes] == ["m"]
        atomic_write.write_atomically(workspace / "m", b"x = 3\n")
        assert source.read_text() == "x = 3\n"
    finally:
        await asyncio.to_thread(subprocess.run, ["umount", str(workspace / "m")], check=True)


def test_what_cannot_be_written_whole_is_put_back(tmp_path: Path) -> None:
    """A full disk, as a limit on the size of files says it."""
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"before")
    other.hardlink_to(file)
    program = (
        "import resource, signal, sys; from pathlib import Path; from ctxchat import atomic_write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: atomic_write.write_atomically(Path(sys.argv[1]), b'after' * 1000)\n"
        "except OSError: sys.exit(3)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(file)], check=False, capture_output=True)
    assert (ended.returncode, ended.stderr) == (3, b"")
    assert file.read_bytes() == b"before" and names(tmp_path) == ["a", "b"]


def test_settings_keep_their_other_names(tmp_path: Path) -> None:
    file, other = tmp_path / "config.toml", tmp_path / "dotfiles.toml"
    file.write_text("before")
    file.chmod(0o644)
    other.hardlink_to(file)
    write_text(file, "after")
    assert other.read_text() == "after" and stat.S_IMODE(file.stat().st_mode) == 0o644
