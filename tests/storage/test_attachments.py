"""Images and drafts in a session's folder: private, whole, never through a link, and not lost on the way out."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import msgspec
import pytest

from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.grouping import single
from ctxchat.core.images import data_url
from ctxchat.core.journal import Named, Sealed
from ctxchat.core.messages import Image, Message, Text
from ctxchat.core.openai import to_wire
from ctxchat.storage import chat_import, exporting, loading, private_files, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import open_journal
from ctxchat.storage.session_files import DRAFT, attach, keep_draft, kept_draft, read_attached
from tests.doubles.images import png

SHOT = png(40, 30)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_image_is_kept_privately_and_once(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    assert (
        attach(folder, "my shot [x].png", SHOT)
        == attach(folder, "my shot [x].png", SHOT)
        == "attachments/my_shot_x_.png"
    )
    other = attach(folder, "my shot [x].png", png(41, 30))
    assert other != "attachments/my_shot_x_.png" and read_attached(folder, other) == png(41, 30)
    assert read_attached(folder, "attachments/my_shot_x_.png") == SHOT
    assert mode(folder / "attachments") == 0o700 and {mode(f) for f in (folder / "attachments").iterdir()} == {0o600}


@pytest.mark.parametrize("name", ["../../x.png", "attachments/../x.png", "attachments/gone.png", "/etc/passwd"])
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.png").write_bytes(SHOT)
    attach(tmp_path / "s", "a.png", SHOT)
    (tmp_path / "s" / "attachments" / "link.png").symlink_to(tmp_path / "x.png")
    for path in (name, "attachments/link.png"):
        with pytest.raises(StorageError):
            read_attached(tmp_path / "s", path)


def stored(database: Database) -> str:
    """A session with an image in it, and a file that came along."""
    session = sessions.create(database, records=[Named("pier")])
    path = attach(private_files.session_folder(database.folder, session), "shot.png", SHOT)
    parts = (Text("what is this?"), Image(path, 40, 30, "shot.png"), Text("PERIOD = 90\n", "gauge.py"))
    sessions.append(database, session, Sealed((single("user", Message(1, "user", parts), 1),)))
    return session


def exported(database: Database, session: str) -> list[dict[str, object]]:
    state = loading.load_state(database, session).state
    groups = exporting.with_images(database, session, state.ledger.groups)
    ledger = msgspec.structs.replace(state.ledger, groups=groups)
    return json.loads(exporting.export_record(msgspec.structs.replace(state, ledger=ledger), "openai"))


def test_an_export_holds_the_image_and_comes_back_equal(database: Database, tmp_path: Path) -> None:
    wires = exported(database, stored(database))
    _, image, file = wires[0]["content"]  # type: ignore[misc]
    assert image == {"type": "image_url", "image_url": {"url": data_url(SHOT)}}
    assert file["text"] == "```gauge.py\nPERIOD = 90\n```"  # type: ignore[index]
    (tmp_path / "chat.json").write_text(json.dumps(wires))
    again = chat_import.import_file(database, tmp_path / "chat.json")
    assert exported(database, again) == wires
    part = loading.load_state(database, again).state.ledger.groups[0].first.content[1]
    assert isinstance(part, Image) and (part.width, part.height) == (40, 30)


def test_no_export_damages_an_image_and_a_missing_file_costs_only_itself(database: Database) -> None:
    session = stored(database)
    groups = exporting.with_images(database, session, loading.load_state(database, session).state.ledger.groups)
    assert exporting.masked_json(to_wire(groups[0].first)) == to_wire(groups[0].first)
    (private_files.session_folder(database.folder, session) / "attachments" / "shot.png").unlink()
    assert "[image shot.png 40×30]" in json.dumps(exported(database, session), ensure_ascii=False)


async def test_a_branch_has_its_own_copy_and_deleting_takes_it_away(database: Database) -> None:
    session = stored(database)
    branch = sessions.fork(database, session)
    sessions.delete(database, session)
    opened = open_journal(database, branch)
    assert await opened.journal.attached("attachments/shot.png") == SHOT
    await opened.journal.close()


def test_a_draft_is_kept_whole_and_privately_and_goes(tmp_path: Path) -> None:
    session = "0123456789ab"
    assert kept_draft(tmp_path, session) == b""
    for text in (b"one", b"another"):
        keep_draft(tmp_path, session, text)
        assert kept_draft(tmp_path, session) == text
    folder = private_files.session_folder(tmp_path, session)
    assert mode(folder / DRAFT) == 0o600 and [f.name for f in folder.iterdir()] == [DRAFT]
    keep_draft(tmp_path, session, b"")
    assert kept_draft(tmp_path, session) == b""
    with pytest.raises(UsageError):
        keep_draft(tmp_path, "../../x", b"x")
