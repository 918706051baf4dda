"""read_file on real files: encodings, ranges, binaries, long lines, huge files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ctxchat.core.errors import ToolError
from ctxchat.core.ports import ToolContext
from ctxchat.storage.database import Database
from ctxchat.tools.read_file import ReadFile
from tests.doubles.images import gif, jpeg, png, webp

tool = ReadFile()


async def test_the_first_and_every_fifth_line_bring_their_number(call: Callable, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n\n\tthree\nfour\nfive\nsix\n")
    assert (await call(tool, path="a.txt")).text == "1\tone\n\n\t\tthree\n\tfour\n5\tfive\n\tsix"
    assert (await call(tool, path="a.txt", start_line=4)).text == "4\tfour\n5\tfive\n\tsix\n[of 6 lines]"


async def test_a_range_says_where_it_lies(call: Callable, workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 10)))
    found = await call(tool, path="a.txt", start_line="3", end_line=4)
    assert found.text == "3\tl3\n\tl4\n[of 9 lines]"
    assert (await call(tool, path="a.txt", start_line=9)).text == "9\tl9\n[of 9 lines]"


async def test_a_long_file_is_given_in_parts(call: Callable, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n" * 9000)
    found = (await call(tool, path="a.txt")).text
    assert found.endswith("\n2000\tx\n[lines 1-2000 of 9000, go on with start_line=2001]")


async def test_output_stays_below_the_cap(context: ToolContext, workspace: Path) -> None:
    (workspace / "a.txt").write_text(("y" * 99 + "\n") * 1000)
    small = ToolContext("c", context.workspace, max_chars=5000)
    pieces = [piece async for piece in tool.run({"path": "a.txt"}, small)]
    assert len(pieces[-1].text) < 5100
    assert "of 1000, go on with start_line=50]" in pieces[-1].text


@pytest.mark.parametrize(
    ("data", "note"),
    [
        ("grün €\n".encode(), ""),
        ("grün €\n".encode("utf-8-sig"), "utf-8 with BOM"),
        ("grün €\n".encode("utf-16"), "utf-16-le with BOM"),
        (b"\xfe\xff" + "grün €\n".encode("utf-16-be"), "utf-16-be with BOM"),
        ("grün €\n".encode("utf-32"), "utf-32-le with BOM"),
        ("grün ¤\n".encode("latin-1"), "cp1252, a guess"),
        (b"gr\xfcn \x81\n", "latin-1, a guess"),
    ],
)
async def test_encodings_are_found_and_named(data: bytes, note: str, call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes(data)
    text = (await call(tool, path="a")).text
    assert text.startswith("1\tgrün")
    assert ("encoding" in text) == bool(note)
    assert note in text


async def test_a_bad_byte_far_behind_counts(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"line\n" * 10_000 + b"gr\xfcn\n")
    assert "10001\tgrün\n[encoding: cp1252, a guess;" in (await call(tool, path="a", start_line=10_001)).text


async def test_a_character_across_the_sniffed_border(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_text("a" * 8191 + "€\n", encoding="utf-8")
    assert "encoding" not in (await call(tool, path="a")).text


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"\x89PNG\r\n\x1a\n\0\0", "PNG"), (b"\x7fELF\2\1\0", "ELF"), (b"%PDF-1.7\nabc", "PDF"), (b"\0\1\2", "binary")],
)
async def test_binaries_are_refused_with_size_and_kind(data: bytes, kind: str, call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes(data)
    with pytest.raises(ToolError, match=f"{kind}.*{len(data)} bytes"):
        await call(tool, path="a")


async def test_a_megabyte_in_one_line_is_clipped_and_counted(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_text("x" * 1_000_000 + "\nend\n")
    text = (await call(tool, path="a")).text
    assert len(text) < 3000
    assert "[… 998,000 more characters in this line]\n\tend" in text


async def test_a_huge_file_is_not_read_to_its_end(call: Callable, workspace: Path) -> None:
    with (workspace / "a").open("wb") as file:
        file.write(b"hello\n" * 3000)
        file.truncate(3_000_000_000)  # sparse: three gigabytes that are not there
    text = (await call(tool, path="a", end_line=1)).text
    assert text == "1\thello\n[of very many lines]"


async def test_crlf_is_said_and_not_shown(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"a\r\nb\r\n")
    assert (await call(tool, path="a")).text == "1\ta\n\tb\n[line ends: CRLF]"


async def test_odd_line_separators_do_not_shift_numbers(call: Callable, workspace: Path) -> None:
    (workspace / "a").write_text("a\x0cb\u2028c\x85d\ntwo\n", encoding="utf-8")
    assert (await call(tool, path="a")).text.endswith("\n\ttwo")


async def test_missing_names_the_nearest(call: Callable, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "README.md").write_text("x")
    with pytest.raises(ToolError, match=r"Did you mean src/README\.md\?"):
        await call(tool, path="src/Readme.txt")
    with pytest.raises(ToolError, match=r"/tmp of their own, .* look at it with shell"):
        await call(tool, path="/tmp/what a command wrote there")
    with pytest.raises(ToolError, match="nor does its folder"):
        await call(tool, path="lib/x.py")


async def test_folder_empty_file_and_beyond_the_end(call: Callable, workspace: Path) -> None:
    (workspace / "d").mkdir()
    (workspace / "e").write_text("")
    (workspace / "one").write_text("1")
    with pytest.raises(ToolError, match="list_files"):
        await call(tool, path="d")
    assert (await call(tool, path="e")).text == "[e is empty]"
    with pytest.raises(ToolError, match="only 1 line;"):
        await call(tool, path="one", start_line=5)
    with pytest.raises(ToolError, match="comes before"):
        await call(tool, path="one", start_line=5, end_line=2)


async def test_spilled_results_can_be_read(call: Callable, workspace: Path) -> None:
    (workspace.parent / "session" / "tool-results" / "c1.txt").write_text("full text")
    assert (await call(tool, path="tool-results/c1.txt")).text == "1\tfull text"


def test_demands(context: ToolContext) -> None:
    inside = tool.access_request({"path": "a", "start_line": 3}, context)
    assert (inside.access, inside.inside, inside.summary) == ("read", True, "read a 3–end")
    assert not tool.access_request({"path": "/etc/passwd"}, context).inside


@pytest.mark.parametrize("wrong", [{}, {"path": 5}, {"path": "a", "colour": 1}, {"path": "a", "start_line": "x"}])
def test_wrong_arguments_are_explained(wrong: dict[str, object], context: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"wrong arguments.*Arguments are: path, start_line, end_line"):
        tool.access_request(wrong, context)


@pytest.mark.parametrize(
    ("name", "data"), [("a.png", png(40, 30)), ("b", gif(40, 30)), ("c.txt", jpeg(40, 30)), ("d", webp(40, 30))]
)
async def test_an_image_is_given_to_a_model_that_sees_it(
    call: Callable, workspace: Path, name: str, data: bytes
) -> None:
    (workspace / name).write_bytes(data)
    found = await call(ReadFile(shows_images=lambda: True), path=name)
    assert found.images == (data,) and found.text.startswith(f"[{name}: ") and found.text.endswith(" image, 40×30]")
    with pytest.raises(ToolError, match="You are not shown images"):
        await call(ReadFile(), path=name)


@pytest.mark.parametrize("data", [png(9_000, 10), png(40, 30)[:60], png(400, 300, 4_000_000)])
async def test_an_image_no_provider_takes_is_refused_with_the_reason(
    call: Callable, workspace: Path, data: bytes
) -> None:
    (workspace / "a.png").write_bytes(data)
    with pytest.raises(ToolError, match=r"too large|damaged"):
        await call(ReadFile(shows_images=lambda: True), path="a.png")


async def test_a_database_that_is_open_here_keeps_its_locks(call: Callable, workspace: Path) -> None:
    with Database(workspace):
        for name in ("ctxchat.db", "ctxchat.db-shm"):
            with pytest.raises(ToolError, match="a database that ctxchat has open"):
                await call(tool, path=name)
    with pytest.raises(ToolError, match="is not text: SQLite database"):  # as any other, once it is closed
        await call(tool, path="ctxchat.db")
