"""write_file and edit_file on real files: what is shown is what is written, or nothing is."""

from __future__ import annotations

import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ctxchat.core.errors import ToolError
from ctxchat.core.ports import ToolContext
from ctxchat.tools.diffs import difference
from ctxchat.tools.edit_file import EditFile, WriteFile, lines_now, replaced
from ctxchat.tools.encodings import encoding_of
from ctxchat.tools.line_ends import with_line_ends_of
from ctxchat.tools.paths import ResolvedPath
from ctxchat.tools.seen import SeenFiles


class AllSeen(SeenFiles):
    """Nothing is news: what this guards against is tested elsewhere."""

    def check(self, place: ResolvedPath, now: bytes, *, whole: bool) -> None:
        return None


write, edit = WriteFile(AllSeen()), EditFile(AllSeen())


async def test_a_new_file_with_new_folders(call: Callable, workspace: Path) -> None:
    found = await call(write, path="a/b/c.txt", content="one\ntwo\n")
    assert (workspace / "a/b/c.txt").read_text() == "one\ntwo\n"
    assert found.text.startswith("Created a/b/c.txt: +2 −0, now 2 lines")
    assert found.diff == "--- a/b/c.txt\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert [file.name for file in (workspace / "a/b").iterdir()] == ["c.txt"]


async def test_mode_and_link_are_kept(call: Callable, workspace: Path) -> None:
    script = workspace / "run.sh"
    script.write_text("old\n")
    script.chmod(0o750)
    (workspace / "link.sh").symlink_to(script)
    await call(write, path="link.sh", content="new\n")
    assert (workspace / "link.sh").is_symlink()
    assert script.read_text() == "new\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


async def test_rewriting_keeps_crlf_and_encoding(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes("ä\r\nb\r\n".encode("utf-16"))
    found = await call(write, path="a", content="ä\nc\n")
    assert (workspace / "a").read_bytes() == "ä\r\nc\r\n".encode("utf-16")
    assert found.diff.endswith("@@ -1,2 +1,2 @@\n ä\n-b\n+c\n")
    assert ", now 2 lines, 14 bytes" in found.text


async def test_a_text_the_old_encoding_cannot_hold_becomes_utf_8(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes("grün\n".encode("latin-1"))
    with pytest.raises(ToolError, match="is a guess"):
        await call(edit, path="a", old="grün", new="→")
    found = await call(write, path="a", content="→\n")
    assert (workspace / "a").read_text(encoding="utf-8") == "→\n"
    assert found.text.endswith("The encoding has changed: cp1252 becomes utf-8.")


async def test_the_demand_shows_the_diff_and_writes_nothing(context: ToolContext, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "a.py").write_text("x = 1\n")
    access_request = edit.access_request({"path": "src/a.py", "old": "1", "new": "2"}, context)
    assert access_request.preview == "--- src/a.py\n+++ src/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    assert (access_request.access, access_request.inside, access_request.summary) == (
        "write",
        True,
        "change src/a.py (+1 −1)",
    )
    assert access_request.patterns == ("src/a.py", "src/*", "src/**")
    assert (workspace / "src" / "a.py").read_text() == "x = 1\n"


async def test_an_edit_answers_with_the_lines_as_they_are_now(call: Callable, workspace: Path) -> None:
    file = workspace / "a.py"
    file.write_text("".join(f"line {n}\n" for n in range(1, 30)))
    found = await call(edit, path="a.py", old="line 9\n", new="new\nnewer\n")
    assert found.text.split("\n")[1:] == ["7\tline 7", "\tline 8", "\tnew", "10\tnewer", "\tline 10", "\tline 11"]
    found = await call(edit, path="a.py", old="line 29\n", new="")
    assert found.text.split("\n")[1:] == ["28\tline 27", "\tline 28"]
    found = await call(edit, path="a.py", old="line", new="LINE", replace_all=True)
    assert (
        len(found.text.split("\n")) == 16
        and "\tLINE 1\n" in found.text
        and "\n[… lines 8–22]\n23\tLINE 22" in found.text
    )
    for many, cut in ((12, False), (14, True)):
        found = await call(edit, path="a.py", old="LINE 2\n", new="x\n" * many)
        assert ("[… lines" in found.text) == cut
        found = await call(edit, path="a.py", old="x\n" * many, new="LINE 2\n")


async def test_of_a_long_line_the_part_is_shown_that_an_edit_changed(call: Callable, workspace: Path) -> None:
    (workspace / "a.md").write_text("one " * 200 + "here " + "two " * 200 + "\n" + "three " * 100 + "\n")
    found = await call(edit, path="a.md", old="here", new="there it moors")
    first, second = found.text.split("\n")[1:]
    assert "there it moors two" in first and "characters …]" in first and len(first) < 300
    assert second.startswith("\tthree three")


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_the_lines_shown_are_those_of_the_new_text(old: list[str], new: list[str]) -> None:
    shown, at = lines_now("".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new)), 0
    for line in shown.split("\n") if shown else []:
        if line.startswith("["):
            continue
        number, _, text = line.partition("\t")
        at = int(number) if number else at + 1
        assert new[at - 1] == text
    changed = [n for n, (a, b) in enumerate(zip(old, new, strict=False), 1) if a != b]
    assert not changed or len(new) > 14 or shown


