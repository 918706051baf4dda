"""Finds exact facts in messages: rules and decisions, files, commands and their outcomes, errors, numbers and names in code.

Only what happened counts: a call that failed or was refused did nothing, and text in a listing, a log or a quotation was said by
nobody. Uses patterns only, no model; `collect` decides which of the facts are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxchat.core.expressions import expression
from ctxchat.core.facts.error_lines import troubles
from ctxchat.core.facts.gone import FORBIDS
from ctxchat.core.facts.numbers import numbers
from ctxchat.core.facts.shared import At, asks, plain, some
from ctxchat.core.facts.symbols import SHOUT, names_read, symbols
from ctxchat.core.found_paths import whole_paths
from ctxchat.core.messages import Group, Message, Text, ToolCall, own_words, spoken
from ctxchat.core.record import Fact
from ctxchat.core.sanitize import clean
from ctxchat.core.tooluse import (
    LOOKS,
    SAVED,
    Use,
    broken_off,
    command_line,
    exchanges,
    exit_code,
    failed,
    in_folder,
    patch_in,
    patched,
    place_searched,
    refused,
    statements,
    use_of,
    words_of_refusal,
)

_MAX_FACT_CHARS = 240
"""The most characters that are kept of a sentence, an error or a command."""

CUT = "…"
"""Stands where a sentence, an error or a command was cut."""

_COPY = expression(r"(?<![\w-])cp (?:-\w+ )*([^\s;&|]+) ([^\s;&|]+)")
STOPPED, WITH_ERRORS = "stopped before its end", "with errors"
"""Outcomes of a command whose exit code is unknown."""

_BAD = expression(rf"\b[1-9]\d* (?:failed|errors?)\b|\bfailed\Z|{STOPPED}|{WITH_ERRORS}")

_MAX_RECALLED_MESSAGES = 3
"""The first messages of one answer of recall, this many, count as looked up again."""

_MAX_SCANNED_CHARS = 8_000
"""The most characters at the head of a message that are searched; half as many at its tail."""

_MAX_REPORTED = 240
"""The most paths that are taken from the report of a sub-agent."""

_MAX_SYMBOL_CHARS = 60_000
"""The most characters of what a call writes or reads that are searched for symbols."""

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
_URL = expression(r"\b(?:https?|wss?|ftp|ssh|git|postgres(?:ql)?|mysql|redis|amqp|file)://[^\s<>\"'`)\]}]+")
_FURTHER = expression(r"://[^/]*(?:[:@]|/\S)|\A(?!https?:)")
"""Matches an address that has more than the name of a site."""
_TALLY = expression(r"(?<![\w.])\d+ (?:passed|failed|skipped|errors?|warnings?)\b(?! \(\d+ fixed, 0 remaining)")
_GUIDE = expression(
    r"(?:\A|/)(?:(?:docs?|guides?|skills?)/.*|(?:README|CLAUDE|AGENTS|CONTRIBUTING|SKILL)\b[^/]*)\.(?:md|mdx|rst)\Z"
)
"""The path of a guide: a document whose code blocks are examples, not code of the project."""
_SHOWN = expression(r"^ *(`{3,}|~{3,}).*?(?:^ *\1[ \t]*$|\Z)|^ {0,3}>[^\n]*", re.MULTILINE | re.DOTALL)
_MIN_PASTED_LINES = 15
"""A block of this many lines without an empty one is taken for a pasted log or listing; only rules are still read from it."""

_TRACE = expression(
    r"^[ \t]*(?:Traceback \(most recent|File \"[^\"\n]+\", line \d|at [\w.$<>\[\] ]+ ?\(?[^\s()]+:\d+|Caused by:|goroutine \d"
    r"|(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Warning|Panic)\b(?:\[\w+\])?:|(?:[Ee]rror|warning|fatal|panic)(?:\[\w+\])?:"
    r"|\S+:\d+(?::\d+)?:? +(?:error|warning|note)\b|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[(?:ERROR|WARN|INFO|DEBUG)\]|npm ERR!"
    r"|Node\.js v\d)[^\n]*"
    r"|^(?: {4,}|\t)[^\n]*$|^[^\n]*(?:\{\"\w+\":|\b\w+_error\b|\b(?:API|HTTP) ?[Ee]rror\b|\b[45]\d\d (?:[A-Z]\w+ ?)+[:{(]"
    r"|\S\.\w{1,5}:\d+:\d+:|\bat (?:\w+\.){2,}\w+\()[^\n]*$",
    re.MULTILINE,
)
"""Lines of a pasted error, a stack trace, a log or a server's refusal. Not the person's words; only paths are still read from
them."""
_OUTPUT = expression(
    r"^(?:\S*[➜❯] |[$%#>] \w|\S+@\S+[:~]\S*[$#%] |> \S+@\d|\s*\{?\"\w+\":)|\{\"\w+\":|^\s+at \S+ \(|\bcode: '\w+'|[─-╿▀-▟⎿⏺❯●]",
    re.MULTILINE,
)
"""Signs of a pasted terminal, log or JSON: beginnings of its lines, and characters that only a screen draws."""
_OBJECT = expression(r"^[^\n]*\{\"\w+\":(?:[^\n]+\n){0,40}?[^\n]*\}[ \t]*$", re.MULTILINE)
"""A pasted JSON object over up to 40 lines, such as a server's refusal that a terminal wrapped."""
_WRAPPED = expression(r"^agentId: [^\n]*|^<(usage)>.*?</\1>", re.MULTILINE | re.DOTALL)
"""Lines that a program adds to the answer of a sub-agent."""
_EMPTY_LINE = expression(r"\n[ \t]*\n")
_WHOLE_HEAD = expression(r"(?:\n[^\n]{0,200}|\S{0,200})\Z")
_WHOLE_TAIL = expression(r"\A(?:[^\n]{0,200}\n|\S{0,200})")
_COMMENT = expression(r"^\s*#.*$", re.MULTILINE)
_FED = expression(r"(<<-?[ \t]*(['\"]?)(\w+)\2[^\n]*)\n\s*([^\n]*)\n(?:.*?\n)??\s*\3\b", re.DOTALL)
"""A here-document of a shell command (`<<EOF`)."""
_LAST_PART = expression(r"(?:&&|;) ([^&;|'\"]{1,120})\Z")
"""The last part of a command line, where it is short."""
_ON_THE_SPOT = expression(
    r"(?:^|[\s;&|/])(?:python3?|node|tsx|bun|deno|ruby|perl|bash|sh|php)\s+(?:-\w+\s+)*(?:-[ce]\b|-\s*<<|<<|/tmp/\S+)"
)
"""A throw-away script: in an argument of the command, on its input, or in a file below /tmp."""
_GOES_ON = expression(r"(?:\b(?:do|then|else)|[({|&;\\])\Z")
"""The end of a command's line that continues on the next line."""
_LAST_WORDS = 8
"""How many characters at the end of a line are searched for that."""
_NOTHING_FOUND = expression(
    r"\s*(?:\[?\(?no (?:\w+ )?(?:match|file|result|hit|output)|(?:found )?0 )|\s*\Z", re.IGNORECASE
)
_FOLDER = expression(r"(?:[a-z0-9_.-]*[a-z][a-z0-9_.-]*/)+[a-z0-9_.-]*")
"""A relative folder; words with capitals, or without letters, are more often alternatives ("A/B") than a folder."""
_SLASHED = expression(r"[\w-]+(?:/[\w-]+)+")
"""Words with slashes between: a folder (`src/core/facts`) or alternatives ("comments/operators")."""
_PARTIAL = expression(r"\[masked |REDACTED|\*\*\*|…|\.\.\.|[\n<>|]")
"""Marks of a path that was masked or cut off, so that no file has that name."""
_QUOTES = frozenset("`'\"")
_NO_FILE = expression(r"(?:\d[\d./]*\Z|(?:node|next|vue|nuxt|react|express|three|chart|d3|p5)\.js\Z)", re.IGNORECASE)
_QUOTED_PATH = expression(r"""(?P<mark>['"`])(?P<path>~?/[^'"`\n]{1,300}\.\w{1,5})(?P=mark)""")
_STRINGS = expression(r"'[^'\n]*'|\"[^\"\n]*\"|<<.*", re.DOTALL)
"""Quoted strings and here-documents in a command: patterns and texts, which name no file that the command reads."""
_WORD = expression(r"[^\W\d_]{2}")
_HIT = expression(r"^(?P<path>[\w./~@+-]*\w\.\w{1,5})(?=[:-]\d{1,8}[:-]|\s*$)", re.MULTILINE)
"""A file in the result of a search: before a line number, or alone on its line."""
_MAX_FILES_FOUND = 6
"""A search result with more files than this is a listing, from which no paths are taken."""
_RATE = expression(r"\d[\d.,]*[A-Za-z]*/\w+$")
_SENTENCE = expression(r"[^.!?。！？\n]+(?:[.!?](?=\S)[^.!?。！？\n]*)*[.!?。！？]?")
_RULE = expression(
    r"(?:\A|[,;:(–—-] ?|\b(?:please|and|but|also|so|ok|okay|then) )(?:do not|don't|dont|avoid|prefer|use only|only use)\b"
    r"|(?:\A|[,;:–—-] ?|\b(?:please|and|but|also|so|ok|okay|then|should|must|shall|to|we|\w+:) )"
    r"\**(?:always|never(?! ?mind| happen))\b"
    r"|\b(?:must(?:n't)?|from now on|only ever|please keep"
    r"|under no circumstances|sempre|nunca|jamais|siempre|no (?:uses|toques|borres)"
    r"|não (?:use|faça|mexa|altere|apague|toque|remova|mude|crie|escreva)"
    r"|immer|nie(?:mals)?|toujours|ne (?:\w+ )?(?:pas|jamais))\b"
    r"|必ず|絶対|しないで|ください|必须|不要|始终",
    re.IGNORECASE,
)
_OF_NOW = expression(
    r".*[?？]\Z|(?:\w+[:,] )?\(\w{1,2}\) (?!.*\b(?:always|never|from now on)\b)", re.DOTALL | re.IGNORECASE
)
"""A question, or an item of a request, such as `(a) the prompt must show it`: it holds until it is done."""
_DECISION = expression(
    r"\b(?:decided(?! by\b)|decision(?= (?:is|was|to|that|made|taken)\b|s?:)"
    r"|we(?:'ll| will) (?:use|go|keep|take)|I(?:'ll| will) (?:go with|take the)"
    r"|let's (?:use|go|keep|take)|(?<!keep )(?:going|go) with"
    r"|settled(?! down)|(?<!they )(?<!he )(?<!user )(?<!users )(?:chose|chosen)|agreed|opted for"
    r"|decidi(?:mos|u|do)?|decisão|decisión|entschieden|entscheidung|décidé|décision)\b"
    r"|決定|に決め|决定",
    re.IGNORECASE,
)
_STEP = expression(
    r"\b(?:let's|I'?(?:ll| will)|going) .*\bto (?:see|find|locate|check|look|search|open|read|list|inspect|understand)\b",
    re.IGNORECASE,
)
"""A sentence that announces the next step, which is no decision."""
_DIGIT = expression(r"\d")
_IDENTIFIER = expression(
    r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b"
    r"|\b(?!(?:UTF|SHA|ISO|RFC|MD|CVE|AES|RSA|GPT|IPV|PEP|HTTP|TLS|GPL|BSD|LGPL|AGPL|APACHE|ISO|TS|ES|X)-|L\d+-)[A-Z][A-Z0-9]+-\d+\b|(?<![\w&])#\d{2,5}\b|\bv\d+\.\d+(?:\.\d+)?(?:[-.]\w+)?\b"
)
_HEADING = expression(r"^m(\d{1,12}) \((call of )?", re.MULTILINE)
_MARKED = expression(r"`[^`]*`")
_CALLED = expression(r"`(?:[\w$]+\.)*([A-Za-z_$][\w$]{2,60})\(\)`|`(--?[a-z][\w-]+)`")
"""A function or a command-line option in code marks."""


