"""Interprets tool calls and their results: what a call does and to what (`use_of`: reads a file, runs a command line, …), whether
it failed or was refused, its result in one line (`gist`), and which program a command line runs.

Tools come from anywhere (servers, imported conversations), so this goes by common words in the names of tools and arguments and
not by a list of tools.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Literal, cast

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.expressions import expression
from ctxchat.core.found_paths import whole_paths
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.quantities import count
from ctxchat.core.tool_names import ASK_USER

UseKind = Literal["read", "change", "run", "search", "fetch", "ask", "other"]

# Names of arguments, by what they hold; then words in names of tools, by what these do.

_PATHS = (
    *("path", "file_path", "filePath", "filepath", "filename", "file", "target_file", "absolute_path", "relative_path"),
    "notebook_path",
)
_COMMANDS = ("command", "cmd", "script", "command_line")
_ADDRESSES = ("url", "uri", "address")
_CONTENTS = ("content", "file_text", "contents", "text")
_PATCHES = ("patch", "diff", "input")
_PATCHED = expression(r"^\*\*\* (Add|Update|Delete) File: (.+)\n(?:\*\*\* Move to: (.+))?", re.MULTILINE)
_QUERIES = ("pattern", "query", "regex", "q", "glob")
_CHANGES = frozenset(
    {
        "write",
        "edit",
        "create",
        "replace",
        "patch",
        "apply",
        "insert",
        "delete",
        "remove",
        "move",
        "rename",
        "append",
        "update",
    }
)
_RUNS = frozenset(
    {"shell", "bash", "sh", "run", "exec", "execute", "command", "terminal", "powershell", "cmd", "process"}
)
_AGENTS = frozenset({"agent", "delegate", "task", "subagent", "dispatch", "subtask"})
_TASKS = ("prompt", "task", "instructions")
_ANSWERS, _IDS = frozenset({"output", "result"}), ("task_id", "agent_id", "id")
"""Words in the name of a tool that fetches the answer of an agent in the background, and the arguments that name the agent."""
_SEARCHES = frozenset({"grep", "search", "find", "glob", "list", "ls", "rg", "tree"})
_CAMEL_WORD = expression(r"[A-Z]?[a-z]+|[A-Z]+")
_EXIT = expression(
    r"\bexit(?:ed)?(?:[ _]?(?:with|code|status))*\W{0,3}(-?\d{1,4})\b|\breturn[ _]?code\W{1,3}(-?\d{1,4})\b", re.I
)
_FAILED = expression(r"\s*(?:\[(?:error|cancelled|denied|no result|timed? ?out)|error\b|failed\b|traceback\b)", re.I)

_REFUSED = expression(
    r"The user did not allow|The session is (?:read-only|in plan mode):|The rule `[^`]*` forbids|Nobody can be asked here"
    r"|The user doesn't want to (?:proceed|take this action)|Permission to use \w+ has been (?:denied|auto-denied)"
)

_SAID_REFUSING = expression(
    r"\AThe user did not allow this\. They said: (?P<words>.+)\Z"
    r"|\AThe user doesn't want to .*?(?:the user said|provided the following reason)[^:\n]{0,60}:\s*(?P<more>.+)\Z",
    re.DOTALL,
)
ANSWERED = "The user answered: "
"""Prefix of the result of a question to the person; their answer follows."""

_BROKEN_OFF = expression(
    r"^\[(?:stopped after [^\]\n]*time-out|cancelled|ended by signal|interrupted)[^\]\n]*\]"
    r"|\b[Cc]ommand (?:timed out|was (?:aborted|cancelled|interrupted|killed))\b|^\s*(?:Command|Operation) aborted\b"
    r"|\[Request interrupted by user|^(?:Terminated|Killed|\^C)\s*$|^KeyboardInterrupt\s*$",
    re.MULTILINE,
)

_ERROR_LINE = expression(
    r"(?:Error|Exception|Panic|panicked)\b|\b(?:error|fatal|panic|ERROR|FATAL|FAILED|Failed|fail(?:ed|ure))\b"
    r"|not found\b|No such file|[Dd]enied|Segmentation fault|\A\s*assert\b"
)
_TALLY = expression(r"(?<![\w.])\d+ (?:passed|failed|passing|failing)\b")
_NOT_PASSED = expression(r"(?<![\w.])[1-9]\d* (?:failed|failing|errors?)\b")
"""The tally of a test run, and a tally with failures."""
_COMMITTED = expression(r"\[[^\]]*\b[0-9a-f]{7,40}\] \S.*")
"""`[main 3f2a9c1] Subject`: the line by which git reports a commit, among what hooks print before it and git prints after it."""
BARE = expression(
    r"\W*(?:\S+\W+)?(?:error|failed)(?:\W+task failed)?\W*"
    r"|failed \((?:\w+=\d+[, ]*)+\)"
    r"|npm err\w*!? (?:command|location|path|code|errno|lifecycle|workspace)\b.*",
    re.IGNORECASE,
)
"""A line that only says that an error occurred, or where its log is."""
NO_PROSE = (
    r"(?!\w|[.,]?(?:[ \t]+(?!extends|implements|permits|where|with|struct|interface)[a-z]+\b){2}|[ \t]+`|\.(?:\s|$))"
)
"""After the name of a definition: the line continues as code, not as a sentence («class method that is called»)."""
_DEFINES = expression(
    r"^\s*(?:\d+[\s:|│→])?\s*(?:export |public |async |pub )*"
    r"(?:def|class|function|fn|func|struct|interface|type|const)\s+([A-Za-z]\w{2,})" + NO_PROSE
)
_NOTE = expression(r"\[(?:exit code|lines? |of \d+ lines|only |full text|no output|ended by|stopped after|…).*\]\s*")
"""A line that a tool adds about its own output."""
LOOKS = expression(
    r"(?:\S+/)?(?:ls|cat|head|tail|grep|rg|find|sed -n|wc|which|echo|pwd|tree|file|stat|awk"
    r"|git (?:status|log|diff|show|branch|remote|rev-parse|ls-files|blame)|test -\w|\[{1,2} -\w)\b"
)
"""A command that only looks around: it does nothing, and its failures are no errors of the work."""
_FOUND = expression(r"Found \d+ (?:files?|match(?:es)?|lines?|results?)\b.{0,40}")
"""The line above the hits of a search that says how many there are."""
_SMALL_TALK = expression(r"(?:Excellent|Perfect|Great|Good|Okay|OK|Now)\b.*\b(?:I have|I can|[Ll]et me|I'll|I will)\b")
"""The pleasantry with which an agent's report may begin."""
_NUMBERED = expression(r"^\s*(\d+)[\t→]")
_HIT_BELOW = expression(r"(\d{1,8})[ \t:](.*)")
_HIT_BESIDE = expression(r"(?:[A-Za-z]:[\\/])?[^:\n]{1,400}:\d{1,8}:")


