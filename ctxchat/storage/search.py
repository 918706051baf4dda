"""Search over everything ever said: candidates from the index in a few strokes, weighed one by one. Reads only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.search import NEWEST, Hit, Scope
from ctxchat.storage import index
from ctxchat.storage.database import Database
from ctxchat.storage.query import Query, Unit, at_least, every, parse
from ctxchat.storage.ranking import Candidate, Match, ranked, weights
from ctxchat.storage.snippet import passage, snippet

_NEWEST = 2000  # matches that the index ranks: of words that are everywhere, the newest
_WEIGHED = 40  # candidates that are read and weighed
_UNITS = 6  # words that are combined where not all of them are found: the rarest
_READ = 4_000_000  # characters of a message that are looked at
_EVERYWHERE = 0.3  # share of all messages above which a word says nothing, where others do

_IN_SESSION = "m.session = ?"
_SELECT = f"""SELECT m.id, m.session, m.seq, m.role, substr(m.text, 1, {_READ}), m.tokens, m.at, m.place, m.tool,
    g.id, g.kind, g.turn, s.title, {{rank}}
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
) -> list[Hit]:
    """Messages that hold all the words of a query, the best first; "…" keeps words together.

    Where none does, or only the question itself: those that hold most of them, other forms of them, and at last parts of longer
    words. `session` is short for a scope of that session. `marks` stand around what was found in a snippet, which is one line
    without control characters. A compaction in the scope may be given by a unique beginning of its id. Raises StorageError and
    UsageError.
    """
    wanted = parse(query)
    if not wanted.terms or limit < 1:
        return []
    within = scope or Scope()
    within = msgspec.structs.replace(within, session=session) if session else within
    before, after = (_pass(database, name) for name in (within.before, within.after))
    within = msgspec.structs.replace(within, before=before, after=after)
    database.follow_index()
    try:
        found = _found(database, wanted, within, limit)
    except StorageError as problem:
        if not (database.fts and index.damaged(problem.__cause__)):
            raise
        database.renew_index()
        found = _found(database, wanted, within, limit)
    return [_hit(database, match, wanted, marks) for match in found[:limit]]


def _found(database: Database, query: Query, scope: Scope, limit: int) -> list[Match]:
    return (_Search(database, query, scope, limit) if database.fts else _Scan(database, query, scope, limit)).run()


def _pass(database: Database, name: str) -> str:
    """The id of a compaction by its unique beginning."""
    if name in {"", NEWEST}:
        return name
    rows = database.read("SELECT DISTINCT id FROM compactions WHERE substr(id, 1, ?) = ?", (len(name), name))
    found = [str(id) for (id,) in rows]
    if name in found:
        return name
    if len(found) != 1:
        what = "Several compactions begin" if found else "No compaction begins"
        raise UsageError(
            f"{what} with {name}.", "`ctxchat archive list` shows them; `last` is the newest of each session."
        )
    return found[0]


class _Scan:
    """A search without an index: every message is looked at."""

    def __init__(self, database: Database, query: Query, scope: Scope, limit: int) -> None:
        self._database, self._query, self._limit = database, query, limit
        self._tests, self._values = _tests(scope)
        self._patient = scope.recall
        self._worth = weights(query.units, {}, 0)

    def run(self) -> list[Match]:
        """The matches, best first."""
        found = self._scan(self._query.terms, " AND ")
        if not found or (self._patient and len(self._query.units) > 1):
            found += self._scan([unit.stem for unit in self._query.units], " OR ")
        return self._ranked(found)

    def _scan(self, terms: Sequence[str], joined: str) -> list[Candidate]:
        """The newest messages that hold these terms, parts of longer words too."""
        like = [r"m.text LIKE ? ESCAPE '\'" for _ in terms]
        tests = " AND ".join([f"({joined.join(like)})", *self._tests])
        patterns = ["%" + re.sub(r"([\\%_])", r"\\\1", term) + "%" for term in terms]
        newest = f"(SELECT m.id AS id FROM messages m WHERE {tests} ORDER BY m.id DESC LIMIT ?) f"
        sql = _SELECT.format(source=newest, rank="0.0")
        return _candidates(self._database.read(sql, (*patterns, *self._values, max(self._limit, _WEIGHED))))

    def _ranked(self, candidates: Sequence[Candidate]) -> list[Match]:
        unique = list({c.id: c for c in candidates}.values())
        return ranked(unique, self._query, self._worth, answers=self._patient)


