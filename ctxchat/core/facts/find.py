"""Finding exact facts in messages: rules and decisions that somebody said, files and commands with what came of them, symbols.

Only what happened counts: a call that failed, was refused or was stopped did nothing, and what a listing, a log or a quotation
shows was said by nobody. Patterns and nothing else; what is kept of the facts is decided in `collect`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ctxchat.core.expressions import expression
from ctxchat.core.messages import Group, Message, Text, ToolCall
from ctxchat.core.record import Fact, Speaker
from ctxchat.core.sanitize import clean
from ctxchat.core.tooluse import (
    BARE,
    Use,
    command_line,
    exchanges,
    exit_code,
    failed,
    patch_in,
    patched,
    refused,
    use_of,
)

_LONG = 240
"""Characters of a sentence, an error or a command that are kept."""

CUT = "…"
"""The end of a sentence, an error or a command that is longer than what is kept of it."""

At = tuple[int, Speaker, int]
"""Where a fact was met: the message's place, who brought it up, the turn."""

SYMBOLS = 400
"""Symbols that are taken from one call or one message at most, those that stand there most often."""

USED = 60
"""Names that a file uses more than once, which are taken of one reading of it at most."""

_LOOKED_UP = 3
"""Messages of one answer of recall that count as looked up."""

_SCANNED = 8_000
"""Characters at the head of a message that are looked through; half as many at its tail."""

_WRITTEN = 60_000
"""Characters of what a call writes or reads that are looked through for symbols."""

