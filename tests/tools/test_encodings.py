"""Files in any encoding: read as what they are, edited without touching another byte, refused where letters would be guessed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.core.errors import ToolError
from ctxchat.core.ports import ToolContext
from ctxchat.tools.edit_file import EditFile, WriteFile
from ctxchat.tools.encodings import Encoding, binary_kind, declared, encoding_of
from ctxchat.tools.read_file import ReadFile
from ctxchat.tools.seen import SeenFiles

WORDS = {
    "cp1252": (
        "# Prüft die Größe der Datei und gibt einen Fehler zurück, wenn sie zu groß ist",
        "# Vérifie la taille du fichier et renvoie une erreur si elle dépasse la limite fixée à l'entrée",
    ),
    "cp1250": ("# Zkontroluje velikost souboru a vrátí chybu, pokud je příliš velký",),
    "cp1251": ("# Проверяет размер файла и возвращает ошибку", "# Это тест"),
    "koi8-r": ("# Проверяет размер файла и возвращает ошибку", "# Это настройки программы"),
    "cp866": ("# Проверяет размер файла и возвращает ошибку",),
    "cp1253": ("# Ελέγχει το μέγεθος του αρχείου",),
    "cp1254": ("# Dosya boyutunu denetler; çok büyükse hata döndürür, ışık şimdi",),
    "cp1255": ("# בודק את גודל הקובץ",),
    "cp1256": ("# يتحقق من حجم الملف",),
    "cp1257": ("# Pārbauda faila lielumu un atgriež kļūdu, ja tas ir par lielu",),
    "cp932": ("# ファイルの大きさを調べ、大きすぎるとエラーを返す", "# 設定ファイルです"),
    "euc-jp": ("# ファイルの大きさを調べ、大きすぎるとエラーを返す",),
    "iso2022_jp": ("# ファイルの大きさを調べ", "価格"),
    "gb18030": ("# 检查文件大小，如果太大则返回错误",),
    "big5": ("# 檢查檔案大小，太大就返回錯誤",),
    "cp949": ("# 파일 크기를 확인합니다",),
    "utf-16-le": ("# Prüft die Größe der Datei",),
    "utf-16-be": ("# plain words",),
}
SENTENCES = [(codec, words) for codec, all_of_it in WORDS.items() for words in all_of_it]
FEW = {
    "cp1252": (
        "Price: 5 €",
        "naïve café",
        "“quoted” – it’s",
        "© 2020 Foo",
        "s = 'é'",
        "año nuevo",
        "£5 – £10",
        "5° ± 2 µm",
    ),
    "koi8-r": ("s = 'привет'", "name = 'Москва'"),
    "cp1251": ("s = 'привет'", "name = 'Москва'"),
    "cp932": ("価格: 5円",),
    "gb18030": ("价格：五元",),
}


@pytest.mark.parametrize(("codec", "words"), SENTENCES)
def test_a_sentence_in_it_is_enough(codec: str, words: str) -> None:
    data = f"import os\nx = 1\n{words}\n".encode(codec)
    found = encoding_of(data)
    assert found.decode(data) == data.decode(codec) and not found.guessed and not binary_kind(data)


@pytest.mark.parametrize(("codec", "words"), [(codec, words) for codec, many in FEW.items() for words in many])
def test_a_few_letters_are_read_right_and_called_a_guess(codec: str, words: str) -> None:
    data = f"{words}\nx = 1\n".encode(codec)
    found = encoding_of(data)
    assert found.decode(data) == data.decode(codec)
    assert found.guessed or codec != "cp1252"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("# -*- coding: koi8-r -*-\n", "koi8-r"),
        ("#!/usr/bin/python\n# vim: set fileencoding=cp1251 :\n", "cp1251"),
        ("# encoding: euc-jp\n", "euc_jp"),
        ('<?xml version="1.0" encoding="ISO-8859-15"?>\n<a/>', "iso8859-15"),
        ('<!DOCTYPE html>\n<html><head>\n<meta charset="windows-1253">', "cp1253"),
        ('<html><meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">', "shift_jis"),
        ('@charset "iso-8859-2";\n', "iso8859-2"),
        ("\\documentclass{article}\n\\usepackage[ansinew]{inputenc}\n", "cp1252"),
        ('msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=KOI8-U\\n"\n', "koi8-u"),
        ("; -*- mode: lisp; coding: iso-latin-1-unix -*-\n", ""),  # not a name that Python knows: no harm
        ("x = 1\n# nothing\n# -*- coding: koi8-r -*-\n", ""),  # too far down to count
        ("# coding: rot13\n", ""),
        ("# coding: utf-16\n", ""),
        ("page = '<meta charset=\"iso-8859-1\">'\n", ""),  # a program that only speaks of it
    ],
)
def test_what_a_file_states_of_itself(text: str, codec: str) -> None:
    assert declared(text.encode()) == codec


def test_a_file_that_states_its_encoding_is_not_guessed_at() -> None:
    data = "# coding: koi8-r\ns = 'Й'\n".encode("koi8-r")
    assert encoding_of(data) == Encoding("koi8-r")
    wrong = "# coding: ascii\ns = 'привет, мир'\n".encode("cp1251")
    assert encoding_of(wrong).codec == "cp1251"
    assert encoding_of("# coding: latin-1\ns = 'привет'\n".encode()) == Encoding()  # nothing looks like UTF-8 by chance


def test_utf_8_with_a_few_bytes_that_are_none_stays_utf_8() -> None:
    data = "Größe, Länge, Höhe, fünf Äpfel\n".encode() + b"caf\xe9\n"
    found = encoding_of(data)
    assert found.label == "utf-8, with bytes that are no characters"
    assert found.decode(data).startswith("Größe") and found.decode(data).endswith("caf\ufffd\n")
    assert found.encode(found.decode_exactly(data)) == data


def tools(workspace: Path) -> tuple[ReadFile, EditFile, WriteFile]:
    seen = SeenFiles()
    return ReadFile(seen), EditFile(seen), WriteFile(seen)


async def test_letters_that_an_encoding_may_be_wrong_about_are_refused(call: Callable, workspace: Path) -> None:
    file, (read, edit, write) = workspace / "f.txt", tools(workspace)
    before = "Price: 5 €\nx = 1\n".encode("cp1252")
    file.write_bytes(before)
    assert "encoding: cp1252, a guess" in (await call(read, path="f.txt")).text
    with pytest.raises(ToolError, match=r"a guess .cp1252., so 'é' could come out as another letter"):
        await call(edit, path="f.txt", old="x = 1", new="x = 'é'")
    assert file.read_bytes() == before
    await call(
        edit, path="f.txt", old="Price: 5 €", new="Price: 6 €"
    )  # the file has this letter: it goes back as it came
    assert file.read_bytes() == "Price: 6 €\nx = 1\n".encode("cp1252")
    found = await call(write, path="f.txt", content="Größe: 6 €\n")
    assert file.read_text("utf-8") == "Größe: 6 €\n" and "cp1252 becomes utf-8" in found.text


async def test_a_stated_encoding_is_kept_to(call: Callable, workspace: Path, context: ToolContext) -> None:
    file, (read, edit, write) = workspace / "f.py", tools(workspace)
    file.write_bytes("# -*- coding: koi8-r -*-\ns = 'привет'\nx = 1\n".encode("koi8-r"))
    await call(read, path="f.py")
    for tool, arguments in (
        (edit, {"old": "x = 1", "new": "x = 'é'"}),
        (write, {"content": "# -*- coding: koi8-r -*-\nx = 'é'\n"}),
    ):
        with pytest.raises(ToolError, match="koi8-r and cannot hold 'é'"):
            await call(tool, path="f.py", **arguments)
    await call(edit, path="f.py", old="x = 1", new="x = 'мир'")
    assert file.read_bytes() == "# -*- coding: koi8-r -*-\ns = 'привет'\nx = 'мир'\n".encode("koi8-r")
    asked = {"path": "f.py", "old": "coding: koi8-r", "new": "coding: utf-8"}
    assert edit.access_request(asked, context).summary == "change f.py (+1 −1): koi8-r becomes utf-8"
    found = await call(edit, **asked)
    assert file.read_text("utf-8") == "# -*- coding: utf-8 -*-\ns = 'привет'\nx = 'мир'\n"
    assert "The encoding has changed: koi8-r becomes utf-8.\n" in found.text


async def test_a_new_file_is_what_it_states(call: Callable, workspace: Path) -> None:
    _, _, write = tools(workspace)
    await call(write, path="new.py", content="# coding: cp1251\ns = 'привет'\n")
    assert (workspace / "new.py").read_bytes() == "# coding: cp1251\ns = 'привет'\n".encode("cp1251")
    with pytest.raises(ToolError, match="is cp1251 and cannot hold 'é'"):
        await call(write, path="other.py", content="# coding: cp1251\ns = 'é'\n")


async def test_a_charset_of_the_project_is_kept_to(call: Callable, workspace: Path) -> None:
    (workspace / "deep").mkdir()
    ours = "root = true\n[*]\nindent_size = 2\n[*.{txt,old}] # ours\nCharset = LATIN1\n[deep/*.old]\ncharset=utf-8\n"
    (workspace / ".editorconfig").write_text(ours + "[\ncharset = utf-16le\n")
    (workspace / "deep/.editorconfig").write_text("[new.txt]\ncharset = utf-8\n[*.utf]\ncharset: utf-16le\n")
    read, edit, write = ReadFile(), EditFile(), WriteFile()
    for name, codec in {
        "a.txt": "latin-1",
        "b.txt": "cp1252",
        "deep/c.utf": "utf-16-le",
        "deep/d.txt": "latin-1",
    }.items():
        before = "a ä\n" if codec != "cp1252" else "a ä €\n"
        (workspace / name).write_bytes(before.encode(codec))
        assert f"encoding: {codec}]" in (await call(read, path=name)).text, name
        await call(edit, path=name, old="a", new="ö")
        assert (workspace / name).read_bytes() == before.replace("a", "ö").encode(codec)
    (workspace / "e.txt").write_text("a ä\n", "utf-8")
    assert "encoding" not in (await call(read, path="e.txt")).text
    for name, text, codec in (("f.txt", "ä", "latin-1"), ("g.txt", "漢", "utf-8"), ("deep/new.txt", "ä", "utf-8")):
        await call(write, path=name, content=text)
        assert (workspace / name).read_bytes() == text.encode(codec)
    (workspace / ".editorconfig").unlink()
    (workspace / ".editorconfig").symlink_to("/dev/zero")
    assert "ä" in (await call(read, path="e.txt")).text


async def test_bytes_that_are_no_characters_stay_through_an_edit(call: Callable, workspace: Path) -> None:
    file, (read, edit, _) = workspace / "f.txt", tools(workspace)
    file.write_bytes("Größe, Länge, Höhe, fünf Äpfel\n".encode() + b"caf\xe9\nx = 1\n")
    await call(read, path="f.txt")
    found = await call(edit, path="f.txt", old="x = 1", new="x = 2 €")
    assert file.read_bytes() == "Größe, Länge, Höhe, fünf Äpfel\n".encode() + b"caf\xe9\n" + "x = 2 €\n".encode()
    assert "caf\ufffd" in found.diff


_numbers = itertools.count()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(SENTENCES + [("cp1252", words) for words in FEW["cp1252"]]),
    st.lists(st.sampled_from(["x = 1", "", "\ty", "def f():"]), max_size=4),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["plain", "ü.txt", "u\u0308.txt", "with blank", "日本.txt", "[id].tsx", "-x"]),
    st.booleans(),
    st.sampled_from(["ascii", "own", "foreign"]),
)
async def test_what_is_read_can_be_edited_and_nothing_else_moves(
    call: Callable,
    workspace: Path,
    sentence: tuple[str, str],
    others: list[str],
    end: str,
    name: str,
    last: bool,
    letters: str,
) -> None:
    """Read, edit by what was read, read again: the new text is there in the file's own encoding and line ends, every other byte
    stays; or the call is refused and all of them do."""
    codec, words = sentence
    name = f"{next(_numbers)}/{name}"
    text = end.join(["first", *others, words, "the place", "behind"]) + end * last
    (workspace / name).parent.mkdir()
    (workspace / name).write_bytes(before := text.encode(codec))
    read, edit, _ = tools(workspace)
    shown = [line.partition("\t")[2] for line in (await call(read, path=name)).text.split("\n")]
    assert words in shown and "behind" in shown
    new = {"ascii": "another", "own": f"another {words}", "foreign": "another →☂ж"}[letters]
    try:
        await call(edit, path=name, old="the place\nbehind", new=f"{new}\nand more")
    except ToolError as refused:
        assert letters == "foreign" and ("a guess" in str(refused) or "cannot hold" in str(refused))
        assert (workspace / name).read_bytes() == before
        return
    wanted = text.replace(f"the place{end}behind", f"{new}{end}and more")
    assert (workspace / name).read_bytes() == wanted.encode(codec)
    again = [line.partition("\t")[2] for line in (await call(read, path=name)).text.split("\n")]
    assert {words, new, "and more"} <= set(again)
