"""Finding exact facts in messages: paths, commands, numbers, errors, rules.

Patterns and nothing else; what is kept of the facts is decided in `evidence`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxchat.core.messages import Group, Message, Text
from ctxchat.core.record import Fact, Speaker
from ctxchat.core.sanitize import clean
from ctxchat.core.tooluse import Use, exit_code, failed, refused, use_of

_LONG = 240
"""Characters of a sentence, an error or a command that are kept."""

CUT = "…"
"""The end of a sentence, an error or a command that is longer than what is kept of it."""

At = tuple[int, Speaker, int]
"""Where a fact was met: the message's place, who brought it up, the turn."""

PATHS = 100
"""Paths that are taken from one result at most."""

_LOOKED_UP = 3
"""Messages of one answer of recall that count as looked up."""

_SCANNED = 8_000
"""Characters at the head of a message that are looked through; half as many at its tail."""


_ENDINGS = frozenset(
    re.findall(
        r"\w+",
        "py pyi js jsx ts tsx mjs go rs c h cc cpp hpp java kt rb php sh bash zsh sql md rst txt json jsonl toml yaml yml "
        "ini cfg conf env lock csv tsv html css scss xml svg png jpg jpeg gif pdf ipynb log proto tf vue swift cs lua pl "
        "ps1 bat diff patch db zip gz tar mk gradle",
    )
)
_PATH = re.compile(
    r"(?<![\w/.:@~+\\-])(?:~|\.{1,2}|[\w@.+-]+)?(?:/[\w@.+-]+)+/?"
    r"|(?<![\w/.\\-])[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}(?![\w/.(])"
)
_URL = re.compile(r"\b(?:https?|wss?|ftp|ssh|git|postgres(?:ql)?|mysql|redis|amqp|file)://[^\s<>\"'`)\]}]+")
_UNIT = (
    r"%|‰|°C|°F|€|(?:ms|µs|us|ns|s|secs?|seconds?|mins?|minutes?|h|hours?|days?|weeks?|months?|years?"
    r"|[kKMGT]i?B(?:/s)?|[kMG]bit/s|[kMG]bps|bytes?|B|px|[kMG]?Hz|tokens?|rows?|records?|tests?|passed|failed|skipped"
    r"|files?|lines?|match(?:es)?|results?|hits?|characters?|chars?|words?|bits?|requests?|req/s|rps|qps|users?|items?|errors?|warnings?|commits?|cores?|threads?|workers?|retries"
    r"|attempts?|connections?|replicas?|pages?|points?|USD|EUR|GBP|dollars?|euros?|kg|mg|km|cm|mm|kWh|W|V|x|fps|cents?"
    r"|vCPUs?|CPUs?|GPUs?|epochs?|steps?|samples?|messages?|partitions?|shards?)(?![\w/])"
)
_AMOUNT = r"[+-]?\d(?:[\d_,.]*\d)?"
_NUMBER = re.compile(rf"(?<![\w.,])(?:[$€£]\s?{_AMOUNT}[kKM]?\b|{_AMOUNT}\s?(?:{_UNIT}))")
_TALLY = re.compile(r"(?<![\w.])\d+ (?:passed|failed|skipped|errors?|warnings?)\b")
_EXIT_LINE = re.compile(r"^.*\bexit(?:ed)?\b.*\d+\W*$", re.MULTILINE | re.IGNORECASE)
_NAMED = re.compile(
    rf"(?<![\w.])([A-Za-z_][\w.-]{{1,40}})[ \t]*[:=][ \t]*({_AMOUNT}(?:\s?(?:{_UNIT}))?)(?![\w:/.-]\d|\w)"
)
_PLACING = frozenset({"start_line", "end_line", "line", "lineno"})
_SHOWN = re.compile(r"^ *(`{3,}|~{3,}).*?(?:^ *\1[ \t]*$|\Z)|^ {0,3}>[^\n]*", re.MULTILINE | re.DOTALL)
_PASTED = 15
"""So many lines without an empty one between are a log or a listing, not somebody's words; a rule in them is one all the same."""