_ENDINGS = frozenset(
    re.findall(
        r"\w+",
        "py pyi js jsx ts tsx mjs go rs c h cc cpp hpp java kt rb php sh bash zsh sql md rst txt json jsonl toml yaml yml "
        "ini cfg conf env lock csv tsv html css scss xml svg png jpg jpeg gif pdf ipynb log proto tf vue swift cs lua pl "
        "ps1 bat diff patch db zip gz tar mk gradle",
    )
)
_PATH = expression(
    r"(?<![\w/.:@~+\\-])(?:~|\.{1,2}|[\w@.+-]+)?(?:/[\w@.+-]+)+/?"
    r"|(?<![\w/.\\-])[\w-]+(?:\.[\w-]+)*\.[a-z]{1,5}(?![\w/.(])"
)
_SUBJECT = expression(
    r"(?!(?:the|this|that|these|those|its?|it's|are|was|were|has|had|have|and|but|for|from|with|into|now|only|just|all|about|also|to|"
    r"why|you|your|do|dude|instead|it's|our|one|not|than|then|too|down|reduced|saved|removed|added|changed|set|use|using|small|like|over|under|more|less|"
    r"first|last|next|each|every|another|around|lines?|files?|because|will|would|can|could|should|still|there|here|when|what|which|who|how|so|if|as|at|by|in|is|of|on|or|an)\b)"
    r"[/~.]*[^\W\d_][\w/@.'’-]+[^\W\d_][\w()]*",
    re.IGNORECASE,
)
"""A word that tells what a number is about."""
_ABOVE = expression(
    r"^[ \t#*-]*[`*]*([A-Za-z][\w./-]{1,40})[`*]*:[`*]*[ \t]*\n(?:[ \t]+[^\n]*\n|[-*][^\n]*\n)*\Z", re.MULTILINE
)
"""A line of one name, with the lines that stand under it."""
_URL = expression(r"\b(?:https?|wss?|ftp|ssh|git|postgres(?:ql)?|mysql|redis|amqp|file)://[^\s<>\"'`)\]}]+")
_UNIT = (
    r"%|‰|°C|°F|€|(?:ms|µs|us|ns|s|secs?|seconds?|mins?|minutes?|h|hours?|days?|weeks?|months?|years?"
    r"|[kKMGT]i?B(?:/s)?|[kMG]bit/s|[kMG]bps|bytes?|B|px|[kMG]?Hz|tokens?|rows?|records?|tests?|passed|failed|skipped"
    r"|files?|lines?|match(?:es)?|results?|hits?|characters?|chars?|words?|bits?|requests?|req/s|rps|qps|users?|items?|errors?|warnings?|commits?|cores?|threads?|workers?|retries"
    r"|attempts?|connections?|replicas?|pages?|points?|USD|EUR|GBP|dollars?|euros?|kg|mg|km|cm|mm|kWh|W|V|x|fps|cents?"
    r"|vCPUs?|CPUs?|GPUs?|epochs?|steps?|samples?|messages?|partitions?|shards?)(?![\w/])"
)
_AMOUNT = r"[+-]?\d(?:[\d_,.]*\d)?"
_NUMBER = expression(
    rf"(?<![\w.,])(?:[<>≤≥~≈]=?\s?)?(?:\d+(?:\.\d+)?\s?[-–]\s?)?(?:[$€£]\s?{_AMOUNT}[kKM]?\b|{_AMOUNT}\s?(?:{_UNIT}))"
)
_VALUE = rf"(?:#[0-9A-Fa-f]{{6}}(?:[0-9A-Fa-f]{{2}})?|{_AMOUNT}(?:\s?(?:{_UNIT}))?)"
_NAMED = expression(
    rf"(?<![\w.])([A-Za-z_][\w.-]{{1,40}})`?[ \t]*[:=][ \t]*`?(?:{_VALUE}`?[ \t]*(?:→|->)[ \t]*`?)?({_VALUE})(?![\w:/.-]\d|\w)"
)
"""`timeout = 30`, `gray`: `#808080`, and the new value of "gray: 242 → #6c6c6c"."""
_SET = expression(
    r"\b(?:set|change|raise|lower|increase|decrease|reduce|bump|update)d? (?:the |our )?`?([A-Za-z_][\w.-]{1,40})`? "
    rf"(?:from \S+(?: \S+)? )?to `?({_VALUE})(?![\w:/.-]\d|\w)",
    re.IGNORECASE,
)
"""`set timeout to 30 s`."""
_TALLY = expression(r"(?<![\w.])\d+ (?:passed|failed|skipped|errors?|warnings?)\b")
_SYMBOL = expression(
    r"(?<![\w$#])(?:[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+"
    r"|_?[A-Za-z]\w*_\w+|[A-Z]{2}[A-Z0-9]{2,})(?![\w$])"
)
"""`applyTheme`, `ThemeBg`, `keep_recent`, `ANSI`: what programs name, and words do not look like."""
_ESCAPE = expression(r"\\[nrt](?=[A-Z\d\s])")
"""A line end or a tab as a program writes it, which is no part of the word behind it."""
_SHOUT = expression(r"[A-Z]+")
_NO_NAME = expression(r"(?:[A-Za-z_]*\d){5}|[a-z]+[A-Z]\Z")
"""An id that a machine made, a date, a slip of the shift key: nobody works with it by name."""
_IN_CODE = expression(r"\s*=|[(\[]|\.\w+\(")
_OF_THE_LANGUAGE = frozenset(
    re.findall(
        r"\w+",
        "indexOf lastIndexOf toFixed toString startsWith endsWith padEnd padStart localeCompare toLowerCase toUpperCase "
        "setTimeout clearTimeout setInterval clearInterval setImmediate parseInt parseFloat isNaN isArray hasOwnProperty "
        "forEach findIndex flatMap charCodeAt charAt codePointAt fromCharCode replaceAll addEventListener "
        "removeEventListener querySelector getElementById innerHTML JSON Math ReturnType "
        "readFileSync writeFileSync existsSync mkdirSync statSync child_process strictEqual deepEqual "
        "TypeError ValueError KeyError IndexError RuntimeError AttributeError FileNotFoundError NotImplementedError OSError "
        "NamedTuple TypedDict TypeVar TypeAlias ClassVar ParamSpec TYPE_CHECKING DEVNULL CalledProcessError TimeoutExpired "
        "StopIteration ImportError ModuleNotFoundError ReferenceError SyntaxError "
        "__init__ __name__ __main__ __file__ __future__ __repr__ __str__ __eq__ __len__ __enter__ __exit__ __all__ "
        "beforeEach afterEach beforeAll afterAll TypeScript JavaScript GitHub GitLab macOS PostgreSQL MySQL SQLite OpenAI "
        "TODO FIXME NOTE XXX HTTP HTTPS HTML README CHANGELOG LICENSE UTF8 YYYYMMDD",
    )
)
"""What every program of a language names."""
_LOOKS = expression(
    r"(?:\S+/)?(?:ls|cat|head|tail|grep|rg|find|sed -n|wc|which|echo|pwd|tree|file|stat|awk|git (?:status|log|diff|show))\b"
)
"""A command that only looks around: nothing was done, and its troubles are no errors of the work."""
_BEGINNING = r"^(?:\s*\d+[\t:|│→])?[ \t]*"
_BLOCK = expression(_BEGINNING + r"```.*?" + _BEGINNING + r"```[ \t]*$", re.MULTILINE | re.DOTALL)
_EXAMPLE = expression(r"(?:#|//|--) *(?:WRONG|CORRECT|RIGHT|BAD|GOOD|Bad|Good|Wrong|Correct)\b|[❌✅]")
"""What a block of a guide has that shows how something is done and how it is not: nothing of this program."""
_DEFINED = expression(
    _BEGINNING + r"(?:(?:export|default|declare|abstract|async|pub|unsafe) )*"
    r"(?:(?P<whole>(?:def|class|function\*?|fn|func|interface|struct|enum|trait)\s+)|(?:type|const|let|var|#define)\s+)"
    r"(?P<name>[A-Za-z_$][\w$]{2,100})(?![\w$])"
    r"|"
    + _BEGINNING
    + r"(?:(?:private|public|protected|static|async|override) )+(?P<method>[A-Za-z_$][\w$]{2,100})(?=[(<])",
    re.MULTILINE,
)
"""A definition at the beginning of a line, and whether it is one of a function or a class; others may be any local variable."""
_SHOWN = expression(r"^ *(`{3,}|~{3,}).*?(?:^ *\1[ \t]*$|\Z)|^ {0,3}>[^\n]*", re.MULTILINE | re.DOTALL)
_PASTED = 15
"""So many lines without an empty one between are a log or a listing, not somebody's words; a rule in them is one all the same."""

