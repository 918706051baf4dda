"""list_files, glob and grep on real trees, in a real child process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tracemalloc
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.errors import ToolError
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.tools.searching import Glob, Grep, ListFiles
from ctxchat.tools.walking import braces, matcher, repository, walk

list_files, glob, grep = ListFiles(), Glob(), Grep()


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        _put(root / name, text)


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def tree(workspace: Path) -> Path:
    for name in (
        "a.py",
        "src/b.py",
        "src/c.ts",
        "src/deep/d.tsx",
        "build/e.py",
        "src/keep.log",
        "src/no.log",
        ".env",
        ".ci/x.py",
    ):
        _put(workspace / name, f"needle in {name}\nother\n")
    _put(workspace / ".git" / "config", "needle")
    _put(workspace / ".gitignore", "build/\n*.log\n")
    _put(workspace / "src" / ".gitignore", "!keep.log\n")
    return workspace


async def test_a_listing(call: Callable, tree: Path) -> None:
    found = (await call(list_files)).text
    assert found.split("\n") == [
        "./",
        "  a.py  21 bytes",
        "  src/",
        "    b.py  25 bytes",
        "    c.ts  25 bytes",
        "    deep/",
        "    keep.log  29 bytes",
    ]
    assert "d.tsx" in (await call(list_files, path="src", depth=5)).text
    assert (await call(list_files, path=".ci")).text == ".ci/\n  x.py  25 bytes"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", {"a.py", "src/b.py"}),
        ("**/*.py", {"a.py", "src/b.py"}),
        ("src/*.py", {"src/b.py"}),
        ("*.{ts,tsx}", {"src/c.ts", "src/deep/d.tsx"}),
        ("*.log", {"src/keep.log"}),
        (".ci/**", {".ci/x.py"}),
        ("**/.env", {".env"}),
    ],
)
async def test_glob(pattern: str, expected: set[str], call: Callable, tree: Path) -> None:
    assert set((await call(glob, pattern=pattern)).text.split("\n")) == expected


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("./a.ts", "a.ts"),
        ("./src/**/*.ts", "src/deep/a.ts"),
        ("src/./a.ts", "src/a.ts"),
        ("src//a.ts", "src/a.ts"),
        ("[id].tsx", "[id].tsx"),
        ("app/[slug]/page.tsx", "app/[slug]/page.tsx"),
        ("app/[[...slug]]/*.tsx", "app/[[...slug]]/page.tsx"),
        ("[ab].ts", "b.ts"),
        ("**/[id]/*.{ts,tsx}", "x/[id]/b.ts"),
        ("(group)/$id.tsx", "(group)/$id.tsx"),
        ("#notes.md", "#notes.md"),
        ("!important.txt", "!important.txt"),
        ("{id}.ts", "{id}.ts"),
        ("caf\u00e9.txt", "cafe\u0301.txt"),
        ("cafe\u0301*", "caf\u00e9.txt"),
    ],
)
async def test_names_that_hold_signs_of_patterns(pattern: str, name: str, call: Callable, workspace: Path) -> None:
    _put(workspace / name, "needle")
    _put(workspace / "other/place/z.ts", "needle")
    assert (await call(glob, pattern=pattern)).text == name
    assert (await call(grep, pattern="needle", glob=pattern)).text == f"{name}\n1 needle"


async def test_a_dot_slash_is_the_folder_itself(call: Callable, workspace: Path) -> None:
    _put(workspace / "a.ts", "x")
    _put(workspace / "below/a.ts", "x")
    assert (await call(glob, pattern="./a.ts")).text == "a.ts"


@given(
    st.text("ab[]{}!#(),. $@+-é日'", min_size=1, max_size=8).filter(lambda name: name.strip(" .") and name[0] != ".")
)
def test_every_name_matches_itself(name: str) -> None:
    assert matcher(name)(name) and matcher(f"./{name}")(name)


async def test_where_no_name_is_spelled_so_glob_takes_other_capitals_and_says_it(
    call: Callable, workspace: Path
) -> None:
    for name in ("README.md", "src/Makefile"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).touch()
    assert (
        await call(glob, pattern="readme*")
    ).text == "README.md\n[none is spelled readme*; these are with other capitals]"
    assert "src/Makefile" in (await call(glob, pattern="SRC/makefile")).text
    assert (await call(glob, pattern="README*")).text == "README.md"
    (workspace / "src/readme.txt").touch()
    assert (await call(glob, pattern="readme*")).text == "src/readme.txt"


async def test_glob_counts_from_its_folder_and_shows_the_newest_first(call: Callable, tree: Path) -> None:
    os.utime(tree / "src/c.ts", (1, 1))
    assert (await call(glob, pattern="*.{py,ts}", path="src")).text == "src/\nb.py\nc.ts"
    assert "No file matches" in (await call(glob, pattern="*.zig")).text


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../b", "~/x", " "])
def test_patterns_that_lead_out(pattern: str, context: ToolContext) -> None:
    with pytest.raises(ToolError):
        glob.access_request({"pattern": pattern}, context)


async def test_grep(call: Callable, tree: Path) -> None:
    found = (await call(grep, pattern="NEEDLE", ignore_case=True)).text.split("\n")
    assert found == [
        *("a.py", "1 needle in a.py", "src/", "b.py", "1 needle in src/b.py", "c.ts", "1 needle in src/c.ts"),
        *("src/deep/d.tsx", "1 needle in src/deep/d.tsx", "src/keep.log", "1 needle in src/keep.log"),
    ]
    assert (await call(grep, pattern="needle", glob="src/*.ts")).text == "src/c.ts\n1 needle in src/c.ts"
    assert (await call(grep, pattern="needle", path="src/b.py")).text == "src/b.py\n1 needle in src/b.py"
    assert (await call(grep, pattern="needle", path="build")).text == "build/e.py\n1 needle in build/e.py"
    assert (await call(grep, pattern="absent")).text == "No match."


async def test_blanks_a_line_begins_with_are_told_from_what_stands_behind_its_number(
    call: Callable, workspace: Path
) -> None:
    _put(workspace / "a", "x = 1\n  x = 2\n\tx = 3\n")
    assert (await call(grep, pattern="x")).text == "a\n1 x = 1\n2\t  x = 2\n3\t\tx = 3"


async def test_grep_shows_what_is_around(call: Callable, workspace: Path) -> None:
    _put(workspace / "a", "".join(f"l{n}\n" for n in range(1, 13)))
    found = (await call(grep, pattern="l[359]|l11", context=1)).text
    assert found == "a\n2-l2\n3 l3\n4-l4\n5 l5\n6-l6\n--\n8-l8\n9 l9\n10-l10\n11 l11\n12-l12"


@pytest.mark.parametrize(
    ("pattern", "around", "found"),
    [
        (r"def \w+\(\n +a", 0, "a\n2 def f(\n3-    a,\n5 def g(\n6-    a"),
        ("(?s)f.*?b", 0, "a\n2 def f(\n3-    a,\n4-    b):"),
        (r"\(\n", 1, "a\n1-x\n2 def f(\n3-    a,\n4-    b):\n5 def g(\n6-    a"),
        (r"^b\n", 0, "No match."),
        (r"x\\n", 0, "No match."),
    ],
)
async def test_a_pattern_with_a_line_break_goes_over_lines(
    call: Callable, workspace: Path, pattern: str, around: int, found: str
) -> None:
    (workspace / "a").write_bytes(b"x\r\ndef f(\r\n    a,\r\n    b):\r\ndef g(\r\n    a")
    assert (await call(grep, pattern=pattern, context=around)).text == found


async def test_of_a_hit_over_many_lines_the_first_and_the_last_are_shown(call: Callable, workspace: Path) -> None:
    _put(workspace / "a", "\n".join(str(n) for n in range(1, 1001)))
    lines = (await call(grep, pattern="(?s)2.*999", max_hits=1)).text.split("\n")
    assert lines[:3] == ["a", "2 2", "3-3"] and lines[-3:] == ["30-30", "--", "999-999"]


async def test_grep_stops_at_its_cap(call: Callable, workspace: Path) -> None:
    _put(workspace / "a", "x\n" * 5000)
    found = (await call(grep, pattern="x", max_hits=3)).text
    assert found == "a\n1 x\n2 x\n3 x\n[only the first 3 hits are shown]"


async def test_odd_files(call: Callable, workspace: Path, tmp_path: Path) -> None:
    (workspace / "binary").write_bytes(b"needle\0needle")
    (workspace / "utf16.txt").write_bytes("needle ü\r\n".encode("utf-16"))
    (workspace / "long.js").write_text("x" * 600_000 + "needle" + "y" * 400_000)
    with (workspace / "huge").open("wb") as file:
        file.truncate(30_000_000)
    (tmp_path / "secret.txt").write_text("needle")
    (workspace / "link.txt").symlink_to(tmp_path / "secret.txt")
    (workspace / "loop").symlink_to(workspace)
    os.mkfifo(workspace / "pipe")
    (workspace / os.fsdecode(b"bad\xff")).write_text("needle")
    found = (await call(grep, pattern="needle$|needley")).text
    assert "secret" not in found
    assert "bad\ufffd\n1 needle" in found
    assert "[not searched: huge (too large)]" in found
    assert "utf16" not in found
    assert "utf16.txt\n1 needle ü" in (await call(grep, pattern="needle ü$")).text
    line = found.partition("long.js\n")[2].partition("\n")[0]
    assert "characters …]x" in line
    assert "needley" in line
    assert len(line) < 300
    listed = (await call(list_files)).text
    assert "loop (link)" in listed
    assert "pipe (special)" in listed


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "*x", "(?P<n"])
async def test_a_bad_pattern_is_explained(pattern: str, call: Callable, workspace: Path) -> None:
    _put(workspace / "a", "x")
    with pytest.raises(ToolError, match=r"not usable\. Escape"):
        await call(grep, pattern=pattern)


async def test_a_pattern_without_end_is_ended(call: Callable, workspace: Path) -> None:
    _put(workspace / "a", "needle\n")
    _put(workspace / "b", "a" * 5000 + "!\n")
    found = (await call(Grep(seconds=3), pattern="(a+)+$|needle")).text
    assert found.startswith("a\n1 needle\n[stopped after 3 s, there may be more")


async def test_cancelling_ends_the_search_at_once(context: ToolContext, workspace: Path) -> None:
    _put(workspace / "b", "a" * 5000 + "!\n")
    mark = f"(a+)+${workspace.name}"

    async def consume() -> None:
        async with aclosing(grep.run({"pattern": mark}, context)) as pieces:
            async for _ in pieces:
                pass

    before = _workers()
    task = asyncio.create_task(consume())
    for _ in range(3000):
        if mine := _workers() - before:
            break
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(3000):
        if not mine & _workers():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the worker is still there")


def _workers() -> set[str]:
    """Worker processes that are children of this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {pid for pid in children if _is_worker(pid)}