def facts_of(group: Group) -> tuple[Fact, ...]:
    """The facts in one group of the record, oldest first."""
    facts: list[Fact] = []
    results = {m.call_id: m for m in group.messages if m.role == "tool"} if group.kind == "round" else {}
    if group.kind not in {"system", "summary", "stray", "note"} and group.first.role != "tool":
        said = _said_facts(group.first, group)
        if any(map(refused, results.values())):  # the person did not want what the agent was about to do
            said = (fact for fact in said if fact.kind not in {"decision", "number", "symbol"})
        facts += said
    for call in group.first.calls if group.kind == "round" else ():
        if (result := results.get(call.id)) is not None:
            facts += _done_facts(call, result, group)
            if words := words_of_refusal(result):
                facts += _said_facts(Message(result.seq, "user", words), group)
    return tuple(facts)


def recalled(group: Group) -> tuple[int, ...]:
    """The numbers of the messages that the agent looked up with recall in this group: the best matches of each answer; for a call
    also the number of its result."""
    seqs: list[int] = []
    for message in group.messages:
        if message.role == "tool" and message.name == "recall":
            for seq, call in _HEADING.findall(message.text)[:_MAX_RECALLED_MESSAGES]:
                seqs += [int(seq), int(seq) + 1] if call else [int(seq)]
    return tuple(seqs)