_LIST = expression(r"(?:^|[^a-zA-Z])[tT]o_?[dD]o|update_plan")


SAVED = "tool-results/"
"""The folder of results that were too long to show. A file there is no file of the work: the call with that result describes
it."""


class Use(msgspec.Struct, frozen=True):
    """What a call does: the kind of action, and its target (a path, a command line, a pattern, an address, a task)."""

    kind: UseKind
    target: str


@lru_cache(64)  # several readers ask about one call, and then about the next
def use_of(call: ToolCall) -> Use:
    """What a call does, by its name and arguments; `other` where the arguments cannot be parsed."""
    fields = fields_of(call.arguments)
    if fields is None:
        return Use("other", "")
    words = {word.lower() for word in _CAMEL_WORD.findall(call.name)}
    command, path = _first(fields, _COMMANDS), _first(fields, _PATHS)
    address, query = _first(fields, _ADDRESSES), _first(fields, _QUERIES)
    if words & _AGENTS and (task := _first(fields, (*_TASKS, *_IDS) if words & _ANSWERS else _TASKS)):
        return Use("ask", task)
    if command and (not path or words & _RUNS):
        return Use("run", command)
    if path and words & _CHANGES:
        return Use("change", path)
    if query or words & _SEARCHES:
        return Use("search", query or path)
    if path:
        return Use("read", path)
    if address:
        return Use("fetch", address)
    return Use("other", "")