_TRACE = expression(
    r"^[ \t]*(?:Traceback \(most recent|File \"[^\"\n]+\", line \d|at [\w.$<>\[\] ]+ ?\(?[^\s()]+:\d+|Caused by:|goroutine \d"
    r"|(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Warning|Panic)\b(?:\[\w+\])?:|(?:[Ee]rror|warning|fatal|panic)(?:\[\w+\])?:"
    r"|\S+:\d+(?::\d+)?:? +(?:error|warning|note)\b|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[(?:ERROR|WARN|INFO|DEBUG)\]|npm ERR!)[^\n]*"
    r"|^(?: {4,}|\t)[^\n]*$|^[^\n]*\{\"\w+\":[^\n]*$",
    re.MULTILINE,
)
"""Lines of a pasted error, a stack trace or a log: nobody's words. Their paths are looked at all the same."""
_OUTPUT = expression(
    r"^(?:\S*[➜❯] |[$%#>] \w|\S+@\S+[:~]\S*[$#%] |> \S+@\d|\s*\{?\"\w+\":)|\{\"\w+\":|^\s+at \S+ \(|\bcode: '\w+'",
    re.MULTILINE,
)
"""What a line in a pasted terminal, log or JSON begins with."""
_EMPTY_LINE = expression(r"\n[ \t]*\n")
_BREAK = expression(r"[\n,;|]|[.!?:] ")
_WHOLE_HEAD = expression(r"(?:\n[^\n]{0,200}|\S{0,200})\Z")
_WHOLE_TAIL = expression(r"\A(?:[^\n]{0,200}\n|\S{0,200})")
_LAST_WORD = expression(r"\S{0,120}\Z")
_WORDS = expression(r"[\w/@.'’-]*\w")
_COMMENT = expression(r"^\s*#.*$", re.MULTILINE)
_GOES_ON = expression(r"(?:\b(?:do|then|else)|[({|&;\\])\Z")
"""The end of a line of a command that the next one belongs to."""
_TROUBLE = ("error", "exception", "panic", "fatal", "fail", "not found", "no such", "denied", "fault")
_ERROR = expression(
    r"(?:Error|Exception|Panic|panicked)\b|\b(?:error|fatal|panic|ERROR|FATAL|FAILED|Failed)\b"
    r"|command not found|No such file|Permission denied|Segmentation fault"
)
_LISTED = expression(r"\s*\d+\s?[:|│→\t]|\s*\d+\s{2,}|\s*(?:raise|except|throw|catch|import|from|#|//|/?\*)\b|\s*#")
_SLIP = expression(
    r"(?:unknown|unrecogni[sz]ed|invalid|illegal|unexpected|no such) (?:command[ -]line )?(?:option|argument|flag|switch)",
    re.IGNORECASE,
)
"""A command was called in a wrong way, which is no error of the work."""
_NO_TROUBLE = expression(
    r"\b0 (?:errors?|remaining|failed|failures)\b|\"(?:success|ok)\": ?true|\A\s*[-*] \*\*", re.IGNORECASE
)
"""A line that has the word and tells of none."""
_NOTHING_FOUND = expression(
    r"\s*(?:\[?\(?no (?:\w+ )?(?:match|file|result|hit|output)|(?:found )?0 )|\s*\Z", re.IGNORECASE
)
_FOLDER = expression(r"(?:[a-z0-9_.-]*[a-z][a-z0-9_.-]*/)+[a-z0-9_.-]*")
"""A relative folder; with capitals or no letters it is more often one thing or another than a place."""
_SLASHED = expression(r"\w[\w-]*(?:/[\w-]+)+")
"""A folder, or alternatives: `src/core/facts`, and "comments/operators"."""
_QUOTES = frozenset("`'\"")
_NO_FILE = expression(r"(?:\d[\d./]*\Z|(?:node|next|vue|nuxt|react|express|three|chart|d3|p5)\.js\Z)", re.IGNORECASE)
_QUOTED_PATH = expression(r"""(?P<mark>['"`])(?P<path>~?/[^'"`\n]{1,300}\.\w{1,5})(?P=mark)""")
_WORD = expression(r"[^\W\d_]{2}")
_RATE = expression(r"\d[\d.,]*[A-Za-z]*/\w+$")
_SENTENCE = expression(r"[^.!?。！？\n]+(?:[.!?](?=\S)[^.!?。！？\n]*)*[.!?。！？]?")
_RULE = expression(
    r"(?:\A|[,;:(–—-] ?|\b(?:please|and|but|also|so|ok|okay|then) )(?:do not|don't|dont|avoid|prefer|use only|only use)\b"
    r"|\b(?:always|never(?! ?mind)|must(?:n't)?|from now on|make sure|only ever|please keep"
    r"|under no circumstances|sempre|nunca|jamais|siempre|no (?:uses|toques|borres)"
    r"|não (?:use|faça|mexa|altere|apague|toque|remova|mude|crie|escreva)"
    r"|immer|nie(?:mals)?|toujours|ne (?:\w+ )?(?:pas|jamais))\b"
    r"|必ず|絶対|しないで|ください|必须|不要|始终",
    re.IGNORECASE,
)
_DECISION = expression(
    r"\b(?:decided|decision(?= (?:is|was|to|that|made|taken)\b|s?:)"
    r"|we(?:'ll| will) (?:use|go|keep|take)|I(?:'ll| will) (?:use the|go with|take the)"
    r"|let's (?:use|go|keep|take)|going with|go with"
    r"|settled(?! down)|chose|chosen|agreed|opted for"
    r"|decidi(?:mos|u|do)?|decisão|decisión|entschieden|entscheidung|décidé|décision)\b"
    r"|決定|に決め|决定",
    re.IGNORECASE,
)
_STEP = expression(
    r"\b(?:let's|I'?(?:ll| will)|going) .*\bto (?:see|find|locate|check|look|search|open|read|list|inspect|understand)\b",
    re.IGNORECASE,
)
"""The next step, which decides nothing."""
_ABOUT_TO = expression(r"\b(?:let me|let's|I(?:'ll| will| need| have|'ve)|now \w+ (?:all|the))\b", re.IGNORECASE)
"""What the agent says of its next call; how many it will read tells nothing."""
_DIGIT = expression(r"\d")
_IDENTIFIER = expression(
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b"
    r"|\b[A-Z][A-Z0-9]+-\d+\b|(?<![\w&])#\d{2,5}\b|\bv\d+\.\d+(?:\.\d+)?(?:[-.]\w+)?\b"
)
_HEADING = expression(r"^m(\d{1,12}) \((call of )?", re.MULTILINE)
_MARKED = expression(r"`[^`]*`")
_CALLED = expression(r"`(?:[\w$]+\.)*([A-Za-z_$][\w$]{2,60})\(\)`|`(--?[a-z][\w-]+)`")
"""A function or an option, in code marks."""


