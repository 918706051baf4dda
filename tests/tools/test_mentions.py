"""Files that a message names: what goes along, what does not, and how terminals write the names of files dropped on them."""

from __future__ import annotations

import base64
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.images import MAX_IMAGE_BYTES
from ctxchat.core.sanitize import visible
from ctxchat.tools.mentions import (
    MentionRules,
    image,
    look_all,
    mention,
    mentions,
    pasted_data,
    pasted_images,
    read_mention,
)
from tests.doubles.images import gif, jpeg, png, webp


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.png", png(300, 200)), ("a.gif", gif(300, 200)), ("a.jpg", jpeg(300, 200)), ("a.webp", webp(300, 200))],
)
def test_an_image_goes_along_with_its_size(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    (named,) = look_all(f"what is on @{name}?", tmp_path)
    assert (named.kind, named.width, named.height, named.data) == ("image", 300, 200, data)


def test_an_image_is_known_by_its_bytes_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(png(10, 20))
    (tmp_path / "fake.png").write_text("no image at all")
    assert read_mention("notes.txt", tmp_path).kind == "image"
    assert read_mention("fake.png", tmp_path).kind == "text"


@pytest.mark.parametrize("data", [png(10, 10, padding=MAX_IMAGE_BYTES), png(9_000, 1), png(10, 10)[:20]])
def test_an_image_no_provider_takes_is_refused_with_why(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.png").write_bytes(data)
    named = read_mention("a.png", tmp_path)
    assert named.kind == "nothing" and ("smaller" in named.why or "damaged" in named.why)


def test_an_image_of_another_kind_says_which_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    assert "HEIC image" in (why := read_mention("a.heic", tmp_path).why) and "PNG or JPEG" in why
    assert "HEIC image" in image("a.png", (tmp_path / "a.heic").read_bytes()).why


def test_what_does_not_go_along_says_why(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    (tmp_path / "long.txt").write_text("word " * 20_000)
    (tmp_path / "empty.txt").write_text("")
    os.mkfifo(tmp_path / "pipe")
    said = {n.name: (n.kind, n.why) for n in look_all("@sub @data.bin @long.txt @empty.txt @pipe @gone.txt", tmp_path)}
    assert {kind for kind, _ in said.values()} == {"nothing"} and all(why for _, why in said.values())
    assert "folder" in said["sub"][1] and "only named" in said["data.bin"][1] and "no such file" in said["gone.txt"][1]
    assert "reads what it needs" in said["long.txt"][1] and "regular file" in said["pipe"][1]


def test_text_goes_along_in_its_encoding_and_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Grüße\r\n".encode("latin-1"))
    assert read_mention("a.txt", tmp_path).text == "Grüße\n"
    assert read_mention("a.txt", tmp_path, longest=3).kind == "nothing"


def test_lines_of_a_file_go_along_by_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(f"x{n} = {n}\n" for n in range(1, 9_001)))
    (tmp_path / "odd:2-3").write_text("its own name\n")
    said = "see @a.py:330-332, @a.py:9000. (@a.py#L5-L6) @odd:2-3 @a.py:9001-9002 @a.py:8-3 @gone.py:1-2 and 10:20"
    texts = {named.name: named.text or named.why for named in look_all(said, tmp_path, longest=100)}
    assert texts.pop("gone.py:1-2") == "there is no such file"
    assert texts.pop("a.py:9001-9002") == texts.pop("a.py:8-3") == "there are no such lines: the file has 9,000"
    assert texts == {
        "a.py:330-332": "x330 = 330\nx331 = 331\nx332 = 332\n",
        "a.py:9000": "x9000 = 9000\n",
        "a.py#L5-L6": "x5 = 5\nx6 = 6\n",
        "odd:2-3": "its own name\n",
    }
    assert read_mention("a.py:1-9000", tmp_path).kind == "nothing"


@pytest.mark.parametrize("word", ["~nobody-of-that-name", "x" * 300, "anna:80", "gone"])
def test_words_that_no_file_can_be_called_are_words(tmp_path: Path, word: str) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    assert [n.name for n in look_all(f"thank @{word} for (@a.py/).", tmp_path)] == ["a.py/"]


def test_a_sentence_ends_behind_a_name_and_words_that_name_nothing_are_words(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    assert [n.name for n in look_all("see @a.py, then (@a.py). Ask @anna or me@a.py or @property", tmp_path)] == [
        "a.py"
    ]


@given(
    st.text(min_size=1, max_size=30).filter(str.strip)
    | st.sampled_from(["a b.txt", 'q"uote.txt', "new\nline", "[bold]x[/].py", "back\\slash", "dot.", "@at", "\\x1b"])
    | st.text(st.sampled_from("a\x1b[2J\x07\x9b\u202e\u200b\udcff\r\t\n\\"), min_size=1).filter(str.strip)
)
def test_any_name_can_be_mentioned_and_none_does_anything_to_a_terminal(name: str) -> None:
    assert mentions(f"look at {mention(name)} please")[0] == name
    assert visible(mention(name)) == mention(name) and "\n" not in mention(name)


NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=20).map(
    lambda text: f"/tmp/x{text.replace('/', '-')}y.png"
)


@given(NAMES)
def test_a_dropped_file_is_known_however_it_is_written(path: str) -> None:
    escaped = "".join(c if c.isalnum() or c in "/.-_" else f"\\{c}" for c in path)
    for pasted in (shlex.quote(path), escaped, f"{escaped} ", f"{shlex.quote(path)} {shlex.quote(path)}"):
        assert set(pasted_images(pasted)) == {path}


def test_a_dropped_file_by_address_or_as_it_stands() -> None:
    assert pasted_images("file:///tmp/my%20shot.png") == ["/tmp/my shot.png"]
    assert pasted_images("/Users/me/Screenshot 2026-11-21 at 10.00.png") == [
        "/Users/me/Screenshot 2026-11-21 at 10.00.png"
    ]
    assert pasted_images("a.png\nb.jpg") == ["a.png", "b.jpg"]


@pytest.mark.parametrize(
    "text", ["", "  ", "see shot.png and tell", "a.png is broken", "a.png\nor not", "x" * 30_000 + ".png"]
)
def test_other_pastes_are_text(text: str) -> None:
    assert pasted_images(text) == []


def test_a_data_url_is_an_image_and_nothing_else_is() -> None:
    data = png(40, 30)
    named = pasted_data("data:image/png;base64," + base64.b64encode(data).decode())
    assert named and named.data == data and (named.width, named.height) == (40, 30)
    assert pasted_data("data:image/png;base64,AAAA") is None
    assert pasted_data("see data:image/png;base64,AAAA") is None


def test_what_lies_outside_or_was_pasted_goes_along_only_with_a_yes(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "key"
    work.mkdir()
    outside.write_text("secret")
    (work / "leak").symlink_to(outside)
    (work / "a.txt").write_text("mine")
    said = f"@{outside} @leak @../key @a.txt"
    named = {each.name: each for each in look_all(said, work)}
    assert [n for n, each in named.items() if each.kind == "text"] == ["a.txt"]
    assert all(each.asks and "outside" in each.why for n, each in named.items() if n != "a.txt")
    (pasted,) = look_all("@a.txt", work, rules=MentionRules(pasted=("a.txt",)))
    assert pasted.asks and not pasted.text
    agreed = look_all("@a.txt @leak", work, rules=MentionRules(pasted=("a.txt",), agreed=("a.txt", "leak")))
    assert [each.text for each in agreed] == ["mine", "secret"]
    (refused,) = look_all("@a.txt", work, rules=MentionRules(judge=lambda access_request: "deny"))
    assert not refused.asks and refused.kind == "nothing"