def place_searched(call: ToolCall) -> str:
    """The file or folder that a search was limited to; empty where the call names none."""
    fields = fields_of(call.arguments)
    return _first(fields, _PATHS) if fields and use_of(call).kind == "search" else ""


def exchanges(call: ToolCall) -> Iterator[tuple[str | None, str]]:
    """Pairs of the text that a call takes out of a file and the text it puts there; the first is None for a whole file or an
    insertion."""
    fields = fields_of(call.arguments) or {}
    several = [cast("list[object]", value) for value in fields.values() if isinstance(value, list)]
    inner = [cast("dict[str, object]", edit) for edits in several for edit in edits if isinstance(edit, dict)]
    for some in (fields, *inner):
        texts = {name: value for name, value in some.items() if isinstance(value, str)}
        pair = next(((texts[old], texts[new]) for old in texts if (new := _new_text_name(old)) in texts), None)
        if pair is not None:
            yield pair
        elif content := next((texts[name] for name in _CONTENTS if texts.get(name)), ""):
            yield None, content


def _new_text_name(name: str) -> str:
    """The argument with the new text for the one with the old text; for other arguments a name that none has."""
    if name == "search":
        return "replace"
    return name.replace("old", "new", 1) if "old" in name else "\0"


class PatchedFile(msgspec.Struct, frozen=True):
    """What a patch does to a file; `now` is the new path of one that is moved."""

    kind: Literal["add", "update", "delete", "move"]
    path: str
    now: str = ""


@lru_cache(64)
def patch_in(call: ToolCall) -> str:
    """The patch in a call's arguments, whichever of them holds it; empty where there is none."""
    fields = fields_of(call.arguments) or {}
    texts = (_first(fields, _PATCHES), _first(fields, _COMMANDS))
    return next(filter(_PATCHED.search, texts), "")


def patched(call: ToolCall) -> Iterator[PatchedFile]:
    """The files of a patch in the form `*** Update File: path`."""
    for verb, path, now in _PATCHED.findall(patch_in(call)):
        yield PatchedFile("move" if now else verb.lower(), path.strip(), now.strip())


def is_to_do(call: ToolCall) -> bool:
    """True for a call that writes a to-do list."""
    return bool(_LIST.search(call.name))


def same_arguments(arguments: str) -> str:
    """Arguments with sorted keys, so that equal ones are equal texts; unchanged where they cannot be parsed."""
    fields = fields_of(arguments)
    return arguments if fields is None else msgspec.json.encode(fields, order="sorted").decode("utf-8", "replace")


def exit_code(text: str) -> int | None:
    """The exit code that a result states at its end or its beginning; None where it states none."""
    for piece in (text[-300:], text[:200]) if len(text) > 500 else (text,):
        matches = _EXIT.findall(piece)
        if matches:
            return int(matches[-1][0] or matches[-1][1])
    return None


def failed(result: Message) -> bool:
    """True for a result by which the call achieved nothing: it was cancelled or refused, or the result is only an error."""
    return result.synthetic or result.failed or bool(_FAILED.match(result.text))


def refused(result: Message) -> bool:
    """True for the result of a call that was not allowed to run: by the person, by a rule or the mode, or because nobody could be
    asked."""
    return bool(_REFUSED.match(result.text))


