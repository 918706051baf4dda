"""Finds the lines in a command's output that report an error.

Programs report errors at the beginning of a line: after a position in a file, a time, a tag or their own name. A line that merely
contains the word (a signature, a title, a reviewer's text) reports none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxchat.core.expressions import expression
from ctxchat.core.tooluse import BARE

_MAX_LINE_CHARS = 600
"""The most characters at the beginning of a line that are searched."""

_FRONT = (
    r"^[\s>*!✗✘✕×|]*(?:E +)?(?:-{3} )?"
    r"(?:(?:\[[^\]\s]{1,30}\]|[({]\w+[)}]|\d{4}[-/]\d\d[-/]\d\d\S*|\d\d:\d\d:\d\d\S*|[\w./\\@~-]+[:(]\d+(?:[:,]\d+)?\)?"
    r"|Caused by|Uncaught(?: \(in promise\))?|[\w./@~-]{1,60}:|line|\d+|\w[\w.-]{0,20}(?= (?:ERROR|FATAL|ERR!)))[\s:-]+){0,5}"
)
"""What may stand before the word: marks, tags, times, places in files, names of programs."""
_ERROR = expression(
    _FRONT
    + r"(?:(?:[A-Z]\w+ ){0,2}(?:[\w.$]+[.:])?\w*(?:Error|Exception|Panic|Failure)(?:\[\w+\]| \[[^\]\n]+\]| \w+)?:"
    r"|(?:[Ee]rror|ERROR|[Ff]atal|FATAL|[Pp]anic|[Ff]ailed|FAIL(?:ED)?|ERR!)(?:\[\w+\])?(?::|\s+(?!handling|messages?\b))"
    r"|CONFLICT \(|Exception in thread\b|thread '[^']*' panicked)"
    r"|command not found|No such file or directory|Permission denied|Segmentation fault"
    r"|\((?:\w+::)*\w+Error\)\s*$"
)
_PLACED = expression(
    r"\s*[\w./\\@~-]+\.\w{1,5}:\d+:(?:(?P<column>\d+):?)? (?!\s*(?:warning|note|info|hint|style)\b)(?=\S)"
)
"""The beginning of a finding of a compiler, a linter or a test: file, line, and sometimes a column, which only they give."""
_WORD = expression(r"error|exception|panic|fatal|fail|not found|no such|denied|fault|expected", re.IGNORECASE)
_NAMED = expression(
    r"\s*[{\[]*\"(?:error|message|detail|stderr)\": ?\"[^\"]{0,100}(?:rror|ailed|not found|denied|nvalid)"
)
"""An error in JSON; other values have the word in them for any reason."""
_LISTED = expression(r"\s*\d+\s?[:|│→\t]|\s*\d+\s{2,}|\s*(?:raise|except|throw|catch|import|from|#|//|/?\*)\b|\s*#")
_SLIP = expression(
    r"(?:unknown|unrecogni[sz]ed|invalid|illegal|unexpected|no such) (?:command[ -]line )?(?:option|argument|flag|switch)",
    re.IGNORECASE,
)
"""A message that a command was called with wrong options, which is no error of the work."""
_NO_TROUBLE = expression(
    r"\b0 (?:errors?|remaining|failed|failures)\b|\"(?:success|ok)\": ?true|\A\s*[-*] \*\*", re.IGNORECASE
)
"""A line that contains a word for an error and reports none."""


def troubles(output: str) -> Iterator[str]:
    """The lines of an output that report an error, in order."""
    return (line for line in output.splitlines() if _tells(line[:_MAX_LINE_CHARS]))


def _tells(line: str) -> bool:
    """True for a line that reports an error."""
    placed = _PLACED.match(line)
    found = _ERROR.search(line) or _NAMED.match(line) or (placed and (placed["column"] or _WORD.search(line)))
    return bool(found) and not any(
        (_LISTED.match(line), BARE.fullmatch(line), _SLIP.search(line), _NO_TROUBLE.search(line))
    )