async def test_a_file_changed_after_approval_is_left_alone(context: ToolContext, workspace: Path) -> None:
    file = workspace / "a.py"
    file.write_text("x = 1\n")
    for tool, arguments in (
        (edit, {"path": "a.py", "old": "x = 1", "new": "x = 2"}),
        (write, {"path": "a.py", "content": "x = 3\n"}),
    ):
        tool.access_request(arguments, context)
        theirs = file.read_text() + "# theirs, far from the change\n" * 20
        file.write_text(theirs)
        with pytest.raises(ToolError, match="changed after this call was approved"):
            [piece async for piece in tool.run(arguments, context)]
        assert file.read_text() == theirs


async def test_a_folder_turned_into_a_link_after_approval(
    context: ToolContext, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (workspace / "d").mkdir()
    write.access_request({"path": "d/a", "content": "x"}, context)
    (workspace / "d").rmdir()
    (workspace / "d").symlink_to(tmp_path / "outside")
    with pytest.raises(ToolError):
        [piece async for piece in write.run({"path": "d/a", "content": "x"}, context)]
    assert list((tmp_path / "outside").iterdir()) == []


async def test_not_found_shows_what_is_near(call: Callable, workspace: Path) -> None:
    (workspace / "a.py").write_text("import os\n\ndef handle(request):\n    return request.body\n")
    with pytest.raises(ToolError, match=r"nearest lines are:\n3\tdef handle\(request\):"):
        await call(edit, path="a.py", old="def handel(request):", new="x")
    with pytest.raises(ToolError, match=r"Only the white space differs(.|\n)*4\t    return request.body"):
        await call(edit, path="a.py", old="def handle(request):\n\treturn request.body", new="x")
    with pytest.raises(ToolError, match=r"line 4 has 4 blanks where old has a tab"):
        await call(edit, path="a.py", old="def handle(request):\n\treturn request.body", new="x")
    with pytest.raises(ToolError, match="Nothing there resembles it"):
        await call(edit, path="a.py", old="§§§§§§§", new="x")


@pytest.mark.parametrize(
    ("there", "sought", "told"),
    [
        ("Preis:\xa05 €", "Preis: 5 €", r"U\+00A0 .no-break space. where old has a blank"),
        ("say(“hello”)", 'say("hello")', r"U\+201C .left double quotation mark. where old has"),
        ("cafe\u0301 = 1", "caf\u00e9 = 1", r"where old has U\+00E9 .latin small letter e with acute."),
        ("caf\u00e9 = 1", "cafe\u0301 = 1", r"U\+00E9 .latin small letter e with acute. where old has"),
        ("한글", "\u1112\u1161\u11ab\u1100\u1173\u11af", r"U\+D55C .hangul syllable han. "),
        ("a\u200bb", "ab", r"U\+200B .zero width space. where old has nothing"),
        ("1 – 2", "1 - 2", r"U\+2013 .en dash. where old has '-'"),
    ],
)
async def test_signs_that_look_alike_are_told_apart(
    there: str, sought: str, told: str, call: Callable, workspace: Path
) -> None:
    (workspace / "a").write_text(f"first\nx {there} y\nlast\n")
    with pytest.raises(ToolError, match=rf"Only signs that look alike differ from these lines .line 2 has .*{told}"):
        await call(edit, path="a", old=sought, new="new")
    with pytest.raises(ToolError, match=rf"Only signs that look alike differ from these lines .line 2 has .*{told}"):
        await call(edit, path="a", old=f"first\nx {sought} y", new="new")


async def test_line_ends_alone_are_not_changed(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"x\r\ny\r\n")
    with pytest.raises(ToolError, match="differ in line ends only"):
        await call(edit, path="a", old="x\r\ny", new="x\ny")


async def test_mixed_line_ends_stay_with_their_lines(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"a = 1\r\nb = 2\nc = 3\r\n")
    await call(edit, path="a", old="a = 1\nb = 2", new="a = 11\nb = 22\nb2 = 0")
    assert (workspace / "a").read_bytes() == b"a = 11\r\nb = 22\r\nb2 = 0\nc = 3\r\n"
    await call(write, path="a", content="a = 11\nmore\nb = 22\nb2 = 1\nc = 3\n")
    assert (workspace / "a").read_bytes() == b"a = 11\r\nmore\r\nb = 22\r\nb2 = 1\nc = 3\r\n"


async def test_several_are_counted_and_named(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_text("x\ny\nx\nz\nx\n")
    with pytest.raises(ToolError, match="3 times, in lines 1, 3, 5"):
        await call(edit, path="a", old="x", new="w")
    await call(edit, path="a", old="x", new="w", replace_all=True)
    assert (workspace / "a").read_text() == "w\ny\nw\nz\nw\n"


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("same", "same")])
async def test_senseless_edits(old: str, new: str, call: Callable, workspace: Path) -> None:
    (workspace / "a").write_text("same")
    with pytest.raises(ToolError):
        await call(edit, path="a", old=old, new=new)


