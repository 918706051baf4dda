"""A data folder on a file system without locks, as network folders can be: opened by one process alone, or said what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctxchat.storage import private_files

_REFUSES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int refused(int fd, int cmd) {
  char link[64], path[4096];
  int size;
  if (cmd != F_SETLK && cmd != F_SETLKW && cmd != F_OFD_SETLK) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if ((size = readlink(link, path, sizeof path - 1)) < 0) return 0;
  path[size] = 0;
  return strstr(path, getenv("REFUSED")) != NULL;
}
#define WRAPPED(name) int name(int fd, int cmd, ...) { \
  va_list rest; va_start(rest, cmd); void *given = va_arg(rest, void *); va_end(rest); \
  int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #name); \
  if (refused(fd, cmd)) { errno = ENOLCK; return -1; } \
  return real(fd, cmd, given); }
WRAPPED(fcntl)
WRAPPED(fcntl64)
"""

_PROGRAM = """
import sys
from pathlib import Path
from ctxchat.core.errors import StorageError
from ctxchat.storage.database import Database
try:
    with Database(Path(sys.argv[1])) as store:
        store.write(lambda to: to.execute("INSERT OR REPLACE INTO meta VALUES ('seen', 'yes')"))
        print(store.alone, store.fts, store.query("SELECT value FROM meta WHERE key = 'seen'"), flush=True)
        sys.stdin.read()
except StorageError as problem:
    print(problem)
"""


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that refuses locks as such a file system does."""
    folder = tmp_path_factory.mktemp("refusing")
    compiler = shutil.which("cc")
    if not compiler or sys.platform != "linux":
        pytest.skip("needs a C compiler and Linux")
    (folder / "refuses.c").write_text(_REFUSES)
    command = [compiler, "-shared", "-fPIC", "-o", str(folder / "refuses.so"), str(folder / "refuses.c"), "-ldl"]
    subprocess.run(command, check=True)
    return str(folder / "refuses.so")


def started(folder: Path, library: str, refused: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "LD_PRELOAD": library, "REFUSED": refused}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(folder)], stdin=pipe, stdout=pipe, env=environ, text=True
    )


def test_one_process_alone_uses_it_and_another_is_told(refusing: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for _ in range(2):  # made, and found
        with started(folder, refusing, "-shm") as first:
            assert first.stdout and first.stdout.readline() == "True True [('yes',)]\n"
            told, _ = started(folder, refusing, "-shm").communicate("")
            assert "one ctxchat at a time can use it. Close the other one, or set CTXCHAT_DATA_DIR" in told
            first.communicate("")
        assert first.returncode == 0
    assert [path.name for path in folder.iterdir() if path.name.endswith("-shm")] == []


def test_without_any_locks_another_folder_is_named(refusing: str, tmp_path: Path) -> None:
    told, _ = started(tmp_path / "data", refusing, ".db").communicate("")
    assert "keeps no shared locks" in told and "CTXCHAT_DATA_DIR" in told


def test_locks_are_found_where_they_are(tmp_path: Path) -> None:
    assert private_files.shares_locks(tmp_path) and private_files.shares_locks(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []
