"""Searches all messages: takes candidates from the index in a few queries, then scores their texts. Only reads, apart from
rebuilding a damaged index."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.search import NEWEST, Hit, Scope
from ctxchat.core.stems import LANGUAGES, mark
from ctxchat.storage import index
from ctxchat.storage.database import Database
from ctxchat.storage.query import Query, Unit, parse, phrase, split_filters
from ctxchat.storage.ranking import (
    WEIGHTS,
    Candidate,
    Match,
    MessagePlace,
    Weights,
    near_duplicates,
    ranked,
    rarity_of,
    scored,
)
from ctxchat.storage.snippet import passage, snippet

_MAX_ROWS = 8_000
"""Rows read from the index for all words together, the rarest words first; of frequent words, the newest rows."""

_MAX_PLACED_ROWS = 600  # rows with the most words, which are scored together with their neighbours
_MAX_WEIGHED_ROWS = 40  # best rows by that score, whose texts are read and scored
_MAX_READ_CHARS = 4_000_000  # characters of a message that are read
_MAX_SCANNED_MESSAGES = 20_000  # newest messages that are scanned for parts of longer words

_IN_SESSION = "m.session = ?"
IS_NOTE = """EXISTS (SELECT 1 FROM groups n WHERE n.session = m.session AND n.place = m.place AND n.kind = 'note')"""
"""SQL condition: the message `m` is a note for the model, which has the role of the user but was not written by a person."""

_SELECT = f"""SELECT m.id, m.session, m.seq, m.role, substr(m.text, 1, {_MAX_READ_CHARS}), m.tokens, m.at, m.place, m.tool,
    g.id, g.kind, g.turn, s.title
    FROM {{source}} JOIN messages m ON m.id = f.id JOIN sessions s ON s.id = m.session
    JOIN groups g ON g.session = m.session AND g.place = m.place"""


def search(
    database: Database,
    query: str,
    session: str = "",
    *,
    scope: Scope | None = None,
    limit: int = 20,
    marks: tuple[str, str] = ("«", "»"),
    weights: Weights = WEIGHTS,
) -> list[Hit]:
    """The messages that contain all words of a query, the best first; words in double quotes must stand together.

    Where no message has all words, and for a question, messages with most of them or with other forms are found, and their
    neighbours; failing that, parts of longer words. The query may contain filters (`who:me`, see `split_filters`); filters alone
    find the newest messages. `session` is short for a scope of that session. `marks` are put around what was found in a snippet,
    which is one line without control characters. A compaction in the scope may be given by a unique beginning of its id. Raises
    StorageError and UsageError.
    """
    within = scope or Scope()
    within = msgspec.structs.replace(within, session=session) if session else within
    before, after = (_compaction_id(database, name) for name in (within.before, within.after))
    within = msgspec.structs.replace(within, before=before, after=after)
    if limit < 1:
        return []
    query, filtered_scope = split_filters(query, within, datetime.fromisoformat(database.now()).astimezone())
    filtered, within = filtered_scope != within, filtered_scope
    database.attach_current_index()
    try:
        wanted = parse(query, _languages(database))
        if not wanted.terms and not filtered:
            return []
        matches = _find_matches(database, wanted, within, limit, weights)
    except StorageError as problem:
        if not (database.fts and index.damaged(problem.__cause__)):
            raise
        database.rebuild_index()
        wanted = parse(query)
        matches = _find_matches(database, wanted, within, limit, weights)
    return [_hit(database, match, wanted, marks) for match in matches[:limit]]


def _languages(database: Database) -> list[str]:
    """The languages that messages are written in, as far as the index knows."""
    if not database.fts:
        return ["english"]
    held = "SELECT rowid FROM fts.stems WHERE stems MATCH ? LIMIT 1"
    return [language for language in LANGUAGES if database.query(held, (f'"{mark("language", language)}"',))]


def _find_matches(database: Database, query: Query, scope: Scope, limit: int, weights: Weights) -> list[Match]:
    kind = _Search if database.fts else _Scan
    return kind(database, query, scope, limit, weights).run()


def _compaction_id(database: Database, name: str) -> str:
    """The id of the compaction whose id begins with `name`. Raises UsageError for none or several."""
    if name in {"", NEWEST}:
        return name
    rows = database.query("SELECT DISTINCT id FROM compactions WHERE substr(id, 1, ?) = ?", (len(name), name))
    ids = [str(id) for (id,) in rows]
    if name in ids:
        return name
    if len(ids) != 1:
        what = "Several compactions begin" if ids else "No compaction begins"
        raise UsageError(
            f"{what} with {name}.", "`ctxchat archive list` shows them; `last` is the newest of each session."
        )
    return ids[0]


class _Scan:
    """A search without an index, which scans every message."""

    def __init__(self, database: Database, query: Query, scope: Scope, limit: int, weights: Weights) -> None:
        self._database, self._query, self._scope, self._limit, self._weights = database, query, scope, limit, weights
        self._tests, self._values = _tests(scope)
        self._worth = {unit: 1 / len(query.units) for unit in query.units}

    def run(self) -> list[Match]:
        """The matches, best first."""
        if not self._query.terms:
            return self._newest()
        candidates = self._scan(self._query.terms, " AND ")
        if not candidates or (self._scope.recall and len(self._query.units) > 1):
            candidates += self._scan([unit.root for unit in self._query.units], " OR ")
        return self._ranked(candidates)

    def _newest(self) -> list[Match]:
        """The newest messages that pass the filters."""
        tests = " AND ".join(self._tests)
        source = f"(SELECT m.id AS id FROM messages m WHERE {tests} ORDER BY m.id DESC LIMIT ?) f"
        rows = self._database.query(_SELECT.format(source=source) + " ORDER BY m.id DESC", (*self._values, self._limit))
        return [Match(Candidate(*row), 0.0) for row in rows]

    def _scan(self, terms: Sequence[str], joined: str, since: int = 0) -> list[Candidate]:
        """The newest messages that contain these terms, also within longer words, from row id `since` on. `joined` is AND or
        OR."""
        like = [r"m.text LIKE ? ESCAPE '\'" for _ in terms]
        tests = " AND ".join([f"m.id >= {since}", f"({joined.join(like)})", *self._tests])
        patterns = ["%" + re.sub(r"([\\%_])", r"\\\1", term) + "%" for term in terms]
        newest = f"(SELECT m.id AS id FROM messages m WHERE {tests} ORDER BY m.id DESC LIMIT ?) f"
        rows = self._database.query(
            _SELECT.format(source=newest), (*patterns, *self._values, max(self._limit, _MAX_WEIGHED_ROWS))
        )
        return [Candidate(*row) for row in rows]

    def _ranked(self, candidates: Sequence[Candidate]) -> list[Match]:
        unique = list({c.id: c for c in candidates}.values())
        matches = ranked(unique, self._query, self._worth, self._weights, answers=self._scope.recall)
        return _without_duplicates(matches)


class _Search(_Scan):
    """A search by the index: scores messages by the words they contain, then the best of them by their texts."""

    def run(self) -> list[Match]:
        """The matches, best first."""
        if not self._query.terms:
            return self._newest()
        newest = self._database.query("SELECT max(id) FROM messages")[0][0] or 0
        self._rows = self._between()
        often = {unit: self._often(unit, newest) for unit in self._query.units}
        held = self._rows_holding(often)
        rarity = {unit: rarity_of(max(often[unit], len(held[unit])), newest) for unit in self._query.units}
        total = sum(rarity.values()) or 1.0
        self._worth = {unit: value / total for unit, value in rarity.items()}
        first, *others = held.values()
        rows_with_all = first.intersection(*others)
        matches: list[Match] = []
        if rows_with_all and not self._query.question:
            matches = self._best(dict.fromkeys(held, rows_with_all), rarity)
        if not any(m.good for m in matches) and not self._query.phrases:
            matches = self._best(held, rarity)
        return matches or self._ranked(self._scan(self._query.terms, " AND ", newest - _MAX_SCANNED_MESSAGES))

    def _often(self, unit: Unit, newest: int) -> int:
        """How many messages contain a word. For frequent words it is estimated from the newest ones, since counting takes time
        for each."""
        held = "SELECT rowid FROM fts.stems WHERE stems MATCH ? ORDER BY rowid DESC LIMIT ?"
        sql = f"SELECT count(*), min(rowid) FROM ({held})"
        many, oldest = self._database.query(sql, (unit.expression, _MAX_ROWS))[0]
        return many if many < _MAX_ROWS else many * newest // max(1, newest - oldest)

    def _between(self) -> tuple[int, int]:
        """The lowest and highest row id that the scope can contain, as far as a fast query tells."""
        if not self._scope.session:
            return (0, 1 << 62)
        sql = "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM messages WHERE session = ?"
        return tuple(self._database.query(sql, (self._scope.session,))[0])  # type: ignore[return-value]

    def _rows_holding(self, often: dict[Unit, int]) -> dict[Unit, set[int]]:
        """The rows that contain each word; for a frequent word only those that also contain a rarer one."""
        marks = [f'"{mark("role", self._scope.role)}"'] if self._scope.role else []
        marks += [f'"{mark("tool", self._scope.tool)}"'] if self._scope.tool else []
        required = self._with_phrases()
        held: dict[Unit, set[int]] = {}
        left, rare = _MAX_ROWS, list[str]()
        for unit in sorted(self._query.units, key=lambda u: often[u]):
            wanted = " AND ".join([unit.expression, *marks])
            if often[unit] > left and rare:
                wanted = f"({' OR '.join(rare)}) AND {wanted}"
            else:
                rare.append(unit.expression)
            rows = self._matching("stems", wanted, _MAX_ROWS)
            typed = self._query.typed and unit == self._query.units[-1] and unit.spaced
            if typed and often[unit] < _MAX_ROWS:  # the word may be unfinished
                rows |= self._matching("search", f"{phrase(self._query.typed)} *", _MAX_ROWS // 2)
            held[unit] = rows if required is None else rows & required
            left -= len(rows)
        return held

    def _with_phrases(self) -> set[int] | None:
        """The rows that contain all quoted phrases and the file of the scope; None where there are neither."""
        wanted = [*self._query.phrases, *([self._scope.file] if re.search(r"[^\W_]", self._scope.file) else [])]
        return self._matching("search", " AND ".join(map(phrase, wanted)), 4 * _MAX_ROWS) if wanted else None

    def _matching(self, table: str, expression: str, many: int) -> set[int]:
        """The row ids of at most `many` messages, the newest, that match an expression of FTS5 in a table of the index."""
        sql = (
            f"SELECT rowid FROM fts.{table} WHERE {table} MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"
        )
        return {row for (row,) in self._database.query(sql, (expression, *self._rows, many))}

    def _best(self, held: dict[Unit, set[int]], rarity: dict[Unit, float]) -> list[Match]:
        """The best matches among the messages that contain any of these words, or are next to one that does."""
        total_rarity = Counter[int]()
        for unit, rows in held.items():
            for row in rows:
                total_rarity[row] += rarity[unit]  # type: ignore[assignment]
        candidates = {row for row, _ in total_rarity.most_common(_MAX_PLACED_ROWS)}
        weights = self._weights
        if not self._query.question:
            weights = msgspec.structs.replace(weights, beside=())  # single words are meant to be in the message itself
        else:
            candidates |= {
                row + distance
                for row, _ in total_rarity.most_common(_MAX_PLACED_ROWS // 4)
                for distance in (-2, -1, 1, 2)
            }
        scores = scored(held, self._places(candidates), rarity, weights, sessions=not self._scope.session)
        best_rows = sorted(scores, key=lambda row: (-scores[row], -row))[: max(self._limit, _MAX_WEIGHED_ROWS)]
        rows = self._database.query(
            _SELECT.format(source="(SELECT value AS id FROM json_each(?)) f"), (json(best_rows),)
        )
        return self._ranked([Candidate(*row, rank=scores[row[0]]) for row in rows])

    def _places(self, rows: set[int]) -> list[MessagePlace]:
        """These rows as places, without those outside the scope."""
        tests = " ".join(f"AND {test}" for test in self._tests)
        sql = f"SELECT m.id, m.session, m.tokens FROM messages m WHERE m.id IN (SELECT value FROM json_each(?)) {tests}"
        return [MessagePlace(*row) for row in self._database.query(sql, (json(sorted(rows)), *self._values))]


def json(rows: Sequence[int]) -> str:
    """Row ids as a JSON array, for SQLite's json_each."""
    return f"[{','.join(map(str, rows))}]"


def _without_duplicates(matches: list[Match]) -> list[Match]:
    """The matches, with near duplicates put together: the newest takes the position of the best, the others go to the
    end."""
    duplicate_of = near_duplicates((m.candidate.id, m.candidate.text) for m in matches)
    if not duplicate_of:
        return matches
    newest_of = {
        first: max([first, *(key for key, of in duplicate_of.items() if of == first)])
        for first in duplicate_of.values()
    }
    match_of = {m.candidate.id: m for m in matches}
    others_of = {
        first: tuple(k for k in (first, *(k for k, of in duplicate_of.items() if of == first)) if k != new)
        for first, new in newest_of.items()
    }
    result: list[Match] = []
    for match in matches:
        id = match.candidate.id
        if id in newest_of:
            alike_ids = tuple(f"m{match_of[k].candidate.seq}" for k in others_of[id])
            result.append(msgspec.structs.replace(match_of[newest_of[id]], score=match.score, alike=alike_ids))
        elif id not in duplicate_of:
            result.append(match)
    return result + [msgspec.structs.replace(match_of[k], again=True) for ks in others_of.values() for k in ks]


def _tests(scope: Scope) -> tuple[list[str], list[object]]:
    """The scope as SQL conditions on a message `m`, and their values in order."""
    tests: list[str] = [_IN_SESSION] if scope.session else []
    values: list[object] = [scope.session] if scope.session else []
    if scope.role:
        tests.append("m.role = ?")
        values.append(scope.role)
        if scope.role == "user":
            tests.append(f"NOT {IS_NOTE}")
    if scope.tool:
        tests.append("' ' || m.tool || ' ' LIKE '% ' || ? || ' %'")
        values.append(scope.tool)
    for name, than in ((scope.before, "<"), (scope.after, ">")):
        if name:
            tests.append(_side_of_compaction(name, than))
            values += [] if name == NEWEST else [name]
    for test, value in (
        ("m.at >= ?", scope.since),
        ("m.at < ?", scope.until),
        ("instr(m.text, ?)", scope.file),
        ("m.session IN (SELECT s.id FROM sessions s WHERE s.folder = ?)", scope.folder),
        ("m.session <> ?", scope.other),
    ):
        if value:
            tests.append(test)
            values.append(value)
    if scope.recall:
        tests.append("m.tool <> 'recall'")
    # only in its own session the last user message is the question itself
    if scope.recall and scope.session and not scope.other:
        tests.append(
            "NOT (m.role = 'user' AND m.place = (SELECT max(g.place) FROM groups g WHERE g.session = m.session"
            " AND g.kind = 'user'))"
        )
    return tests, values


def _side_of_compaction(name: str, than: str) -> str:
    """The SQL condition that a message was said before (`<`) or after (`>`) a compaction."""
    which = "NOT c.undone" if name == NEWEST else "c.id = ?"
    message_entry = "(SELECT g.entry FROM groups g WHERE g.session = m.session AND g.place = m.place)"
    compaction_entry = f"(SELECT max(c.entry) FROM compactions c WHERE c.session = m.session AND {which})"
    if than == ">":
        return f"{message_entry} > coalesce({compaction_entry}, 0)"
    compacted = "m.session IN (SELECT c.session FROM compactions c)"  # a fast test that excludes most messages
    return f"({compacted} AND {message_entry} < {compaction_entry})"


def _hit(database: Database, match: Match, query: Query, marks: tuple[str, str]) -> Hit:
    """A match as what a search returns."""
    candidate = match.candidate
    text, whole = passage(candidate.text, match.start)
    return Hit(
        session=candidate.session,
        message=f"m{candidate.seq}",
        role=candidate.role,
        snippet=snippet(candidate.text, query.marked, marks, [u.root for u in query.units], match.start),
        tokens=candidate.tokens,
        compaction=_folded_by(database, candidate.session, candidate.place),
        turn=candidate.turn,
        at=candidate.at,
        group=candidate.group,
        title=candidate.title,
        tool=candidate.tool,
        passage=text,
        whole=whole,
        alike=match.alike,
        note=candidate.kind == "note",
    )


def _folded_by(database: Database, session: str, place: int) -> str:
    """The id of the latest compaction in force that covers a group, by its position in the record; empty where none does."""
    rows = database.query(
        "SELECT c.id FROM covers x JOIN compactions c ON c.session = x.session AND c.id = x.compaction "
        "WHERE x.session = ? AND x.first <= ? AND x.last >= ? AND NOT c.undone ORDER BY c.entry DESC LIMIT 1",
        (session, place, place),
    )
    return str(rows[0][0]) if rows else ""
