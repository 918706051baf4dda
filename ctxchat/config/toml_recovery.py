"""Finds every syntax mistake in a TOML text that tomllib refuses, and parses its valid statements. That tree is for further
checks only: settings in it never count."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec

from ctxchat.config.problems import Problem
from ctxchat.config.toml_file import MAX_DOTS_A_LINE, TOO_DEEP, TOO_MANY_DOTS, error_line, syntax_problem

MAX_MISTAKES = 20
"""Mistakes reported one by one. A file that was never meant as settings may have hundreds."""

NEVER_CLOSED = Problem(
    "is not valid TOML: a bracket or quote is never closed", allowed="close it with ], } or the quote it began with"
)

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_PAIR = re.compile(rf"[ \t]*{_PART}(?:[ \t]*\.[ \t]*{_PART})*[ \t]*=")
_HEADER = re.compile(rf"[ \t]*\[{{1,2}}[ \t]*({_PART})?")
_TABLE_NAME = re.compile(rf"[ \t]*({_PART})")
_WHOLE_HEADER = re.compile(
    rf"[ \t]*\[{{1,2}}[ \t]*[A-Za-z_-][\w-]*(?:[ \t]*\.[ \t]*{_PART})*[ \t]*\]{{0,2}}[ \t]*(?:#.*)?$"
)
"""A line that is taken for a header even inside an open list, and even without its closing bracket: a list within a list never
begins with a bare word."""
_NOTHING = re.compile(r"[ \t]*(?:#.*)?$")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""+|\'\'\'.*?\'\'\'+'  # a text of several lines
    r'|(?P<unclosed>"""|\'\'\')'
    r"|\"(?:[^\"\\\n]|\\[^\n])*\"|'[^'\n]*'|[\"'][^\n]*|\#[^\n]*"  # of one line, closed or not, or a comment
    r"|(?P<opens>[\[{])|(?P<closes>[\]}])|(?P<newline>\n)|[^\"'#\[{\]}\n]+",
    re.DOTALL,
)
_LOST = "\0"
"""Prefix of the name of a table whose header is broken. A name in a file does not begin so by accident."""


class Recovered(msgspec.Struct, frozen=True):
    """The problems of a text in the order of its lines, and its valid part: `text` has the same lines with broken ones emptied,
    `tree` what they mean."""

    problems: tuple[Problem, ...]
    text: str
    tree: dict[str, Any]


class _TomlStatement(msgspec.Struct, frozen=True):
    """A pair or header: its lines from `start` to before `end`, counted from 0. `closed` is False where a bracket or quote is
    left open."""

    start: int
    end: int
    closed: bool = True


def recover(text: str, file: str) -> Recovered:
    """Find every mistake. A broken statement ends where the next one begins and causes no mistakes elsewhere: lines below a
    broken header go into a table of their own, so that none counts as unknown or repeated."""
    recovery = _Recovery(text.replace("\r\n", "\n").split("\n"), file)
    recovery.syntax()
    tree = recovery.repetitions()
    problems = sorted(recovery.problems, key=lambda p: p.line)
    if len(problems) > MAX_MISTAKES:
        more = Problem("and more below it", allowed="correct these first", file=file, line=problems[MAX_MISTAKES].line)
        problems = [*problems[:MAX_MISTAKES], more]
    valid = {name: value for name, value in tree.items() if not name.startswith(_LOST)}
    return Recovered(tuple(problems), "\n".join(recovery.lines), valid)