_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
_PLACED = re.compile(r"^\s*\d+\t|^[^\s:]+:\d+[:-]")
_BREAK = re.compile(r"[\n,;|]|[.!?:] ")
_DIGIT = re.compile(r"\d")
_ODD = re.compile(r"\d|[A-Z]_|_[A-Z]")
_WHOLE_HEAD = re.compile(r"(?:\n[^\n]{0,200}|\S{0,200})\Z")
_WHOLE_TAIL = re.compile(r"\A(?:[^\n]{0,200}\n|\S{0,200})")
_LAST_WORD = re.compile(r"\S{0,120}\Z")
_WORDS = re.compile(r"[\w/@.-]*\w")
_TROUBLE = ("error", "exception", "panic", "fatal", "fail", "not found", "no such", "denied", "fault")
_ERROR = re.compile(
    r"(?:Error|Exception|Panic|panicked)\b|\b(?:error|fatal|panic|ERROR|FATAL|FAILED|Failed)\b"
    r"|command not found|No such file|Permission denied|Segmentation fault"
)
_LISTED = re.compile(r"\s*\d+\s?[:|│\t]|\s*\d+\s{2,}|\s*(?:raise|except|throw|catch|import|from|#|//|/?\*)\b|\s*#")
_RATE = re.compile(r"\d[\d.,]*[A-Za-z]*/\w+$")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?=\S)[^.!?。！？\n]*)*[.!?。！？]?")
_RULE = re.compile(
    r"\b(?:always|never|must(?:n't)?|do not|don't|from now on|make sure|only ever|please keep|prefer|avoid"
    r"|under no circumstances|sempre|nunca|jamais|siempre|no (?:uses|toques|borres)"
    r"|não (?:use|faça|mexa|altere|apague|toque|remova|mude|crie|escreva)"
    r"|immer|nie(?:mals)?|toujours|ne (?:\w+ )?(?:pas|jamais))\b"
    r"|必ず|絶対|しないで|ください|必须|不要|始终",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decided|decision|we(?:'ll| will) (?:use|go|keep|take)|I(?:'ll| will) (?:use the|go with|take the)"
    r"|let's (?:use|go|keep|take)|going with|go with"
    r"|settled(?! down)|chose|chosen|agreed|opted for"
    r"|decidi(?:mos|u|do)?|decisão|decisión|entschieden|entscheidung|décidé|décision)\b"
    r"|決定|に決め|决定",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b"
    r"|\b[A-Z][A-Z0-9]+-\d+\b|(?<![\w&])#\d{1,7}\b|\bv\d+\.\d+(?:\.\d+)?(?:[-.]\w+)?\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b"
)
_HEADING = re.compile(r"^m(\d{1,12}) \((call of )?", re.MULTILINE)
_NAME = re.compile(r"[^\W\d]{3}")
_ODD_NAME = re.compile(r"\A--?\w|[A-Z]\w\w|[^\W\d].*[\d_.:()/-]")
_QUOTED = re.compile(r"`([^`\s]{2,60})`")


def facts_of(group: Group) -> tuple[Fact, ...]:
    """The facts in one group of the record, oldest first."""
    uses = [use_of(call) for call in group.first.calls]
    facts: list[Fact] = []
    for place, message in enumerate(group.messages):
        if message.role == "tool":
            use = uses[place - 1] if group.kind == "round" and 0 < place <= len(uses) else None
            facts += _result_facts(message, use, group.turn)
        elif group.kind not in {"system", "summary"}:
            facts += _said_facts(message, group)
    return tuple(facts)


def recalled(group: Group) -> tuple[int, ...]:
    """Places of the messages that the agent looked up again in this group, the best of each answer; a call's with its result."""
    found: list[int] = []
    for message in group.messages:
        if message.role == "tool" and message.name == "recall":
            for place, call in _HEADING.findall(message.text)[:_LOOKED_UP]:
                found += [int(place), int(place) + 1] if call else [int(place)]
    return tuple(found)


def _said_facts(message: Message, group: Group) -> Iterator[Fact]:
    said, shown, files = _words(message)
    at: At = (message.seq, "user" if message.role == "user" else "assistant", group.turn)
    less: At = (message.seq, "tool", group.turn)
    text = _scanned(said)
    for match in _SENTENCE.finditer(text):
        sentence = plain(match.group()).lstrip("-*# ")
        if len(sentence) < 8:
            continue
        if group.kind == "user" and _RULE.search(sentence):
            yield Fact("rule", _clip(sentence), "", *at)
        elif _DECISION.search(sentence):
            yield Fact("decision", _clip(sentence), "", *at)
    if message.role == "user":
        blocks = _EMPTY_LINE.split(text)
        shown += [block for block in blocks if block.count("\n") + 1 >= _PASTED]
        text = "\n".join(block for block in blocks if block.count("\n") + 1 < _PASTED)
    yield from _mentions(text, at, most=60)
    for match in _QUOTED.finditer(text):
        if not _is_path(match[1]) and (_NAME if message.role == "user" else _ODD_NAME).search(match[1]):
            yield Fact("identifier", match[1], "", *at)
    for piece in shown:  # somebody chose to show it: the files in it count as named, its figures do not count as stated
        yield from (
            f if f.kind != "path" else Fact("path", f.key, "", *at) for f in _mentions(_scanned(piece), less, 60)
        )
    for piece in files:
        yield from _mentions(_scanned(piece), less, most=24)


def _words(message: Message) -> tuple[str, list[str], list[str]]:
    """What somebody said, the code blocks and quoted lines in it, and the texts of files that came along."""
    content = (Text(message.content),) if isinstance(message.content, str) else message.content
    parts = [part for part in content if isinstance(part, Text)]
    said = "\n".join(part.name if part.name else part.text for part in parts)
    shown = ["\n".join(match.group() for match in _SHOWN.finditer(said))]
    return _SHOWN.sub("\n", said), [piece for piece in shown if piece], [part.text for part in parts if part.name]