async def test_refusals(call: Callable, workspace: Path) -> None:
    (workspace / "d").mkdir()
    (workspace / "b").write_bytes(b"\0\1")
    with pytest.raises(ToolError, match="folder"):
        await call(write, path="d", content="x")
    with pytest.raises(ToolError, match="not text"):
        await call(edit, path="b", old="a", new="b")
    with pytest.raises(ToolError, match="does not exist"):
        await call(edit, path="none", old="a", new="b")
    with pytest.raises(ToolError, match="cannot hold"):
        await call(write, path="s", content="\ud800")
    with pytest.raises(ToolError, match="is a file, not a folder"):
        await call(write, path="b/under", content="x")
    assert not (workspace / "s").exists()


async def test_replacing_a_binary_says_so_first(context: ToolContext, workspace: Path) -> None:
    (workspace / "b").write_bytes(b"\x89PNG\0")
    assert (
        "PNG image, 5 bytes, replaced by this text"
        in write.access_request({"path": "b", "content": "x"}, context).preview
    )


async def test_crlf_edit_from_text_written_with_newlines_only(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\r\ntwo\r\nthree")
    await call(edit, path="a", old="one\ntwo\n", new="1\n2\n2b\n")
    assert (workspace / "a").read_bytes() == b"1\r\n2\r\n2b\r\nthree"


_newline = st.sampled_from(["\n", "\r\n"])
_line = st.text("ab ä€\t", max_size=4)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    ends = draw(st.sampled_from([st.just("\n"), st.just("\r\n"), _newline]))
    text = "".join(f"{number}{draw(_line)}{draw(ends)}" for number in range(6)) + draw(_line)
    codec = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
    return text.encode(codec)


def _plain(text: str) -> str:
    return re.sub(r"\r\n|\r", "\n", text)


@given(files(), st.data())
def test_an_edit_changes_what_it_names_and_no_byte_beside(data: bytes, choose: st.DataObject) -> None:
    encoding = encoding_of(data)
    text = encoding.decode(data)
    start = choose.draw(st.integers(0, len(text) - 1))
    end = choose.draw(st.integers(start + 1, len(text)))
    old, new = text[start:end], choose.draw(st.text("ab\nXY", min_size=1, max_size=8)) + "§"
    assume(
        _plain(text).count(_plain(old)) == 1 and "\r\n" not in (text[start - 1 : start + 1], text[end - 1 : end + 1])
    )
    after, _ = replaced(text, _plain(old), new)
    assert after.startswith(text[:start]) and after.endswith(text[end:])
    assert _plain(after[start : len(after) - len(text) + end]) == new
    ends = set(re.findall(r"\r?\n", text))
    assert set(re.findall(r"\r?\n", after)) <= ends  # no line end that the file did not have
    if len(ends) == 1 and "\n" in text[:start] + text[end:]:
        assert encoding.encode(replaced(after, new, _plain(old))[0]) == data


@given(st.lists(st.tuples(_line, st.sampled_from(["\n", "\r\n", "\r"])), min_size=1, max_size=8), st.data())
def test_lines_that_stay_keep_their_ends_when_all_is_rewritten(
    lines: list[tuple[str, str]], choose: st.DataObject
) -> None:
    old = "".join(line + end for line, end in lines)
    kept = [f"{number}{line}" for number, (line, _) in enumerate(lines)]
    numbered = "".join(line + end for line, (_, end) in zip(kept, lines, strict=True))
    at = choose.draw(st.integers(0, len(kept)))
    more = [*kept[:at], "new", *kept[at:]]
    found = with_line_ends_of(numbered, "\n".join((*more, "")))
    assert found.replace("new" + re.findall(r"new(\r\n|\r|\n)", found)[0], "") == numbered
    assert _plain(with_line_ends_of(old, "a\nb")) == "a\nb"


@given(st.lists(_line, max_size=12), st.lists(_line, max_size=12), st.booleans(), st.booleans())
def test_a_diff_says_exactly_what_changed(before: list[str], after: list[str], end1: bool, end2: bool) -> None:
    old = "\n".join(before) + ("\n" if end1 and before else "")
    new = "\n".join(after) + ("\n" if end2 and after else "")
    assert _applied(old, difference(old, new, "f").text) == new


def _applied(old: str, diff: str) -> str:
    """A patch program of ten lines: believes the hunk headers and nothing else."""
    lines, result, at, open_end = old.split("\n")[: None if not old.endswith("\n") and old else -1], [], 0, False
    ended = old.endswith("\n") or not old
    body = diff.split("\n")[2:-1]
    for number, line in enumerate(body):
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            begin = int(start) - (0 if count == "0" else 1)
            result += lines[at:begin]
            at = begin
        elif line.startswith("\\"):
            open_end = body[number - 1][0] in "+ "
        elif line[0] in " -":
            assert lines[at] == line[1:]
            at += 1
            if line[0] == " ":
                result.append(line[1:])
        if line[0] == "+":
            result.append(line[1:])
    untouched_end = at < len(lines)
    result += lines[at:]
    ends_open = (not ended) if untouched_end or not diff else open_end
    return "\n".join(result) + ("\n" if result and not ends_open else "")


def test_diffs_are_what_diff_writes(tmp_path: Path) -> None:
    old = "".join(f"line {n}\n" for n in range(60))
    new = old.replace("line 7\n", "seven\n").replace("line 11\n", "").replace("line 50\n", "line 50\nnew\n")
    (tmp_path / "old").write_text(old)
    (tmp_path / "new").write_text(new)
    theirs = subprocess.run(["diff", "-u", tmp_path / "old", tmp_path / "new"], capture_output=True, text=True).stdout
    assert difference(old, new, "f").text.split("\n")[2:] == theirs.split("\n")[2:]


def test_a_long_diff_is_cut_and_counted() -> None:
    diff = difference("", "x\n" * 100_000, "f", max_lines=50)
    assert diff.text.count("\n") == 53
    assert diff.text.endswith("[… 99,951 more lines of this diff …]\n")
    assert (diff.added, diff.removed) == (100_000, 0)


async def test_the_difference_of_a_huge_line_is_shown_and_no_more_of_it(call: Callable, workspace: Path) -> None:
    (workspace / "bundle.js").write_text("x" * 1_000_000 + "needle")
    found = await call(edit, path="bundle.js", old="needle", new="thread")
    assert len(found.diff) < 10_000 and "[… 998,006 characters]" in found.diff
    assert (workspace / "bundle.js").read_text().endswith("xthread")


async def test_a_file_where_a_folder_should_be_is_told_before_anyone_is_asked(
    workspace: Path, context: ToolContext
) -> None:
    (workspace / "file").write_text("x")
    with pytest.raises(ToolError, match="file is a file, not a folder"):
        write.access_request({"path": "file/a/b.txt", "content": "x"}, context)
    with pytest.raises(ToolError) as told:
        write.access_request({"path": "x" * 5000, "content": "x"}, context)
    assert len(str(told.value)) < 500
