"""Finding exact facts in messages: rules and decisions that somebody said, files and commands with what came of them, symbols.

Only what happened counts: a call that failed, was refused or was stopped did nothing, and what a listing, a log or a quotation
shows was said by nobody. Patterns and nothing else; what is kept of the facts is decided in `collect`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.messages import Group, Message, Text, ToolCall
from ctxchat.core.record import Fact, Speaker
from ctxchat.core.sanitize import clean
from ctxchat.core.tooluse import BARE, Use, exit_code, failed, refused, use_of

_LONG = 240
"""Characters of a sentence, an error or a command that are kept."""

CUT = "…"
"""The end of a sentence, an error or a command that is longer than what is kept of it."""

At = tuple[int, Speaker, int]
"""Where a fact was met: the message's place, who brought it up, the turn."""

SYMBOLS = 120
"""Symbols that are taken from one call or one message at most, those that stand there most often."""

_LOOKED_UP = 3
"""Messages of one answer of recall that count as looked up."""

_SCANNED = 8_000
"""Characters at the head of a message that are looked through; half as many at its tail."""

_WRITTEN = 60_000
"""Characters of what a call writes that are looked through for symbols."""

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
_VALUE = rf"(?:#[0-9A-Fa-f]{{6}}(?:[0-9A-Fa-f]{{2}})?|{_AMOUNT}(?:\s?(?:{_UNIT}))?)"
_NAMED = re.compile(
    rf"(?<![\w.])([A-Za-z_][\w.-]{{1,40}})`?[ \t]*[:=][ \t]*`?(?:{_VALUE}`?[ \t]*(?:→|->)[ \t]*`?)?({_VALUE})(?![\w:/.-]\d|\w)"
)
"""`timeout = 30`, `gray`: `#808080`, and the new value of "gray: 242 → #6c6c6c"."""
_TALLY = re.compile(r"(?<![\w.])\d+ (?:passed|failed|skipped|errors?|warnings?)\b")
_SYMBOL = re.compile(
    r"(?<![\w$])(?:[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+"
    r"|_?[A-Za-z]\w*_\w+|[A-Z]{2}[A-Z0-9]{2,})(?![\w$])"
)
"""`applyTheme`, `ThemeBg`, `keep_recent`, `ANSI`: what programs name, and words do not look like."""
_ESCAPE = re.compile(r"\\[nrt](?=[A-Z\d\s])")
"""A line end or a tab as a program writes it, which is no part of the word behind it."""
_SHOUT = re.compile(r"[A-Z]+")
_LOOKS = re.compile(
    r"(?:\S+/)?(?:ls|cat|head|tail|grep|rg|find|sed -n|wc|which|echo|pwd|tree|file|stat|awk|git (?:status|log|diff|show))\b"
)
"""A command that only looks around: nothing was done, and its troubles are no errors of the work."""
_DEFINED = re.compile(
    r"(?:\b(?:def|class|function|fn|func|interface|struct|enum|trait|type|const|let|var|module)\s+|^\s*#define\s+)"
    r"([A-Za-z_$][\w$]{2,60})",
    re.MULTILINE,
)
_SHOWN = re.compile(r"^ *(`{3,}|~{3,}).*?(?:^ *\1[ \t]*$|\Z)|^ {0,3}>[^\n]*", re.MULTILINE | re.DOTALL)
_PASTED = 15
"""So many lines without an empty one between are a log or a listing, not somebody's words; a rule in them is one all the same."""