def facts_of(group: Group) -> tuple[Fact, ...]:
    """The facts in one group of the record, oldest first."""
    facts: list[Fact] = []
    results = {m.call_id: m for m in group.messages if m.role == "tool"} if group.kind == "round" else {}
    if group.kind not in {"system", "summary", "stray", "note"} and group.first.role != "tool":
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
    if message.role == "user":
        text = "\n\n".join(block for block in _EMPTY_LINE.split(text) if not _OUTPUT.search(block))
    for match in _SENTENCE.finditer(text):
        sentence = plain(match.group()).lstrip("-*# ")
        if len(sentence) < 8:
            continue
        if group.kind == "user" and _RULE.search(sentence) and not sentence.endswith(("?", "？")):
            yield Fact("rule", _clip(sentence), "", *at)
        elif _DECISION.search(sentence) and _decides(sentence):
            yield Fact("decision", _clip(sentence), "", *at)
    text = _pastes_left_out(text, message)
    if "://" in whole:
        for match in _some(_URL, text, 20):
            yield Fact("url", match.group().rstrip(".,;:"), "", *at)
        text, whole = _URL.sub(" ", text), _URL.sub(" ", whole)
    for path in _paths(_pastes_left_out(whole, message), by_person=message.role == "user"):
        yield Fact("path", path, "", *at)
    bare = _PATH.sub(" ", text)
    if _DIGIT.search(text):
        yield from _numbers(text, at)
        for match in _some(_IDENTIFIER, bare, 20):
            yield Fact("identifier", match.group(), "", *at)
    quoted = (match[1] or match[2] for match in _CALLED.finditer(text))
    named = (symbol for symbol in _symbols(bare) if not _SHOUT.fullmatch(symbol))
    for symbol in dict.fromkeys([*quoted, *named]):
        yield Fact("symbol", symbol, "", *at)