def words_of_refusal(result: Message) -> str:
    """What the person said when they refused a call; empty where they said nothing or refused nothing."""
    match = _SAID_REFUSING.search(result.text) if refused(result) else None
    return (match["words"] or match["more"]).strip() if match else ""


def words_of_answer(call: ToolCall, result: Message) -> str:
    """The person's answer to the question that this call asked; empty for other calls, and where they did not answer."""
    answer = result.text.removeprefix(ANSWERED)
    return answer.strip() if call.name == ASK_USER and answer != result.text else ""


def broken_off(result: Message) -> bool:
    """True when a result says that a command was ended from outside before it finished, so that its output proves nothing."""
    ends = result.text if len(result.text) <= 700 else f"{result.text[:300]}\n{result.text[-400:]}"
    return result.synthetic or bool(_BROKEN_OFF.search(ends))


def gist(call: ToolCall | None, result: Message, width: int) -> str:
    """The most informative line of a result, at most `width` characters: a command's error or outcome, which lines of a file were
    read, what an edit put there, the number of a search's hits; never a banner or a line number."""
    use = use_of(call) if call else Use("other", "")
    lines = [line for raw in result.text.splitlines() if any(map(str.isalnum, line := raw.strip()))]
    said = [line for line in lines if not _NOTE.fullmatch(line)]
    size = sum(not _NOTE.fullmatch(raw.strip()) for raw in result.text.rstrip().splitlines())  # empty lines, too
    names = ", ".join(dict.fromkeys(found[1] for line in said if (found := _DEFINES.match(line))))
    match use.kind:
        case "run":
            code = exit_code(result.text)
            if names and not code and LOOKS.match(use.target):  # the word "error" in code that was shown is no error
                told = f"{size} lines: {names}"
            else:
                wrong = [line for line in said if code != 0 and _ERROR_LINE.search(line) and not BARE.fullmatch(line)]
                stopped = [line.strip("[]") for line in lines if broken_off(result) and _BROKEN_OFF.search(line)]
                tallies = [line for line in said if _TALLY.search(line)]
                if not code and tallies:  # the other lines are only output of the tests
                    wrong = [line for line in tallies if _NOT_PASSED.search(line)]
                made = [line for line in said if not code and _COMMITTED.fullmatch(line)]
                shown = stopped or wrong or tallies or made or said or ["no output"]
                told = (f"exit {code}: " if code else "") + shown[-1]
        case "read" if not failed(result) and len(said) > 1:
            where = _lines_read(result.text) or f"{size} lines"
            told = f"{where} of {use.target}" + (f": {names}" if names else "")
        case "search" if not failed(result) and len(said) > 1 and "\n\n" not in result.text:
            many, first = hits_in(said[1:] if _FOUND.fullmatch(said[0]) else said)
            told = f"{count(many, 'hit')}, the first {first}"
        case "ask" if not failed(result) and len(said) > 1:
            told = " ".join(line for place, line in enumerate(said) if place or not _SMALL_TALK.match(line))
        case "change" if call and not failed(result) and (changed := _change_gist(call)):
            told = changed
        case _:
            first = (said or lines or [""])[:2]
            told = " ".join(first if first[0].endswith(":") else first[:1])
    return told if len(told) <= width else told[: width - 1] + "…"


def _lines_read(text: str) -> str:
    """`lines 9–40`, from the line numbers in front of some lines; empty where there are none."""
    lines = text.splitlines()
    numbered = [(place, int(found[1])) for place, line in enumerate(lines) if (found := _NUMBERED.match(line))]
    if not numbered:
        return ""
    place, last = numbered[-1]
    last += sum(1 for _ in takewhile(lambda line: not line or line.startswith("\t"), lines[place + 1 :]))
    return f"lines {numbered[0][1]}–{last}"


