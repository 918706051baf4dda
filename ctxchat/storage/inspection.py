"""Checks everything that is stored: what an export would lack and what search would not find.

It only reads, except that a damaged search index is rebuilt. `repair` repairs the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.images import stored_in
from ctxchat.core.journal import Sealed
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.sanitize import whole_text
from ctxchat.storage import around, index, loading, private_files, salvage, sessions
from ctxchat.storage.database import INDEX_MENDED, Database
from ctxchat.storage.search import search

SPILLED = re.compile(r"full (?:text|arguments): (tool-results/[A-Za-z0-9._-]+), [\d,]+ tokens")
"""How a message names the file with the full text of which it shows a part."""

_CLIPPED = re.compile(r"\n\[… [^\n]* tokens left out; [^\n]* …\]\n")
_SAMPLE_WORD = re.compile(r"[^\W_]{4,30}")

Progress = Callable[[int, int], None]
"""A function called with the number of sessions checked so far and of all."""


class Fault(msgspec.Struct, frozen=True):
    """Something that an export or a search would lack, as a sentence. `session` is empty where it concerns the whole store. A
    `mendable` fault is repaired without loss; for a `known` one the loss is marked in the record and nothing is left to do."""

    what: str
    session: str = ""
    mendable: bool = False
    known: bool = False


class Inspected(msgspec.Struct, frozen=True):
    """The faults found, and how much was checked: sessions, journal entries, messages, files and their bytes."""

    faults: tuple[Fault, ...]
    sessions: int = 0
    entries: int = 0
    messages: int = 0
    files: int = 0
    bytes: int = 0


def inspect(database: Database, progress: Progress = lambda done, of: None) -> Inspected:
    """Check the whole store, reading every entry. Raises StorageError only where no session can be found."""
    faults = [Fault(what, mendable=what == INDEX_MENDED) for what in database.check()]
    faults += map(Fault, database.missing_writes())
    rows = sessions.around_damage(database)
    total = Inspected((), len(rows), bytes=database.path.stat().st_size)
    listed = {row[0]: row[1] for row in around.rows(database.query, "id, messages", "sessions")}
    keys = around.RowsBySession(database.query)
    for number, row in enumerate(rows):
        progress(number, len(rows))
        inspection = _SessionInspection(database, row.id, keys)
        faults_of_session = list(inspection.faults(listed.get(row.id)))
        faults += faults_of_session
        total = msgspec.structs.replace(
            total,
            entries=total.entries + inspection.entries,
            messages=total.messages + inspection.messages,
            files=total.files + inspection.files,
            bytes=total.bytes + inspection.bytes,
        )
    faults += _stray_folders(database, {row.id for row in rows} | database.doomed())
    faults += _search_faults(database)
    progress(len(rows), len(rows))
    return msgspec.structs.replace(total, faults=tuple(faults))


def original(messages: Mapping[str, Message], path: str) -> str | None:
    """The content of a file in a session's `tool-results`, where the record has it too since only a compaction shortened it; None
    where only the file has it."""
    name = Path(path).name
    if found := re.fullmatch(r"(m\d+)\.txt", name):
        message = messages.get(found[1])
        return message.text if message and not SPILLED.search(message.text) else None
    if found := re.fullmatch(r"(m\d+)-call(\d+)\.json", name):
        message, number = messages.get(found[1]), int(found[2])
        return message.calls[number - 1].arguments if message and number <= len(message.calls) else None
    return None


def missing_files(database: Database, session: str, ledger: Ledger) -> list[str]:
    """The paths of files that messages of a session name and that are missing or changed."""
    return [
        path for path, *_ in _SessionInspection(database, session, around.RowsBySession(database.query)).missing(ledger)
    ]


class _SessionInspection:
    """Checks one session; the numbers of what was checked grow meanwhile."""

    def __init__(self, database: Database, session: str, keys: around.RowsBySession) -> None:
        self._database, self._session, self._keys = database, session, keys
        self._folder = private_files.session_folder(database.folder, session)
        self.entries = self.messages = self.files = self.bytes = 0

    def faults(self, listed: int | None) -> Iterator[Fault]:
        """The faults of the session. `listed` is the number of messages that lists show, None where no list has the session."""
        try:
            records, problems = loading.read_entries(self._database, self._session, self._keys)
            loaded = loading.load_state(self._database, self._session, keys=self._keys)
        except CtxchatError as problem:
            yield Fault(f"session {self._session} cannot be read: {problem}", self._session)
            return
        self.entries = len(records)
        for problem in problems:
            yield Fault(problem, self._session)
        for skipped in loaded.state.skipped:
            yield self._fault(f"an entry does not fit the others and is left out: {skipped}")
        for problem in loaded.problems:
            if "the round that was cut off is damaged" in problem:
                yield Fault(problem, self._session)
        marked = [group.first.id for group in loaded.state.ledger.groups if group.source == "damaged"]
        if marked and not problems:
            what = f"session {self._session}: what damage took earlier is marked in the record at {_few(marked)}"
            yield Fault(what, self._session, known=True)
        messages = loaded.state.ledger.messages()
        self.messages = len(messages)
        real = sum(not m.synthetic for m in messages)
        if listed and real < listed and not problems:
            yield self._fault(f"lists say {listed:,} messages, the record has {real:,}")
        yield from self._check_derived([record for _, record in records], listed)
        for path, message, trouble, mendable in self.missing(loaded.state.ledger):
            yield self._fault(f"{path}, which {message} names, {trouble}", mendable)

    def _fault(self, what: str, mendable: bool = False) -> Fault:
        return Fault(f"session {self._session}: {what}", self._session, mendable)

    def _check_derived(self, records: Sequence[object], listed: int | None) -> Iterator[Fault]:
        """Compare the tables that lists, search and archive read with the journal."""
        expected: dict[int, tuple[str, str]] = {}  # the text as it is stored now, and as earlier versions stored it
        groups: set[str] = set()
        for group in (g for record in records if isinstance(record, Sealed) for g in record.groups):
            if group.source == "damaged":
                continue
            groups.add(group.id)
            for m in (m for m in group.messages if not m.synthetic):
                expected[m.seq] = whole_text(index.searchable(m)), whole_text(index.searchable_of_earlier_versions(m))
        if listed is None:
            yield self._fault("no list shows it: its row is lost", mendable=True)
        read, session = self._database.query, self._session
        held: dict[int, str] = {}
        try:
            held = dict(read("SELECT seq, text FROM messages WHERE session = ?", (session,)))
        except StorageError:
            held = {seq: text for _, seq, _, _, text in salvage.readable_messages(read, self._keys, session)}
        try:
            placed = {id for (id,) in read("SELECT id FROM groups WHERE session = ?", (session,))}
        except StorageError:
            placed = {row[0] for row in around.keyed(read, "id", "groups", session)}
        if missing := sorted(expected.keys() - held.keys()):
            yield self._fault(f"search does not know {_messages(missing)}", mendable=True)
        if other := sorted(seq for seq, texts in expected.items() if held.get(seq, texts[0]) not in texts):
            yield self._fault(f"search has other words than the record for {_messages(other)}", mendable=True)
        if unplaced := groups - placed:
            yield self._fault(f"{len(unplaced)} of its groups are in no table of contents", mendable=True)

    def missing(self, ledger: Ledger) -> Iterator[tuple[str, str, str, bool]]:
        """The files that are missing or changed: path, id of the message that names it, what is wrong, and whether the record has
        the full text."""
        messages = ledger.messages()
        by_id = {m.id: m for m in messages}
        wanted: dict[str, Message] = {}
        for message in messages:
            clipped = SPILLED.findall(message.text) if _CLIPPED.search(message.text) else ()
            for path in (*clipped, *stored_in(message)):
                wanted.setdefault(path, message)
        shortened = (e.replacement for c in ledger.changes for e in c.edits if e.kind == "shrink" and e.replacement)
        for message in (m for group in shortened for m in group.messages):
            texts = (message.text, *(call.arguments for call in message.calls))
            for path in (path for text in texts for path in SPILLED.findall(text)):
                wanted.setdefault(path, message)
        for path, message in wanted.items():
            whole = original(by_id, path)
            if trouble := self._trouble(path, message, whole):
                yield path, message.id, trouble, whole is not None

    def _trouble(self, path: str, message: Message, whole: str | None) -> str:
        """What is wrong with a file, empty where nothing is. `whole` is the text it should have, where the record has it."""
        place = self._folder / path
        try:
            data = place.read_bytes()
        except FileNotFoundError:
            return "is gone"
        except OSError as problem:
            return f"cannot be read ({problem.strerror or problem})"
        self.files += 1
        self.bytes += len(data)
        if not data:
            return "is empty"
        if not path.startswith("tool-results/"):
            return ""
        text = data.decode("utf-8", "replace")
        if whole is not None:
            return "" if text == whole.encode("utf-8", "replace").decode() else "holds another text than the record"
        parts = _CLIPPED.split(message.text)
        if len(parts) == 2 and not (text.startswith(parts[0][-200:]) or parts[0][-200:] in text):
            return "is not the text it was"
        if len(parts) == 2 and parts[1][:200] not in text:
            return "is cut short"
        return ""


def _messages(numbers: Sequence[int]) -> str:
    return _few([f"m{seq}" for seq in numbers])


def _few(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:5])
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} more messages"


def _stray_folders(database: Database, known: set[str]) -> Iterator[Fault]:
    """A fault for each folder with files of a session that is in no table."""
    with suppress(OSError):
        for folder in sorted((database.folder / "sessions").iterdir()):
            held = [
                f for f in folder.rglob("*") if f.is_file() and not f.name.startswith(".") and f.name != "draft.json"
            ]
            if folder.name not in known and held:
                yield Fault(f"{folder} holds files of a session that is not in the store", folder.name)


def _search_faults(database: Database) -> Iterator[Fault]:
    """Try to find the newest message by one of its words."""
    newest = (
        "SELECT session, seq, text FROM messages WHERE role <> 'tool' AND session IN (SELECT id FROM sessions)"
        " ORDER BY id DESC LIMIT 50"
    )
    try:
        rows = database.query(newest)
        for session, seq, text in rows:
            word = _SAMPLE_WORD.search(text) if isinstance(text, str) else None
            if word is None:
                continue
            hits = search(database, f'"{word[0]}"', session, limit=50)
            if not hits:
                yield Fault(f"search does not find {word[0]!r}, which m{seq} of session {session} says", session, True)
            return
    except CtxchatError as problem:
        yield Fault(f"search does not work: {problem}", mendable=True)