def _decides(sentence: str) -> bool:
    """The word that tells of a decision stands in the sentence itself, not in code marks or in the name of a file."""
    return bool(_DECISION.search(_PATH.sub(" ", _MARKED.sub(" ", sentence)))) and not _STEP.search(sentence)


def _paths(text: str, *, by_person: bool) -> Iterator[str]:
    """Files and folders that a text names. A person may put a mark in front, and none around; of an agent `a/b/c` without marks
    around is a list."""
    for match in _some(_QUOTED_PATH, text, 20):
        yield match["path"]
    for match in _some(_PATH, _QUOTED_PATH.sub(" ", text), 60):
        path = match.group().rstrip(".")
        path = path.removeprefix("@") if by_person else path
        if _is_path(path) and (by_person or not _SLASHED.fullmatch(path) or _QUOTES.issuperset(_around(text, match))):
            yield path


def _around(text: str, match: re.Match[str]) -> str:
    """The characters before and after."""
    return (text[match.start() - 1 : match.start()] or " ") + (text[match.end() : match.end() + 1] or " ")


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
    for match in sorted([*_some(_NAMED, text, 30), *_some(_SET, text, 30)], key=re.Match[str].start):
        named.update(range(*match.span()))
        if match[1].rsplit(".", 1)[-1] not in _ENDINGS:  # there it is a place in a file, not an amount
            whose = _whose(text, match) if match.re.pattern == _NAMED.pattern else ""
            yield Fact("number", whose + match[1], plain(match[2]), *at)
    for match in _some(_NUMBER, text, 30):
        words = [] if match.start() in named else _words_before(text, match)
        if any(map(_SUBJECT.fullmatch, words)) and not (at[1] == "assistant" and _ABOUT_TO.search(" ".join(words))):
            yield Fact("number", " ".join([*words, plain(match.group())]), "", *at)