def hits_in(lines: Sequence[str]) -> tuple[int, str]:
    """The number of hits in a search's output, without lines of context, and the first hit with its path. The output has each
    path above its hits, a path before each hit, or only paths."""
    lines = list(whole_paths(lines, hits=True))
    below = [found for line in lines if (found := _HIT_BELOW.match(line))]
    if below and not _HIT_BELOW.match(lines[0]):
        return len(below), f"{lines[0]}:{below[0][1]}:{below[0][2]}"
    beside = [line for line in lines if _HIT_BESIDE.match(line)]
    return (len(beside), beside[0]) if beside else (len(lines), lines[0] if lines else "")


def _change_gist(call: ToolCall) -> str:
    """How many lines a call added to a file and removed from it, and the first meaningful one: one that defines a name, else one
    that does not end in an opening bracket. Empty where the call does not say what it changed."""
    added: list[str] = []
    removed: list[str] = []
    for old, new in exchanges(call):
        before, after = (old or "").splitlines(), new.splitlines()
        added += (Counter(after) - Counter(before)).elements()
        removed += (Counter(before) - Counter(after)).elements()
    counts = [f"+{len(added)}"] * bool(added) + [f"−{len(removed)}"] * bool(removed)
    lines = [stripped for line in (added if any(map(str.strip, added)) else removed) if (stripped := line.strip())]
    depth = min((len(line) - len(line.lstrip()) for line in added if line.strip()), default=0)
    defining = [line.strip() for line in added if _DEFINES.match(line) and not line[: depth + 1].isspace()]
    saying = [line for line in lines if line[-1] not in "([{" and any(map(str.isalpha, line))]
    told = (defining or saying or lines or [""])[0]
    return f"{' '.join(counts)}: {told}" if counts else ""


def first_line(text: str, width: int) -> str:
    """The first line with words in it, cut to `width` characters."""
    line = next((stripped for raw in text.splitlines() if (stripped := raw.strip())), "")
    return line if len(line) <= width else line[: width - 1] + "…"