_TRACE = re.compile(
    r"^[ \t]*(?:Traceback \(most recent|File \"[^\"\n]+\", line \d|at [\w.$<>\[\] ]+ ?\(?[^\s()]+:\d+|Caused by:|goroutine \d"
    r"|(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Warning|Panic)\b(?:\[\w+\])?:|(?:error|warning|fatal|panic)(?:\[\w+\])?:"
    r"|\S+:\d+(?::\d+)?:? +(?:error|warning|note)\b|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[(?:ERROR|WARN|INFO|DEBUG)\]|npm ERR!)[^\n]*"
    r"|^(?: {4,}|\t)[^\n]*$",
    re.MULTILINE,
)
"""Lines of a pasted error, a stack trace or a log: nobody's words. Their paths are looked at all the same."""
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
_BREAK = re.compile(r"[\n,;|]|[.!?:] ")
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
    r"(?:\A|[,;:(–—-] ?|\b(?:please|and|but|also|so|ok|okay|then) )(?:do not|don't|dont|avoid|prefer|use only|only use)\b"
    r"|\b(?:always|never|must(?:n't)?|from now on|make sure|only ever|please keep"
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
    r"|\b[A-Z][A-Z0-9]+-\d+\b|(?<![\w&])#\d{1,7}\b|\bv\d+\.\d+(?:\.\d+)?(?:[-.]\w+)?\b"
)
_HEADING = re.compile(r"^m(\d{1,12}) \((call of )?", re.MULTILINE)
_CALLED = re.compile(r"`(?:[\w$]+\.)*([A-Za-z_$][\w$]{2,60})\(\)`|`(--?[a-z][\w-]+)`")
"""A function or an option, in code marks."""


def facts_of(group: Group) -> tuple[Fact, ...]:
    """The facts in one group of the record, oldest first."""
    facts: list[Fact] = []
    results = {m.call_id: m for m in group.messages if m.role == "tool"} if group.kind == "round" else {}
    if group.kind not in {"system", "summary", "stray"} and group.first.role != "tool":
        facts += _said_facts(group.first, group)
    for call in group.first.calls if group.kind == "round" else ():
        if (result := results.get(call.id)) is not None:
            facts += _done_facts(call, result, group)
    return tuple(facts)


def recalled(group: Group) -> tuple[int, ...]:
    """Places of the messages that the agent looked up again in this group, the best of each answer; a call's with its result."""
    found: list[int] = []
    for message in group.messages:
        if message.role == "tool" and message.name == "recall":
            for place, call in _HEADING.findall(message.text)[:_LOOKED_UP]:
                found += [int(place), int(place) + 1] if call else [int(place)]
    return tuple(found)


def plain(text: str) -> str:
    """Text in one line, single spaces."""
    return " ".join(text.split())


# ── what somebody said ──


def _said_facts(message: Message, group: Group) -> Iterator[Fact]:
    at: At = (message.seq, "user" if message.role == "user" else "assistant", group.turn)
    whole = _scanned(_words(message))
    text = _TRACE.sub("", whole)
    for match in _SENTENCE.finditer(text):
        sentence = plain(match.group()).lstrip("-*# ")
        if len(sentence) < 8:
            continue
        if group.kind == "user" and _RULE.search(sentence) and not sentence.endswith(("?", "？")):
            yield Fact("rule", _clip(sentence), "", *at)
        elif _DECISION.search(sentence):
            yield Fact("decision", _clip(sentence), "", *at)
    text = _pastes_left_out(text, message)
    for match in _some(_URL, text, 20):
        yield Fact("url", match.group().rstrip(".,;:"), "", *at)
    text = _URL.sub(" ", text)
    for match in _some(_PATH, _pastes_left_out(_URL.sub(" ", whole), message), 60):
        if _is_path(path := match.group().rstrip(".")):
            yield Fact("path", path, "", *at)
    yield from _numbers(text, at)
    for match in _some(_IDENTIFIER, text, 20):
        yield Fact("identifier", match.group(), "", *at)
    quoted = (match[1] or match[2] for match in _CALLED.finditer(text))
    named = (symbol for symbol in _symbols(_PATH.sub(" ", text)) if not _SHOUT.fullmatch(symbol))
    for symbol in dict.fromkeys([*quoted, *named]):
        yield Fact("symbol", symbol, "", *at)


def _pastes_left_out(text: str, message: Message) -> str:
    """What a person wrote without the logs and listings in it."""
    if message.role != "user":
        return text
    return "\n".join(block for block in _EMPTY_LINE.split(text) if block.count("\n") + 1 < _PASTED)


def _words(message: Message) -> str:
    """What somebody said: without code blocks, quoted lines and the texts of files that came along."""
    content = (Text(message.content),) if isinstance(message.content, str) else message.content
    parts = (part for part in content if isinstance(part, Text))
    return _SHOWN.sub("\n", "\n".join(part.name if part.name else part.text for part in parts))