def _whose(text: str, match: re.Match[str]) -> str:
    """What a value belongs to, in front of its name: the words before it, or the line that it stands under (`staging:`). A name
    that only a program gives says enough by itself."""
    if _SYMBOL.fullmatch(match[1]):
        return ""
    start = text.rfind("\n", 0, match.start()) + 1
    words = [w for w in text[start : match.start()].replace("`", " ").split()[-2:] if _SUBJECT.fullmatch(w)]
    if words or not (above := _ABOVE.search(text, max(0, start - 600), start)):
        return "".join(f"{word} " for word in words)
    return f"{above[1]} "


# ── what was done ──


def _done_facts(call: ToolCall, result: Message, group: Group) -> Iterator[Fact]:
    use = use_of(call)
    at: At = (result.seq, "assistant", group.turn)
    if refused(result) or result.synthetic or (use.kind != "run" and failed(result)):
        return  # it never happened, or changed nothing
    patch = [change.now or change.path for change in patched(call) if change.kind != "delete"]
    yield from (Fact("changed", path, "", *at) for path in patch)
    match use:
        case Use("change" | "read" as kind, path):
            yield Fact("changed" if kind == "change" else "read", path, "", *at)
        case Use("run", command):
            yield from _command_facts(command, result, at)
        case Use("fetch", address):
            yield Fact("url", address, "", *at)
        case _:
            pass
    where = use.target if use.kind in {"change", "read"} else patch[0] if len(patch) == 1 else ""
    for symbol in _symbols(_wanted(call, use, result)):
        yield Fact("symbol", symbol, where, *at)
    if use.kind == "read":  # what stands there is not what somebody worked with, but its names may be asked for
        for symbol in _names_read(result.text[:_WRITTEN]):
            yield Fact("symbol", symbol, where, result.seq, "tool", group.turn)


def defined(text: str) -> Iterator[str]:
    """The functions, classes and values that a text defines."""
    for match in _some(_DEFINED, text, SYMBOLS):
        name = match["method"] or match["name"]
        if name not in _OF_THE_LANGUAGE and (match["whole"] or match["method"] or _SYMBOL.fullmatch(name)):
            yield name


def _names_read(text: str) -> Iterator[str]:
    """What a file defines, and what it names more than once; examples of right and wrong aside."""
    if "```" in text:
        text = _BLOCK.sub(lambda block: "" if _EXAMPLE.search(block.group()) else block.group(), text)
    yield from defined(text)
    counts = Counter(match.group() for match in _SYMBOL.finditer(text) if _names(match, text))
    yield from (name for name, times in counts.most_common(USED) if times > 1)


def _command_facts(command: str, result: Message, at: At) -> Iterator[Fact]:
    line = command_line(command)
    if _LOOKS.match(line.rest.rpartition("&& ")[2]):
        return
    outcome = _outcome(result, masked=line.masked)
    rest = _in_one_line(line.rest)
    key = _clip(f"cd {line.folder} && {rest}" if line.folder else rest)
    text = _scanned(result.text)
    errors: list[str] = []
    lower = "" if outcome.startswith("exit 0") else text.lower()
    if any(word in lower for word in _TROUBLE):
        errors = [
            plain(said) for said in text.splitlines() if _tells(said)
        ]  # one that ended well says of errors what it likes
    yield Fact("command", key, outcome or ("with errors" if errors else ""), *at)
    for error in [*errors[:2], *errors[2:][-1:]]:
        yield Fact("error", _clip(error), key, *at)


def _in_one_line(command: str) -> str:
    """A command of several lines in one, without its comments."""
    lines = [line.strip() for line in _COMMENT.sub("", command).splitlines()]
    told = ""
    for line in (line for line in lines if line and not line.startswith("#")):
        told += (" " if not told or _GOES_ON.search(told) else "; ") + line.rstrip("\\")
    return plain(told) or plain(command)