class _Recovery:
    """Goes through the lines of a text: empties broken ones in `lines` and adds to `problems`."""

    def __init__(self, lines: list[str], file: str) -> None:
        self.lines = lines
        self.problems: list[Problem] = []
        self._file = file
        self._text = "\n".join(lines) + "\n"
        self._starts = [0, *(found.end() for found in re.finditer("\n", self._text))]
        self._statements: list[_TomlStatement] = []
        self._lost: set[str] = set()
        self._all_lost = False

    def syntax(self) -> None:
        """Report each statement with a syntax mistake, each on its own."""
        at = 0
        while at < len(self.lines) and len(self.problems) <= MAX_MISTAKES:
            statement = self._statement(at)
            problem = self._fault(statement)
            if problem is None:
                self._keep(statement)
                at = statement.end
                continue
            broken = problem.line - 1
            # the line begins a statement, so the one before it was never closed
            if broken > at and self._begins_statement(broken, closed=statement.closed):
                statement = msgspec.structs.replace(statement, closed=False)
                problem = msgspec.structs.replace(NEVER_CLOSED, file=self._file, line=at + 1)
            self.problems.append(problem)
            at = self._blank(statement)
        for line in range(at, len(self.lines)):
            self.lines[line] = ""

    def repetitions(self) -> dict[str, Any]:
        """The tree of the statements, which are all valid by now; report keys and tables that are defined twice."""
        while True:
            text = "\n".join(self.lines)
            try:
                return tomllib.loads(text)
            except tomllib.TOMLDecodeError as error:
                line = (error_line(str(error)) or len(self.lines)) - 1
                statement = next((s for s in reversed(self._statements) if s.start <= line), None)
                if statement is None or len(self.problems) > MAX_MISTAKES:
                    return {}
                self._statements.remove(statement)
                problem = syntax_problem(str(error), text, self._file)
                self.problems.append(msgspec.structs.replace(problem, line=statement.start + 1))
                self._blank(statement)
            except (ValueError, RecursionError):
                return {}

    def _statement(self, at: int) -> _TomlStatement:
        """The statement that begins in a line: a pair up to its last bracket or quote; anything else is one line long."""
        if not _PAIR.match(self.lines[at]):
            return _TomlStatement(at, at + 1)
        end, depth = at, 0
        for token in _TOKEN.finditer(self._text, self._starts[at]):
            end += token[0].count("\n")
            if token["unclosed"]:
                break
            depth += bool(token["opens"]) - bool(token["closes"])
            if token["newline"] and depth <= 0:
                return _TomlStatement(at, end)
        return _TomlStatement(at, len(self.lines), closed=False)

    def _fault(self, statement: _TomlStatement) -> Problem | None:
        """The syntax mistake of a single statement, None where it has none."""
        lines = self.lines[statement.start : statement.end]
        if any(line.count(".") > MAX_DOTS_A_LINE for line in lines):
            return msgspec.structs.replace(TOO_MANY_DOTS, file=self._file, line=statement.start + 1)
        try:
            tomllib.loads("\n".join(lines) + "\n")
        except tomllib.TOMLDecodeError as error:
            if not (line := error_line(str(error))):
                return msgspec.structs.replace(NEVER_CLOSED, file=self._file, line=statement.start + 1)
            problem = syntax_problem(str(error), "", self._file)
            return msgspec.structs.replace(problem, line=statement.start + line)
        except (ValueError, RecursionError):
            return msgspec.structs.replace(TOO_DEEP, file=self._file, line=statement.start + 1)
        return None

    def _begins_statement(self, line: int, closed: bool) -> bool:
        """Whether a line inside a broken statement, which is `closed` or not, begins the next statement."""
        if not self._looks_like_statement(line):
            return False
        statement = self._statement(line)
        return not closed or not statement.closed or self._fault(statement) is None

    def _looks_like_statement(self, line: int) -> bool:
        return bool(_PAIR.match(self.lines[line]) or _WHOLE_HEADER.match(self.lines[line]))

    def _keep(self, statement: _TomlStatement) -> None:
        """Keep a valid statement. A header below a table whose header was broken gets a table of its own."""
        line = self.lines[statement.start]
        if _NOTHING.match(line):
            return
        self._statements.append(statement)
        header = _HEADER.match(line)
        if header and (self._all_lost or header[1] in self._lost):
            self.lines[statement.start] = _lost_header(statement.start)

    def _blank(self, statement: _TomlStatement) -> int:
        """Empty the lines of a broken statement; the line at which to go on."""
        first = self.lines[statement.start]
        pair = bool(_PAIR.match(first))
        end = statement.end if statement.closed else statement.start + 1
        if not statement.closed or not (pair or _HEADER.match(first)):
            while end < len(self.lines) and self._is_rest(end, open_=not statement.closed):
                end += 1
        for line in range(statement.start, end):
            self.lines[line] = ""
        if not pair:  # a header, or an attempt at one
            name = _HEADER.match(first) or _TABLE_NAME.match(first)
            self._all_lost = self._all_lost or not (name and name[1])
            self._lost.add(name[1] if name and name[1] else "")
        if not pair or not statement.closed:
            self.lines[statement.start] = _lost_header(statement.start)
        return end

    def _is_rest(self, line: int, open_: bool) -> bool:
        """Whether a line belongs to the broken statement above it, because it begins no statement. After a statement that is not
        open an empty line ends that."""
        if self._looks_like_statement(line):
            return False
        return open_ or not (_NOTHING.match(self.lines[line]) or _HEADER.match(self.lines[line]))


def _lost_header(line: int) -> str:
    return f'["\\u0000{line}"]'