class _Search(_Scan):
    """A search by the index: all the words first, then most of them, then parts of longer ones."""

    def run(self) -> list[Match]:
        seen = index.frequencies(self._database.read, self._query.units)
        newest = self._database.read("SELECT max(id) FROM messages")[0][0] or 0
        self._worth = weights(self._query.units, seen, newest)
        found = self._all()
        enough = any(m.good for m in found) if not self._patient else sum(m.good for m in found) >= self._limit
        if not enough and not self._query.quoted:
            found = self._ranked([*(m.candidate for m in found), *self._most(seen, newest)])
        return found or self._ranked(self._scan(self._query.terms, " AND "))

    def _all(self) -> list[Match]:
        return self._ranked(self._indexed(every(self._query)))

    def _most(self, seen: dict[Unit, int], newest: int) -> Iterator[Candidate]:
        """Messages with as many of the rarest words as possible, until there are enough to choose from."""
        known = sorted((u for u in self._query.units if seen.get(u)), key=lambda u: seen[u])
        telling = [u for u in known if seen[u] <= max(_NEWEST, newest * _EVERYWHERE)] or known[:1]
        units, taken = telling[:_UNITS], 0
        for many in range(len(units), 0, -1):
            if taken >= max(self._limit, _WEIGHED // 2):
                return
            for candidate in self._indexed(at_least(units, many)):
                taken += 1
                yield candidate

    def _indexed(self, expression: str) -> list[Candidate]:
        tests = " ".join(f"AND {test}" for test in self._inside)
        newest = (
            "SELECT rowid AS id, rank AS score FROM fts.search "
            f"WHERE search MATCH ? {tests} ORDER BY rowid DESC LIMIT {_NEWEST}"
        )
        best = f"(SELECT id, score FROM ({newest}) ORDER BY score, id DESC LIMIT ?) f"
        sql = _SELECT.format(source=best, rank="f.score") + " ORDER BY f.score, f.id DESC"
        return _candidates(
            self._database.read(sql, (expression, *self._values, max(self._limit, _WEIGHED))), ranked=True
        )

    @property
    def _inside(self) -> list[str]:
        """The tests of the scope as FTS5 is to see them: after the match, never instead of it."""
        ids = "+rowid IN (SELECT m.id FROM messages m WHERE m.session = ?)"  # told by an index alone
        seen = "EXISTS (SELECT 1 FROM messages m WHERE m.id = search.rowid AND {test})"
        return [ids if test == _IN_SESSION else seen.format(test=test) for test in self._tests]


def _tests(scope: Scope) -> tuple[list[str], list[object]]:
    """The scope as conditions on a message `m`, with their values in order."""
    tests: list[str] = [_IN_SESSION] if scope.session else []
    values: list[object] = [scope.session] if scope.session else []
    if scope.role:
        tests.append("m.role = ?")
        values.append(scope.role)
    if scope.tool:
        tests.append("' ' || m.tool || ' ' LIKE '% ' || ? || ' %'")
        values.append(scope.tool)
    for name, than in ((scope.before, "<"), (scope.after, ">")):
        if name:
            tests.append(_beside_pass(name, than))
            values += [] if name == NEWEST else [name]
    if scope.recall:
        tests.append("m.tool <> 'recall'")
        tests.append(
            "NOT (m.role = 'user' AND m.place = (SELECT max(g.place) FROM groups g WHERE g.session = m.session"
            " AND g.kind = 'user'))"
        )
    return tests, values


def _beside_pass(name: str, than: str) -> str:
    which = "NOT c.undone" if name == NEWEST else "c.id = ?"
    said = "(SELECT g.entry FROM groups g WHERE g.session = m.session AND g.place = m.place)"
    made = f"(SELECT max(c.entry) FROM compactions c WHERE c.session = m.session AND {which})"
    if than == ">":
        return f"{said} > coalesce({made}, 0)"
    compacted = "m.session IN (SELECT c.session FROM compactions c)"  # looked up once, and most are told by it
    return f"({compacted} AND {said} < {made})"


def _candidates(rows: Sequence[tuple[Any, ...]], *, ranked: bool = False) -> list[Candidate]:
    return [Candidate(*row[:-1], rank=row[-1] if ranked else 0.0) for row in rows]


def _hit(database: Database, match: Match, query: Query, marks: tuple[str, str]) -> Hit:
    found = match.candidate
    text, whole = passage(found.text, match.start)
    return Hit(
        session=found.session,
        message=f"m{found.seq}",
        role=found.role,
        snippet=snippet(found.text, query.terms, marks, [u.stem for u in query.units], match.start),
        tokens=found.tokens,
        compaction=_folded_by(database, found.session, found.place),
        turn=found.turn,
        at=found.at,
        group=found.group,
        title=found.title,
        tool=found.tool,
        passage=text,
        whole=whole,
    )


def _folded_by(database: Database, session: str, place: int) -> str:
    """The latest compaction in force that covers a place of the record."""
    found = database.read(
        "SELECT c.id FROM covers x JOIN compactions c ON c.session = x.session AND c.id = x.compaction "
        "WHERE x.session = ? AND x.first <= ? AND x.last >= ? AND NOT c.undone ORDER BY c.entry DESC LIMIT 1",
        (session, place, place),
    )
    return str(found[0][0]) if found else ""