def _is_worker(pid: str) -> bool:
    try:
        return b"ctxchat.tools.search_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def test_nothing_of_the_workspace_is_imported(call: Callable, workspace: Path) -> None:
    for name in ("json.py", "pathspec.py", "msgspec.py", "ctxchat.py", "sitecustomize.py", "re.py"):
        _put(workspace / name, f"open({str(workspace / 'ran')!r}, 'w')\n")
    await call(grep, pattern="x")
    assert not (workspace / "ran").exists()


async def test_a_large_tree_holds_neither_the_loop_nor_memory(call: Callable, workspace: Path) -> None:
    for number in range(100):
        folder = workspace / f"{number}{'-' * 200}"
        folder.mkdir()
        for file in range(50):
            (folder / f"f{file}.txt").touch()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    tracemalloc.start()
    found = (await call(glob, pattern="*.txt")).text
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ticking.cancel()
    assert found.endswith("[the newest 500 of 5000 are shown; use a narrower pattern]")
    assert ticks > 2 and peak < 1_200_000


def test_rules_from_above_hold_below(tree: Path) -> None:
    _put(tree / ".git" / "info" / "exclude", "c.ts\n")
    names = {Path(entry.path).name for entry in walk(str(tree / "src"))}
    assert names == {"b.py", "keep.log", "deep", "d.tsx"}
    assert repository(str(tree / "src")) == str(tree)