def _result_facts(message: Message, use: Use | None, turn: int) -> Iterator[Fact]:
    if refused(message):
        return  # it never happened
    text = _scanned(message.text)
    did: At = (message.seq, "assistant", turn)
    at: At = (message.seq, "tool", turn)
    if use and use.target and not failed(message):
        if use.kind in {"read", "change"}:
            yield Fact("changed" if use.kind == "change" else "read", use.target, "", *did)
        elif use.kind == "fetch":
            yield Fact("url", use.target, "", *did)
    command = ""
    if use and use.kind == "run":
        command = _clip(plain(use.target))
        yield Fact("command", command, _outcome(message), *did)
        text = _TALLY.sub(" ", _EXIT_LINE.sub(" ", text))  # told with the command
    small = "" if use and use.kind in {"read", "search"} else text.lower()  # what a file says of errors is none
    errors = [line for line in text.splitlines() if _is_error(line)] if any(w in small for w in _TROUBLE) else []
    for line in [*errors[:3], *errors[3:][-3:]]:
        yield Fact("error", _clip(plain(line)), command, *did)
    source = use.target.rsplit("/", 1)[-1] if use and use.kind == "read" else ""
    echo = message.name == "recall"  # what the record says of itself was found where it was said
    yield from (f for f in _mentions(text, at, most=24, source=source) if not (echo and f.kind == "number"))


def _is_error(line: str) -> bool:
    """True for what a program says of its trouble; lines of source code that a listing shows are none."""
    return bool(_ERROR.search(line)) and not _LISTED.match(line)


def _outcome(result: Message) -> str:
    """How a command ended: its exit code and, where it ran tests, their tally."""
    code = exit_code(result.text)
    if code is None and not failed(result) and result.name == "shell":
        code = 0  # our own tool tells of every other code
    words = [f"exit {code}"] if code is not None else (["failed"] if failed(result) else [])
    tally = list(dict.fromkeys(plain(m.group()) for m in _TALLY.finditer(result.text[-600:])))
    return ", ".join([*words, *tally[-4:]])


def _mentions(text: str, at: At, most: int, source: str = "") -> Iterator[Fact]:
    """Addresses, paths, numbers and identifiers. Only words and lines that may hold one are looked at closely."""
    if "://" in text:
        for match in _some(_URL, text, most):
            yield Fact("url", match.group().rstrip(".,;:"), "", *at)
        text = _URL.sub(" ", text)
    words = dict.fromkeys(text.split())
    for match in _some(_PATH, " ".join(w for w in words if "/" in w or "." in w), PATHS if at[1] == "tool" else most):
        path = match.group().rstrip(".")
        if _is_path(path):
            yield Fact("path", path, "", *at)
    lines = [_PLACED.sub("", line) for line in text.splitlines()] if at[1] == "tool" else text.splitlines()
    yield from _numbers("\n".join(line for line in lines if _DIGIT.search(line)), at, most, source)
    for match in _some(_IDENTIFIER, " ".join(w for w in words if _ODD.search(w)), most):
        yield Fact("identifier", match.group(), "", *at)


def _numbers(text: str, at: At, most: int, source: str) -> Iterator[Fact]:
    named: set[int] = set()
    for match in _some(_NAMED, text, most):
        named.add(match.start(2))
        if match[1].rsplit(".", 1)[-1] in _ENDINGS or match[1] in _PLACING:
            continue  # a place in a file, not an amount
        label = f"{match[1]} ({source})" if source else match[1]
        yield Fact("number", label, plain(match[2]), *at)
    for match in _some(_NUMBER, text, most):
        if match.start() not in named:
            yield Fact("number", _in_context(text, match), "", *at)


def _some(pattern: re.Pattern[str], text: str, most: int) -> list[re.Match[str]]:
    """The first and the last matches: what stands in the middle of a long output matters least."""
    found = list(pattern.finditer(text))
    return found if len(found) <= most else [*found[: most // 2], *found[-(most - most // 2) :]]


def _in_context(text: str, match: re.Match[str]) -> str:
    begin = max(0, match.start() - 60)
    whole = _LAST_WORD.search(text, max(0, begin - 120), begin)  # the first word whole, such as a long path
    line = _BREAK.split(text[whole.start() if whole else begin : match.start()])[-1]
    return " ".join([*_WORDS.findall(line)[-4:], plain(match.group())])


def _is_path(text: str) -> bool:
    if "/" in text:
        if _RATE.match(text):
            return False
        head = text.lstrip("~./")
        return (
            len(text) > 3
            and not head.replace("/", "").replace(".", "").isdigit()
            and (text.count("/") > 1 or "." in head or text[0] in "~./")
        )
    return text.rsplit(".", 1)[-1] in _ENDINGS


def _scanned(text: str) -> str:
    if len(text) > _SCANNED * 3 // 2:  # cut between words: half a path or a number would be a false one
        text = f"{_WHOLE_HEAD.sub('', text[:_SCANNED])}\n{_WHOLE_TAIL.sub('', text[-_SCANNED // 2 :])}"
    return clean(text) if "\x1b" in text else text


def _clip(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + CUT


def plain(text: str) -> str:
    """Text in one line, single spaces."""
    return " ".join(text.split())