# ── what somebody said ──


def _said_facts(message: Message, group: Group) -> Iterator[Fact]:
    """The facts in what a message says: rules and decisions by their sentences, then addresses, paths, numbers, identifiers and
    names in code. What the person pasted is left out, except its paths."""
    at: At = (message.seq, "user" if message.role == "user" else "assistant", group.turn)
    whole = _scanned(_spoken_text(message))
    text = _TRACE.sub("", _OBJECT.sub("", whole) if message.role == "user" else whole)
    if message.role == "user":
        text = "\n\n".join(block for block in _EMPTY_LINE.split(text) if not _OUTPUT.search(block))
    for match in _SENTENCE.finditer(text):
        sentence = plain(match.group()).lstrip("-*# ")
        if len(sentence) < 8:
            continue
        if message.role == "user" and _RULE.search(sentence) and not _OF_NOW.match(sentence):
            yield Fact("rule", _clip(sentence), "", *at)
        elif _DECISION.search(sentence) and _decides(sentence):
            yield Fact("decision", _clip(sentence), "", *at)
    text = _pastes_left_out(text, message)
    if "://" in whole:
        for match in some(_URL, text, 20):
            if _FURTHER.search(url := match.group().rstrip(".,;:")) and not _PARTIAL.search(url):
                yield Fact("url", url, "", *at)
        text, whole = _URL.sub(" ", text), _URL.sub(" ", whole)
    for path in _paths(_pastes_left_out(whole, message), by_person=message.role == "user"):
        yield Fact("path", path, "", *at)
    bare = _PATH.sub(" ", text)
    if _DIGIT.search(text):
        if message.role == "user" or group.kind == "reply":
            yield from numbers(text, at, _ENDINGS)
        for match in some(_IDENTIFIER, bare, 20):
            yield Fact("identifier", match.group(), "", *at)
    quoted = (match[1] or match[2] for match in _CALLED.finditer(text))
    named = (symbol for symbol in symbols(bare) if not SHOUT.fullmatch(symbol))
    for symbol in dict.fromkeys([*quoted, *named]):
        yield Fact("symbol", symbol, "", *at)