def test_an_ignored_folder_that_is_asked_for_is_shown(tree: Path) -> None:
    assert [Path(entry.path).name for entry in walk(str(tree / "build"))] == ["e.py"]


def test_odd_ignore_files(workspace: Path) -> None:
    (workspace / ".gitignore").write_bytes(b"\xff\xfe\n!\n/\n[z-a]\n*.tmp\n")
    (workspace / "a.tmp").touch()
    (workspace / "b").mkdir()
    os.mkfifo(workspace / "b" / ".gitignore")
    (workspace / "b" / "c").touch()
    assert [Path(entry.path).name for entry in walk(str(workspace))] == ["b", "c"]


def test_braces() -> None:
    assert braces("a.{b,c{d,e}}") == ["a.b", "a.cd", "a.b", "a.ce"] or set(braces("a.{b,c{d,e}}")) == {
        "a.b",
        "a.cd",
        "a.ce",
    }
    assert len(braces("{a,b}" * 30)) == 200


@given(st.text("{},a*[]!/.", max_size=20))
def test_braces_always_end(pattern: str) -> None:
    assert 1 <= len(braces(pattern)) <= 200


async def test_a_pipe_and_what_no_pattern_is_are_told_at_once(call: Callable, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    assert "not searched: pipe (not a plain file)" in (await call(grep, pattern="x", path="pipe")).text
    for pattern in ("a{99999999999}", "\ud800"):
        with pytest.raises(ToolError, match="not usable"):
            await call(grep, pattern=pattern)


def test_devices_and_views_of_the_system_are_not_walked_through() -> None:
    found = {entry.path for entry in walk("/", depth=1)}
    assert found and not found & {"/dev", "/proc", "/sys"}


async def test_folders_nested_without_end_cost_what_lies_deeper_and_no_more(call: Callable, workspace: Path) -> None:
    write(workspace, here="needle")
    deep = os.open(workspace, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=deep)
        deep, above = os.open("d", os.O_RDONLY, dir_fd=deep), deep
        os.close(above)
    os.close(deep)
    try:
        assert (await call(grep, pattern="needle")).text == "here\n1 needle"
        assert (await call(glob, pattern="here")).text == "here"
    finally:
        remove = ["rm", "-rf", str(workspace / "d")]  # Python's own way is one call a level
        await asyncio.to_thread(subprocess.run, remove, check=True)


async def test_grep_shows_nothing_of_files_that_a_rule_forbids_to_read(tree: Path) -> None:
    context = ToolContext("c", str(tree), unreadable=("src/b.py", "**/.env"))
    write(tree, **{"src/b.py": "found\n", "a.py": "found\n", ".env": "found\n"})
    for arguments in ({"pattern": "found"}, {"pattern": "found", "path": "src"}, {"pattern": "found", "glob": ".*"}):
        text = "".join([piece.text async for piece in grep.run(arguments, context) if isinstance(piece, ToolOutput)])
        assert "b.py" not in text and ".env" not in text and ("a.py\n1 found" in text) == (len(arguments) == 1)