def _numbers(text: str, at: At) -> Iterator[Fact]:
    text = _ESCAPE.sub(" ", text)
    named: set[int] = set()
    for match in _some(_NAMED, text, 30):
        named.update(range(*match.span()))
        if match[1].rsplit(".", 1)[-1] not in _ENDINGS:  # there it is a place in a file, not an amount
            yield Fact("number", match[1], plain(match[2]), *at)
    for match in _some(_NUMBER, text, 30):
        if match.start() not in named:
            yield Fact("number", _in_context(text, match), "", *at)


# ── what was done ──


def _done_facts(call: ToolCall, result: Message, group: Group) -> Iterator[Fact]:
    use = use_of(call)
    at: At = (result.seq, "assistant", group.turn)
    if refused(result) or result.synthetic or (use.kind != "run" and failed(result)):
        return  # it never happened, or changed nothing
    match use:
        case Use("change" | "read" as kind, path):
            yield Fact("changed" if kind == "change" else "read", path, "", *at)
        case Use("run", command):
            yield from _command_facts(_clip(plain(command)), result, at)
        case Use("fetch", address):
            yield Fact("url", address, "", *at)
        case _:
            pass
    where = use.target if use.kind in {"change", "read"} else ""
    for symbol in _symbols(_wanted(call, use)):
        yield Fact("symbol", symbol, where, *at)
    if use.kind == "read":  # what stands there is not what somebody worked with, but its definitions may be asked for
        seen: At = (result.seq, "tool", group.turn)
        for match in _some(_DEFINED, _scanned(result.text), SYMBOLS):
            yield Fact("symbol", match[1], where, *seen)


def _command_facts(command: str, result: Message, at: At) -> Iterator[Fact]:
    if _LOOKS.match(command.rpartition("&& ")[2]):
        return
    outcome = _outcome(result)
    yield Fact("command", command, outcome, *at)
    text = _scanned(result.text)
    if outcome.startswith("exit 0") or not any(word in text.lower() for word in _TROUBLE):
        return  # a program that came to a good end says of errors what it likes
    errors = [plain(line) for line in text.splitlines() if _tells(line)]
    for line in [*errors[:2], *errors[2:][-1:]]:
        yield Fact("error", _clip(line), command, *at)


def _tells(line: str) -> bool:
    return bool(_ERROR.search(line)) and not _LISTED.match(line) and not BARE.fullmatch(line)


def _outcome(result: Message) -> str:
    """How a command ended: its exit code and, where it ran tests, their tally."""
    code = exit_code(result.text)
    if code is None and not failed(result) and result.name == "shell":
        code = 0  # our own tool tells of every other code
    words = [f"exit {code}"] if code is not None else (["failed"] if failed(result) else [])
    tally = list(dict.fromkeys(plain(m.group()) for m in _TALLY.finditer(result.text[-600:])))
    return ", ".join([*words, *tally[-4:]])


def _wanted(call: ToolCall, use: Use) -> str:
    """What a call puts into a file or looks for: the texts of its arguments, its command or path aside."""
    if use.kind == "search":
        return use.target[:_WRITTEN]
    fields = fields_of(call.arguments) or {} if use.kind == "change" else {}
    return "\n".join(v for v in fields.values() if isinstance(v, str) and v.strip() != use.target)[:_WRITTEN]


def _symbols(text: str) -> list[str]:
    """What programs name, each once, in their order; those that stand there most often where there are too many."""
    counts = Counter(match.group() for match in _SYMBOL.finditer(_ESCAPE.sub(" ", text)))
    kept = {symbol for symbol, _ in counts.most_common(SYMBOLS)}
    return [symbol for symbol in counts if symbol in kept]


def _some(pattern: re.Pattern[str], text: str, most: int) -> list[re.Match[str]]:
    """The first and the last matches: what stands in the middle of a long text matters least."""
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
            and (text.count("/") > 1 or "." in head or text[0] in "~.")  # a command such as /export is none
        )
    return text.rsplit(".", 1)[-1] in _ENDINGS


def _scanned(text: str) -> str:
    if len(text) > _SCANNED * 3 // 2:  # cut between words: half a path or a number would be a false one
        text = f"{_WHOLE_HEAD.sub('', text[:_SCANNED])}\n{_WHOLE_TAIL.sub('', text[-_SCANNED // 2 :])}"
    return clean(text) if "\x1b" in text else text


def _clip(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + CUT