def carries(sentence: str) -> bool:
    """True for a person's sentence that stays valid from then on: a rule, a decision, or a prohibition."""
    return bool(_RULE.search(sentence) or FORBIDS.search(sentence)) or (
        bool(_DECISION.search(sentence)) and _decides(sentence)
    )


def _decides(sentence: str) -> bool:
    """True where the word for a decision stands in the sentence itself (not in code marks or a file name), and the sentence is
    neither a question nor an announced step."""
    return (
        not asks(sentence)
        and bool(_DECISION.search(_PATH.sub(" ", _MARKED.sub(" ", sentence))))
        and not _STEP.search(sentence)
    )


def _paths(text: str, *, by_person: bool = False, most: int = 60) -> Iterator[str]:
    """Files and folders that a text names. Words with slashes between (`a/b/c`) are taken for alternatives unless they are in
    code marks or quotes. A person may put an @ before a path."""
    for match in some(_QUOTED_PATH, text, most // 3):
        yield match["path"]
    for match in some(_PATH, _QUOTED_PATH.sub(" ", text), most):
        path = match.group().rstrip(".")
        at = by_person and path.startswith("@")
        path = path[at:]
        if _is_path(path) and (at or not _SLASHED.fullmatch(path) or _QUOTES.issuperset(_text_around(text, match))):
            yield path


def _text_around(text: str, match: re.Match[str]) -> str:
    """The characters right before and after a match, a space at the ends of the text."""
    return (text[match.start() - 1 : match.start()] or " ") + (text[match.end() : match.end() + 1] or " ")


def _pastes_left_out(text: str, message: Message) -> str:
    """The text without pasted logs and listings, where a person wrote it."""
    if message.role != "user":
        return text
    return "\n".join(block for block in _EMPTY_LINE.split(text) if block.count("\n") + 1 < _MIN_PASTED_LINES)


def _spoken_text(message: Message) -> str:
    """The author's own words, without code blocks, quoted lines, the text of attached files and text that programs added; the
    names of attached files are included."""
    content = () if isinstance(message.content, str) else message.content
    along = [part.name for part in content if isinstance(part, Text) and part.name]
    said = own_words(message) if message.role == "user" else spoken(message)
    return _SHOWN.sub("\n", "\n".join([said, *along]))


# ── what was done ──


def _done_facts(call: ToolCall, result: Message, group: Group) -> Iterator[Fact]:
    """The facts about what a call did: files read or changed, a command and its outcome, paths and addresses, and the names in
    code that it wrote or read."""
    use = use_of(call)
    at: At = (result.seq, "assistant", group.turn)
    again = use.kind == "read" and use.target.startswith(SAVED)
    if refused(result) or result.synthetic or (use.kind != "run" and failed(result)) or again:
        return  # the call never happened, changed nothing, or read a saved result whose facts are known
    patch = [change.now or change.path for change in patched(call) if change.kind != "delete"]
    yield from (Fact("changed", path, "", *at) for path in patch)
    match use:
        case Use("change" | "read" as kind, path):
            if not _PARTIAL.search(path):
                yield Fact("changed" if kind == "change" else "read", path, "", *at)
        case Use("run", command):
            yield from _command_facts(command, result, at)
        case Use("search", _):
            if _is_path(place := place_searched(call)):
                yield Fact("path", place, "", *at)
            found = "\n".join(whole_paths(result.text[:_MAX_SCANNED_CHARS].split("\n"), hits=True))
            hits = dict.fromkeys(hit["path"].removeprefix("./") for hit in _HIT.finditer(found))
            if len(hits) <= _MAX_FILES_FOUND:
                yield from (Fact("path", path, "", result.seq, "tool", group.turn) for path in hits if _is_path(path))
        case Use("fetch", address):
            yield Fact("url", address, "", *at)
        case Use("ask", _):  # the asking agent has only read a sub-agent's answer, hence the speaker "tool"
            seen = (result.seq, "tool", group.turn)
            report = _SHOWN.sub("", result.text[:_MAX_SYMBOL_CHARS])
            yield from (Fact("path", path, "", *seen) for path in _paths(report, most=_MAX_REPORTED) if "/" in path)
        case _:
            pass
    where = use.target if use.kind in {"change", "read"} else patch[0] if len(patch) == 1 else ""
    for symbol in symbols(_written_text(call, use, result)):
        yield Fact("symbol", symbol, where, *at)
    if use.kind == "ask":
        for symbol in symbols(_PATH.sub(" ", _URL.sub(" ", _WRAPPED.sub("", result.text[:_MAX_SYMBOL_CHARS])))):
            yield Fact("symbol", symbol, "", result.seq, "tool", group.turn)
    if use.kind == "read":  # nobody worked with these names, but they may be asked for
        for symbol in names_read(result.text[:_MAX_SYMBOL_CHARS], guide=bool(_GUIDE.search(use.target))):
            yield Fact("symbol", symbol, where, result.seq, "tool", group.turn)


def _command_facts(command: str, result: Message, at: At) -> Iterator[Fact]:
    """The commands that a command line ran, the files it looked at, and its errors. The outcome is given to the last part, to
    which the exit code belongs; a command that was broken off has no other outcome, since its output so far proves nothing."""
    folder, rest = in_folder(command)
    *before, last = statements(rest) or (rest,)
    line = command_line(last)
    ran = [part for part in before if not _looks(part) and not command_line(part).only_files]
    looked = [part for part in (*before, last) if LOOKS.match(command_line(part).rest)]
    for path in dict.fromkeys(path for part in looked for path in _paths(_STRINGS.sub(" ", part))):
        if not path.startswith("/dev/"):
            yield Fact("path", path, "", at[0], "tool", at[2])
    stopped = broken_off(result)
    outcome = STOPPED if stopped else _outcome(result, masked=line.masked, alone=not ran)
    well = outcome.startswith("exit 0")  # the output may name errors all the same
    told_nothing = stopped or (well and not ran) or _puts_back(rest)
    errors = [] if told_nothing else list(map(plain, troubles(_scanned(result.text))))
    done = line.only_files and not has_failed(outcome) and not errors  # moving files about is no fact by itself
    if _looks(last) or done:
        if not ran:
            return
        ran, last, outcome, well = ran[:-1], ran[-1], "", False
    if errors and not outcome:
        outcome = WITH_ERRORS
    key = _key(folder, last)
    for part in ran:
        yield Fact("command", _key(folder, part), WITH_ERRORS if errors and well else "", *at)
    yield Fact("command", key, outcome, *at)
    blamed = _key(folder, ran[0]) if ran and well else key
    for error in [*errors[:2], *errors[2:][-1:]]:
        yield Fact("error", _clip(error), blamed, *at)


def _puts_back(command: str) -> bool:
    """True where a command line copies a file aside and back, as to see a test fail without a change: what failed in between is
    of a state that is gone."""
    copies = [(match[1], match[2]) for match in _COPY.finditer(command)]
    return any((there, here) in copies[:place] for place, (here, there) in enumerate(copies))


def _looks(part: str) -> bool:
    """True for a part of a command line that only looks around, or that will not be run again, such as a throw-away script."""
    line = command_line(part)
    if not line.program or _ON_THE_SPOT.search(line.rest):
        return True
    return all(LOOKS.match(piece.strip()) for piece in line.rest.split("&& "))


def has_failed(outcome: str) -> bool:
    """True where the outcome of a command says that it failed: by its exit code, or else by its tally of tests."""
    if outcome.startswith("exit "):
        return not outcome.startswith("exit 0")
    return bool(_BAD.search(outcome))


def _key(folder: str, part: str) -> str:
    rest = _in_one_line(command_line(part).rest)
    return _clip_command(f"cd {folder} && {rest}" if folder else rest)


def _clip_command(command: str) -> str:
    """A command cut to `_MAX_FACT_CHARS`, in the middle where its last part is short: that part is what mattered."""
    if len(command) <= _MAX_FACT_CHARS:
        return command
    last = _LAST_PART.search(command)
    tail = f" ; {last[1]}" if last else ""
    return f"{command[: _MAX_FACT_CHARS - 1 - len(tail)]}{CUT}{tail}"


def _in_one_line(command: str) -> str:
    """A command of several lines as one line, without comments and with only the first line of a here-document."""
    command = _FED.sub(lambda fed: f"{fed[1]} {plain(fed[4])} {CUT}", command)
    lines = [line.strip() for line in _COMMENT.sub("", command).splitlines()]
    told = ""
    for line in (line for line in lines if line.strip("\\") and not line.startswith("#")):
        goes_on = not told or _GOES_ON.search(told, len(told) - _LAST_WORDS) or line.startswith(")")
        told += (" " if goes_on else "; ") + line.rstrip("\\")
    return plain(told) or plain(command)


def _outcome(result: Message, *, masked: bool, alone: bool) -> str:
    """How a command ended: its exit code, and the tally of tests where nothing else ran before it (`alone`). `masked`: the exit
    code may be that of another program, which only shows the output."""
    code, wrong = exit_code(result.text), failed(result)
    if masked and (code in {0, 1} or (code is None and not wrong)):
        code, wrong = None, False  # the exit code of the last program: `grep` ends with 1 where no error is left
    elif code is None and not wrong and result.name == "shell":
        code = 0  # our own tool reports every other code
    words = [f"exit {code}"] if code is not None else (["failed"] if wrong else [])
    tally = list(dict.fromkeys(plain(m.group()) for m in _TALLY.finditer(result.text[-600:]))) if alone else []
    return ", ".join([*words, *tally[-4:]])


def _written_text(call: ToolCall, use: Use, result: Message) -> str:
    """The text that a call writes to a file or searches for, without its command or path."""
    if use.kind == "search":
        return "" if _NOTHING_FOUND.match(result.text) else use.target[:_MAX_SYMBOL_CHARS]
    if patch := patch_in(call):
        return "\n".join(line[1:] for line in patch.splitlines() if line.startswith("+"))[:_MAX_SYMBOL_CHARS]
    return "\n".join(new for _, new in exchanges(call))[:_MAX_SYMBOL_CHARS] if use.kind == "change" else ""


def _is_path(text: str) -> bool:
    """True for a text that is a path of a file or a folder, in contrast to a pattern, a rate (`km/h`), a version or a command
    (`/export`)."""
    if _PARTIAL.search(text) or not text.strip("./~"):
        return False
    folders, _, name = text.rstrip("/").rpartition("/")
    if any("." in part[1:] and part.rpartition(".")[2] in _ENDINGS for part in folders.split("/")):
        return False  # `a.md/b.md` are two files
    if "." in name[1:] and "@" not in name:
        return (
            (name.rpartition(".")[2] in _ENDINGS or "/" in text) and not _RATE.match(text) and not _NO_FILE.match(text)
        )
    folder = text.strip("/")
    if text.startswith(("/", "~/", "./", "../")):
        command = text[0] == "/" and "/" not in folder  # such as /export
        return _WORD.search(folder) is not None and not command
    return _FOLDER.fullmatch(text) is not None and (text.count("/") > 1 or text.endswith("/"))


def _scanned(text: str) -> str:
    """The part of a text that is searched for facts: of a long one the beginning and the end; without control sequences."""
    if len(text) > _MAX_SCANNED_CHARS * 3 // 2:  # cut between words, since half a path or number would be a false fact
        text = (
            f"{_WHOLE_HEAD.sub('', text[:_MAX_SCANNED_CHARS])}\n{_WHOLE_TAIL.sub('', text[-_MAX_SCANNED_CHARS // 2 :])}"
        )
    return clean(text) if "\x1b" in text else text


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_FACT_CHARS else text[: _MAX_FACT_CHARS - 1] + CUT