def _tells(line: str) -> bool:
    return bool(_ERROR.search(line)) and not any(
        (_LISTED.match(line), BARE.fullmatch(line), _SLIP.search(line), _NO_TROUBLE.search(line))
    )


def _outcome(result: Message, *, masked: bool) -> str:
    """How a command ended: its exit code, where that is its own, and the tally of tests."""
    code, wrong = exit_code(result.text), failed(result)
    if masked and code in {0, 1}:
        code, wrong = None, False  # of what only shows the output: `grep` ends with 1 where no error is left
    elif code is None and not wrong and result.name == "shell":
        code = 0  # our own tool tells of every other code
    words = [f"exit {code}"] if code is not None else (["failed"] if wrong else [])
    tally = list(dict.fromkeys(plain(m.group()) for m in _TALLY.finditer(result.text[-600:])))
    return ", ".join([*words, *tally[-4:]])


def _wanted(call: ToolCall, use: Use, result: Message) -> str:
    """What a call puts into a file or looks for: the texts of its arguments, its command or path aside."""
    if use.kind == "search":
        return "" if _NOTHING_FOUND.match(result.text) else use.target[:_WRITTEN]
    if patch := patch_in(call):
        return "\n".join(line[1:] for line in patch.splitlines() if line.startswith("+"))[:_WRITTEN]
    return "\n".join(new for _, new in exchanges(call))[:_WRITTEN] if use.kind == "change" else ""


def _symbols(text: str) -> list[str]:
    """What programs name, each once, in their order; those that stand there most often where there are too many."""
    text = _ESCAPE.sub(" ", text)
    counts = Counter(match.group() for match in _SYMBOL.finditer(text) if _names(match, text))
    kept = {symbol for symbol, _ in counts.most_common(SYMBOLS)}
    return [symbol for symbol in counts if symbol in kept]


def _names(match: re.Match[str], text: str) -> bool:
    """A word that looks like a program's names something of this program; one in capitals where it stands in code."""
    word = match.group()
    if word in _OF_THE_LANGUAGE or _NO_NAME.match(word):
        return False
    in_code = text[match.start() - 1 : match.start()] in {".", "{"} or _IN_CODE.match(text, match.end())
    return not _SHOUT.fullmatch(word) or bool(in_code)


def _some(pattern: re.Pattern[str], text: str, most: int) -> list[re.Match[str]]:
    """The first and the last matches: what stands in the middle of a long text matters least."""
    found = list(pattern.finditer(text))
    return found if len(found) <= most else [*found[: most // 2], *found[-(most - most // 2) :]]


def _words_before(text: str, match: re.Match[str]) -> list[str]:
    begin = max(0, match.start() - 80)
    whole = _LAST_WORD.search(text, max(0, begin - 120), begin)  # the first word whole, such as a long path
    line = _BREAK.split(text[whole.start() if whole else begin : match.start()])[-1]
    return _WORDS.findall(line)[-6:]


def _is_path(text: str) -> bool:
    folders, _, name = text.rstrip("/").rpartition("/")
    if any("." in part[1:] and part.rpartition(".")[2] in _ENDINGS for part in folders.split("/")):
        return False  # `a.md/b.md` are two
    if "." in name[1:] and "@" not in name:
        return (
            (name.rpartition(".")[2] in _ENDINGS or "/" in text) and not _RATE.match(text) and not _NO_FILE.match(text)
        )
    folder = text.strip("/")
    if text.startswith(("/", "~/", "./", "../")):
        return _WORD.search(folder) is not None and (
            text.count("/") > 1 or text[0] != "/"
        )  # a command such as /export is none
    return _FOLDER.fullmatch(text) is not None and (text.count("/") > 1 or text.endswith("/"))


def _scanned(text: str) -> str:
    if len(text) > _SCANNED * 3 // 2:  # cut between words: half a path or a number would be a false one
        text = f"{_WHOLE_HEAD.sub('', text[:_SCANNED])}\n{_WHOLE_TAIL.sub('', text[-_SCANNED // 2 :])}"
    return clean(text) if "\x1b" in text else text


def _clip(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + CUT