def _first(fields: dict[str, object], names: tuple[str, ...]) -> str:
    """The first of these arguments that is a non-empty text, or a list of texts (as a command line); empty where none is."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, list) and value and all(isinstance(v, str) for v in cast("list[object]", value)):
            return shlex.join(cast("list[str]", value))
    return ""


# ── command lines ──

_STRINGS = expression(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\([^()]*\)")
BETWEEN = expression(r"&&|\|\||;|\n")
"""What separates the commands of a command line."""
_STATEMENT_END = expression(r"(?<!;);(?!;)|(?<![\\&|({;])\n|(?<![&>|])&(?![&>])")
"""What ends a statement: the command after it runs whatever the exit code of the one before."""
_HERE_DOCUMENT = expression(r"<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n.*?\n[ \t]*\2(?=\n|\)|\Z)", re.DOTALL)
"""A here-document (`<<EOF`)."""
_COMPOUND = expression(r"(?:\A|[;&|\n]\s*)(?:for|while|until|if|case)\b.*\b(?:done|fi|esac)\b", re.DOTALL)
_STRICT = expression(r"\A\s*set -\w*e")
_PIPEFAIL = expression(r"\bpipefail\b")
_CHANGE_FOLDER = expression(r"\s*cd\s+(\"[^\"\n]+\"|'[^'\n]+'|[^\s;&|]+)\s*(?:&&|;|\n)\s*")
_SHOWN_BY = expression(
    r"(?<!\s)(?:(?:\s*2>&1)?(?:\s*\|\s*(?:head|tail|less|cat|grep|rg|wc|sort|uniq|tee)\b(?:'[^']*'|\"[^\"]*\"|[^|&;'\"])*+)++\Z"
    r"|\s*2>&1\s*\Z)"
)
"""The tail of a command line that only filters or redirects its output."""
_MASKED = expression(r"(?<!\|)\|(?!\|)|\|\||;\s*(?:echo|true|ls|pwd)\b[^;&|]*\Z|[^&>|]&\s*\Z")
_BARE_WORD = expression(r"[a-z][\w:-]*")
_ASSIGNED = expression(r"\w+=")
_ASIDE = frozenset({"cd", "echo", "sleep", "true", "export", "set", "source", "done", "pwd", "ls", "wait"})
_IN_FRONT = frozenset({"sudo", "time", "nice", "env", "exec", "command", "nohup", "then", "do", "else", "!", "{", "("})
_FILE_TOOLS = frozenset(
    re.findall(r"\w+", "rm cp mv mkdir touch chmod chown ln cat sed perl awk code open kill pkill curl wget tar rmdir")
)
_RUNNERS = frozenset({"python", "python3", "node", "bash", "sh", "ruby", "tsx", "deno", "php", "-m"})
_ONE_MORE = frozenset({"run", "exec", "compose", "uv", "poetry"})
_FINDERS = (
    *(("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("bundle", "exec"), ("pnpm", "exec")),
    *(("npx",), ("bunx",), ("uvx",), ("python", "-m"), ("python3", "-m")),
)
_ONE_TASK = frozenset({"pytest", "tox", "mypy", "pyright", "basedpyright", "jest", "vitest", "tsc", "eslint", "rspec"})
"""Programs without subcommands: their arguments say what they work on."""
_CHECKS = expression(
    r"(?:\A|[ :./-])(?:(?:py|x|un?it)?tests?|check|unittest|jest|vitest|rspec|tox|mypy|(?:based)?pyright|eslint)\Z"
)
"""Names of programs that check the whole project, or the part that their arguments name."""
_NOT_A_PART = expression(r"-.*|\.|\./\.\.\.|\d+|''|[\w-]+=.*|\.?/?(?:tests?|src|lib|specs?)/?")
"""An argument of a check that names no part of the project: an option, a number, or the folder with all of it."""
_SELECTS = frozenset({"-k", "-t", "-m", "-run", "--grep", "--filter", "--testNamePattern", "--testPathPattern"})
"""Options whose value names the part to check."""
_WITH_A_VALUE = frozenset({"--group", "--extra", "--with", "--python", "--project", "--directory", "--package", "-p"})


def statements(command: str) -> tuple[str, ...]:
    """The statements of a command line in order: parts that run whatever the exit code of the part before (`a && b; c` has two).
    The exit code is that of the last one. A line with loops or conditions, or under `set -e` or `pipefail`, is one statement."""
    blank = _HERE_DOCUMENT.sub(_blanked, command)
    blank = _STRINGS.sub(_blanked, blank)
    if _COMPOUND.search(blank) or _STRICT.match(blank) or _PIPEFAIL.search(blank):
        return (command.strip(),)
    places = [0, *(at for found in _STATEMENT_END.finditer(blank) for at in found.span()), len(command)]
    parts = (command[start:end].strip() for start, end in zip(places[::2], places[1::2], strict=True))
    return tuple(part for part in parts if part and not part.startswith("#"))


def _blanked(found: re.Match[str]) -> str:
    """A quoted string of the same length without separators, so that positions stay the same."""
    return f"'{'·' * (len(found[0]) - 2)}'" if len(found[0]) > 1 else found[0]


class CommandLine(msgspec.Struct, frozen=True):
    """A parsed command line: the `folder` it changes to first (empty for none), the `rest` without filters of its output, and the
    `program` with its subcommand (`npm run check`, `git commit`). `masked`: the exit code may be another command's, for instance
    that of the last one in a pipe."""

    folder: str
    rest: str
    program: str
    masked: bool

    @property
    def only_files(self) -> bool:
        """True when the program only copies, moves, removes or shows files and the like, and checks nothing."""
        return self.program in _FILE_TOOLS


def in_folder(command: str) -> tuple[str, str]:
    """The folder that a command line changes to first (empty for none), and the command that it runs there."""
    folder, command = "", command.lstrip("\\ \t\n")
    while found := _CHANGE_FOLDER.match(command):
        folder, command = found[1].strip("'\""), command[found.end() :]
    return folder, command


@lru_cache(4_096)
def command_line(command: str) -> CommandLine:
    """A command line parsed by its words alone: good for telling runs of different programs apart, not for judging what is
    safe."""
    folder, rest = in_folder(command)
    bare = _STRINGS.sub("''", rest)
    masked = bool(_MASKED.search(bare)) and not _PIPEFAIL.search(bare)
    rest = _SHOWN_BY.sub("", rest).strip() or rest.strip()
    parts = [words for part in BETWEEN.split(bare) if (words := _words_run(part))]
    doing = [
        words for words in parts if not LOOKS.match(" ".join(words))
    ] or parts  # the action counts, not what was looked at afterwards
    return CommandLine(folder, rest, _program(doing[-1]) if doing else "", masked)


def part_checked(command: str) -> str:
    """The part of the project that a test run or another check was limited to (`tests/a.py`, the value of `-k`); empty where it
    checks everything, and for commands that are no check."""
    line = command_line(command)
    if not _CHECKS.search(line.program):
        return ""
    last = BETWEEN.split(_STRINGS.sub(lambda string: string[0].replace(" ", "·"), line.rest))[-1]
    words = last.split("|")[0].split(">")[0].split()
    inside = line.program.split()
    after = max((place for place, word in enumerate(words) if word.rpartition("/")[2] == inside[-1]), default=-1) + 1
    told: list[str] = []
    for before, word in zip(["", *words[after:]], words[after:], strict=False):
        if before in _SELECTS or not (_NOT_A_PART.fullmatch(word) or before in _WITH_A_VALUE or word[0] in "2&"):
            told.append(word.strip("'\""))
    return " ".join(told)


def _words_run(part: str) -> list[str]:
    """The words of a command without assignments and prefixes such as `sudo`; empty for commands such as `cd` and `echo`."""
    words = part.split("|")[0].split()
    while words and (words[0] in _IN_FRONT or _ASSIGNED.match(words[0])):
        words = words[1:]
    return [] if not words or words[0] in _ASIDE or words[0].startswith("#") else words


def _without_runner(words: list[str]) -> list[str]:
    """The words of a command without the launcher that finds the program: `uv run --frozen pytest` becomes `pytest`."""
    for front in _FINDERS:
        if tuple(words[: len(front)]) == front and len(words) > len(front):
            rest = words[len(front) :]
            while len(rest) > 1 and rest[0].startswith("-"):
                rest = rest[2 if rest[0] in _WITH_A_VALUE else 1 :]
            return rest
    return words


_GIT_WITH_A_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"})


def without_git_options(words: list[str]) -> list[str]:
    """The words of a command without git's global options: `git -C x -c a=b commit` becomes `git commit`."""
    at = 1
    while words[:1] == ["git"] and at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_WITH_A_VALUE else 1
    return [*words[:1], *words[at:]]


def _program(words: list[str]) -> str:
    """The program that a command runs, with its subcommand or script."""
    words = without_git_options(_without_runner(words))
    name = words[0].rpartition("/")[2]
    if name in _FILE_TOOLS:
        return name
    told = [name]
    room = 2 if name in _ONE_MORE else 0 if name in _ONE_TASK else 1
    for word in words[1:]:
        if told[-1] in _RUNNERS and not word.startswith("-"):
            told += [word] if word != "''" else []  # the script, unless its text is in the command line (`-c '…'`)
            break
        if word == "-m" and name in _RUNNERS:
            told.append(word)
        elif word.startswith("-"):
            continue
        elif room and _BARE_WORD.fullmatch(word):
            told.append(word)
            room += (word in _ONE_MORE) - 1
        else:
            break
    return " ".join(told)
