"""Splits a shell command line into its parts: the programs it runs and the files it writes, each with the permission rules that
could cover it.

tree-sitter's grammar for bash parses the line, and each word is then parsed a second time by this module's own rules. Where the
two disagree, or a construct is not handled here, the line counts as one that no rule covers. Knows nothing of approvals.
"""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ctxchat.core.guarded import GUARDED, guarded
from ctxchat.core.patterns import Word, written
from ctxchat.core.permissions import Part
from ctxchat.tools.paths import ResolvedPath, new_and_hidden, patterns
from ctxchat.tools.programs import (
    breadths,
    goes_below,
    goes_elsewhere,
    is_interpreter,
    is_plain,
    makes_files,
    names_only,
    only_reads,
    runs_input,
    unwrapped,
    within_scripts,
    written_by,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LINE_CHARS = 20_000
"""Characters; a longer line is not taken apart."""

_MAX_DEPTH = 60
"""Levels of nesting, including substitutions and `bash -c` within each other."""

_MAX_PARTS = 200
"""Parts of a line, including the commands that its commands run. A line with more is not judged part by part: nobody would read
that many rules."""

_MAX_WORDS = 400
"""Words of one command; each may be a path and costs a look at the file system."""

_MAX_PATHS = 500
"""Paths of one command that are compared with rules for paths."""

_MAX_RULE_CHARS = 1_000
"""Characters of the longest rule that is offered; a person could not read a longer one."""

_STATEMENTS = frozenset({
    "program", "list", "pipeline", "subshell", "do_group", "compound_statement", "negated_command", "if_statement", "elif_clause",
    "else_clause", "while_statement", "for_statement", "case_statement", "case_item",
})  # fmt: skip
"""Types of grammar nodes that only group commands."""

_PUNCTUATION = frozenset({
    ";", "&", "&&", "||", "|", "\n", "(", ")", "{", "}", "!", "if", "then", "elif", "else", "fi", "while", "until", "do", "done",
    "for", "in", "case", "esac", "",
})  # fmt: skip

_WORDS = frozenset({
    "word", "string", "raw_string", "concatenation", "number", "simple_expansion", "expansion", "ansi_c_string",
    "translated_string", "command_substitution", "process_substitution", "arithmetic_expansion", "command_name",
    "variable_name", "extglob_pattern", "regex", "brace_expression", "special_variable_name", "variable_assignment",
})  # fmt: skip

_PLACEHOLDER = "\ufffc"
"""Character that stands in a word for each expansion or substitution, whose result is not known."""


def parts_of(command: str, workspace: str) -> tuple[Part, ...]:
    """The parts of a command line: what it does when bash runs it in `workspace`. A part without patterns is covered by no rule
    but `**`. Resolves paths on the file system, so call it off the event loop."""
    return _CommandLine(command, os.path.realpath(workspace)).parts()


def leaves_something_running(command: str) -> bool:
    """Whether the line starts a command in the background (`&`) and never calls `wait`. False for a line that cannot be
    parsed."""
    if "&" not in command or re.search(r"\bwait\b", command) or len(command) > MAX_LINE_CHARS:
        return False
    try:
        nodes = [_parser().parse(command.encode()).root_node]
    except (ImportError, ValueError, UnicodeError):
        return False
    while nodes:
        node = nodes.pop()
        if node.type == "&":
            return True
        nodes += node.children
    return False


@cache
def _parser() -> Parser:
    """The parser for bash. Importing it takes some 20 ms, so it is loaded when the first command is judged. Raises ImportError
    where tree-sitter has no build for this machine."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _Unclear(Exception):
    """The line has something that cannot be interpreted with certainty."""


class _Shared:
    """State that a line shares with the lines nested in it: `left`, how many parts it may still have, and `places`, the guarded
    path of each word looked up so far."""

    def __init__(self) -> None:
        self.left = _MAX_PARTS
        self.places: dict[Word, str] = {}


class _CommandLine:
    """One command line while it is split into parts. `depth` is how deep it is nested in other lines; `moved` says that an
    earlier command may have changed the working folder, so that relative paths cannot be resolved."""

    def __init__(
        self, command: str, root: str, depth: int = 0, moved: bool = False, shared: _Shared | None = None
    ) -> None:
        self._command = command
        self._root = root
        self._depth = depth
        self._found: list[Part] = []
        self._clear = True
        self._moved = moved
        self._shared = shared or _Shared()

    def parts(self) -> tuple[Part, ...]:
        """The parts of the line, with a last one that no rule covers where the line is not fully understood."""
        try:
            _check_characters(self._command)
            tree = _parser().parse(self._command.encode())
            if tree.root_node.has_error:
                self._clear = False
            self._statement(tree.root_node, self._depth)
        except (_Unclear, ImportError, OSError, ValueError, UnicodeError, RecursionError):
            self._clear = False
        if not self._clear or not self._found:
            self._found.append(Part((Word(self._command, False),)))
        return tuple(self._found)

    # ── statements ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _statement(self, node: Node, depth: int, piped: bool = False) -> None:
        if depth > _MAX_DEPTH:
            raise _Unclear
        match node.type:
            case "command":
                self._simple(node, (), depth, piped)
            case "redirected_statement":
                self._redirected(node, depth, piped)
            case "comment":
                if "\n" in _node_text(node):
                    raise _Unclear
            case "variable_assignment" | "variable_assignments" | "declaration_command" | "unset_command":
                self._add([self._word(child, depth) for child in _assignment_words(node)])
            case "test_command":
                self._condition(node, depth)
            case "function_definition":
                self._clear = False
                for child in node.named_children:
                    if child.type in _STATEMENTS:
                        self._statement(child, depth + 1)
            case "for_statement" if not re.fullmatch(
                r"[a-z_][a-z0-9_]*", _node_text(_first(node, "variable_name") or node)
            ):
                raise _Unclear  # a loop variable in capitals may be PATH or another that changes what runs
            case "compound_statement" if not re.match(r"\{[ \t\n]", _node_text(node)):
                raise _Unclear  # `{}` and `{ls` are names of programs
            case "negated_command" if not re.match(r"![ \t\n(]", _node_text(node)):
                raise _Unclear  # `!ls` is the name of a program too
            case kind if kind in _STATEMENTS:
                self._children(node, depth, piped)
            case kind if kind in _WORDS:
                self._word(node, depth)  # the items of a loop, the subject of a case
            case _:
                self._clear = False
                self._look_below(node, depth)

    def _children(self, node: Node, depth: int, piped: bool) -> None:
        if not _gapless(node):
            raise _Unclear
        behind_pipe = piped
        for child in node.children:
            if not child.is_named:
                if child.type not in _PUNCTUATION and (node.type, child.type) not in {
                    ("pipeline", "|&"),
                    ("case_item", ";;"),
                }:
                    self._clear = False  # `((` and the like
                behind_pipe = behind_pipe or child.type in {"|", "|&"}
                continue
            self._statement(child, depth + 1, behind_pipe)

    def _look_below(self, node: Node, depth: int) -> None:
        """Add the commands inside a construct that is not understood, so that rules that forbid still see them."""
        for child in node.named_children:
            if child.type in {"command", "redirected_statement"} or child.type in _STATEMENTS:
                self._statement(child, depth + 1)
            else:
                self._look_below(child, depth + 1)

    def _condition(self, node: Node, depth: int) -> None:
        """Add a `[ … ]` or `[[ … ]]`. Bash evaluates its operands, and the index of an array in one may hold a command: such a
        test is not clear."""
        words = [self._word(child, depth) for child in _leaves(node) if child.type in _WORDS]
        if _node_text(node)[:2] == "((" or any(not word.known or set("[]$`(") & set(word.text) for word in words):
            self._clear = False
        self._found.append(Part((Word("test"), *words), reads=True, inside=self._all_inside(words), plain=True))

    def _redirected(self, node: Node, depth: int, piped: bool) -> None:
        if not _gapless(node):
            raise _Unclear
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if body is None or child.id != body.id]
        if body is not None and body.type == "command":
            self._simple(body, redirects, depth, piped)
            return
        if body is not None:
            self._statement(body, depth + 1, piped)
        for redirect in redirects:
            if self._redirect(redirect, depth):
                self._clear = False

    # ── simple commands ─────────────────────────────────────────────────────────────────────────────────────────────

    def _simple(self, node: Node, redirects: Sequence[Node], depth: int, piped: bool) -> None:
        if not _gapless(node):
            raise _Unclear
        words: list[Word] = []
        inputs: list[Word] = []
        for child in (*node.children, *redirects):
            if child.type.endswith("_redirect"):
                inputs += self._redirect(child, depth)
                words += [self._word(more, depth) for more in _trailing_arguments(child)]
            elif child.type in _WORDS:
                words.append(self._word(child, depth))
            else:
                raise _Unclear
        self._add(words, inputs, piped)

    def _add(self, words: Sequence[Word], inputs: Sequence[Word] = (), piped: bool = False) -> None:
        if part := self._parse_command(tuple(words), tuple(inputs), piped):
            self._found.append(part)

    def _parse_command(
        self, words: tuple[Word, ...], inputs: tuple[Word, ...] = (), piped: bool = False
    ) -> Part | None:
        """The part for one command, None for no words. `inputs` are the files and texts redirected to it, `piped` says that its
        input comes from a pipe. Input to a shell or an interpreter is a program that differs each time, so it counts as a word of
        its own, which no rule matches."""
        if not words:
            return None
        self._shared.left -= 1
        if self._shared.left < 0 or len(words) > _MAX_WORDS:
            raise _Unclear
        fed = (Word("<input>", False),) if (piped or inputs) and runs_input([w.text for w in words]) else ()
        reads = only_reads(words, self._expanded)
        plain = [word for word in (*words[1:], *inputs) if word.text and (word.known or not word.text.startswith("<<"))]
        plain += within_scripts(words)
        if words[0] == Word("cd"):
            reads = (
                len(words) == 2 and words[1].known and not self._moved and self._resolved(words[1].text) == self._root
            )
            self._moved = self._moved or not reads
        elif words[0].text in {"pushd", "popd", "source", ".", "eval", "exec", "trap", "alias"}:
            self._moved = True
        inner, through = self._inner(words)
        if fed and is_interpreter(words[0].text):
            inner = (*inner, Part((Word("$", False),)))  # its input may hold any command
        for file in written_by(words):
            self._found.append(self._written(file))
        guarded_place = (
            "" if reads or through or names_only(words) else next(filter(None, map(self._guarded, plain)), "")
        )
        if not guarded_place and makes_files(words):
            guarded_place = next(filter(None, map(self._new_and_hidden, plain)), "")
        return Part(
            (*words, *fed, *(Word(f"<{word.text}", False) for word in inputs if not reads)),
            reads=reads and not fed,
            inside=reads and self._all_inside(plain) and not goes_elsewhere(words),
            plain=reads and (words[0].text == "cd" or is_plain(words)),
            open=not reads and any(map(_may_be_anything, words)),
            paths=self._paths(plain),
            below=goes_below(words),
            guarded=guarded_place,
            patterns=()
            if fed or inputs
            else _patterns(words) + (inner[0].patterns if through and len(inner) == 1 else ()),
            inner=inner,
            through=through,
        )

    def _inner(self, words: tuple[Word, ...]) -> tuple[tuple[Part, ...], bool]:
        """The commands that a command runs (as `sudo` or `bash -c` do), and whether running them is all it does."""
        if self._depth > 8:
            return (), False
        below = unwrapped(words)
        found: list[Part] = []
        for lower in below.commands:
            line = _CommandLine("", self._root, self._depth + 1, self._moved, self._shared)
            if part := line._parse_command(lower):
                found += [part, *line._found]
        if below.line is not None:
            found += _CommandLine(below.line, self._root, self._depth + 1, self._moved, self._shared).parts()
        return tuple(found), below.through and bool(found)

    # ── redirections ────────────────────────────────────────────────────────────────────────────────────────────────

    def _redirect(self, node: Node, depth: int) -> list[Word]:
        """The inputs that a redirection gives its command; a file that it writes is added as a part."""
        match node.type:
            case "heredoc_redirect":
                return self._here_document(node, depth)
            case "herestring_redirect":
                return [Word(f"<<<{self._word(child, depth).text}", False) for child in node.named_children]
            case "file_redirect":
                return self._file_redirect(node, depth)
            case _:
                raise _Unclear

    def _file_redirect(self, node: Node, depth: int) -> list[Word]:
        if not _gapless(node):
            raise _Unclear
        operator = next((child.type for child in node.children if not child.is_named), "")
        targets = [child for child in node.named_children if child.type != "file_descriptor"][:1]
        if operator in {">&-", "<&-"} and not targets:
            return []
        if len(targets) != 1:
            raise _Unclear
        target = self._word(targets[0], depth)
        if operator in {">&", "<&"} and target.known and re.fullmatch(r"\d+-?|-", target.text):
            return []
        if operator == "<" and targets[0].type != "process_substitution":
            return [target] if target != Word("/dev/null") else []
        if operator not in {">", ">>", ">|", "&>", "&>>", ">&", "<"}:
            raise _Unclear
        if target.known and target.text in {"/dev/null", "/dev/stdout", "/dev/stderr"}:
            return []
        if targets[0].type != "process_substitution":
            self._found.append(self._written(target))
        return []

    def _written(self, target: Word) -> Part:
        if not target.known or (self._moved and not target.text.startswith("/")):
            return Part((Word(f">{target.text}", False),), guarded=self._guarded(target))
        path = self._resolved(target.text)
        below = os.path.relpath(path, self._root) if _under(path, self._root) else ""
        if path.startswith(("/dev/", "/proc/", "/sys/")):
            raise _Unclear
        place = ResolvedPath(Path(path), below or path, bool(below))
        return Part(writes=path, inside=place.inside, guarded=place.guarded, patterns=patterns(place))

    def _here_document(self, node: Node, depth: int) -> list[Word]:
        """The input that a here-document gives its command. Where it ends is checked a second time: the lines after it are
        commands."""
        start, body, end = (_first(node, f"heredoc_{what}") for what in ("start", "body", "end"))
        operator = next((child.type for child in node.children if not child.is_named), "")
        if not _gapless(node):
            raise _Unclear
        if start is None or end is None:
            raise _Unclear
        name = _node_text(start)
        word = name.strip("'\"")
        quoted = name in {f"'{word}'", f'"{word}"'}
        if not re.fullmatch(r"[A-Za-z_]\w*", word) or not (quoted or name == word):
            raise _Unclear
        text = _node_text(body) if body is not None else ""
        lines = [line.lstrip("\t") if operator == "<<-" else line for line in text.split("\n")]
        if word in lines or _node_text(end).strip() != word or (not quoted and re.search(r"`|\$[({\[]|\\", text)):
            raise _Unclear
        for child in node.named_children:
            if child.type in {"heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"}:
                continue
            if child.type.endswith("_redirect"):
                self._redirect(child, depth)
            elif child.type in _WORDS:
                raise _Unclear  # an argument after the `<<NAME`
            else:
                self._statement(child, depth + 1, piped=True)
        return [Word(f"<<{word}\n{text}", False)]

    # ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _word(self, node: Node, depth: int) -> Word:
        """A word as the program will receive it: without quotes, not `known` where the shell expands it. Commands substituted in
        it are added as parts."""
        raw = _node_text(node)
        pieces = bytearray(node.text or b"")
        for inner in reversed(list(self._holes(node, depth))):
            start, end = inner.start_byte - node.start_byte, inner.end_byte - node.start_byte
            pieces[start:end] = _PLACEHOLDER.encode()
        text = _unquoted(pieces.decode())
        return Word(raw, False) if text is None else Word(text)

    def _holes(self, node: Node, depth: int) -> list[Node]:
        """The outermost expansions and substitutions in a word, in order."""
        if depth > _MAX_DEPTH:
            raise _Unclear
        match node.type:
            case "command_substitution" | "process_substitution":
                for child in node.children:
                    if child.is_named:
                        self._statement(child, depth + 1)
                    elif child.type not in {"$(", ")", "`", "<(", ">(", *_PUNCTUATION}:
                        self._clear = False
                return [node]
            case "expansion":
                if not re.fullmatch(r"\$\{[A-Za-z_]\w*\}", _node_text(node)):
                    self._clear = False  # ${x@P}, ${!x} and similar may run the content of x
                    self._look_below(node, depth)
                return [node]
            case "arithmetic_expansion":
                if re.search(r"[^\d\s+*/%()<>=&|^~-]", _node_text(node).removeprefix("$((").removesuffix("))")):
                    self._clear = False  # a name may hold an array index, and that index a command
                    self._look_below(node, depth)
                return [node]
            case "simple_expansion":
                return [node]
            case "extglob_pattern" | "brace_expression" | "regex" | "ERROR":
                self._clear = False
                return [node]
            case _:
                return [hole for child in node.named_children for hole in self._holes(child, depth + 1)]

    # ── paths ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _resolved(self, path: str) -> str:
        return os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118 - a text, which need not be a path

    def _candidates(self, text: str) -> list[str]:
        """The pieces of an argument that could be a path: `--file=x`, `-fx`, `-abfx`, `of=x`, `host:x`, `@x`."""
        pieces = [text, *re.split(r"[=:,@]", text)]
        short = text.startswith("-") and not text.startswith("--")
        return [piece for piece in (*pieces, *(text[n:] for n in range(2, 6) if short)) if piece]

    def _all_inside(self, words: Sequence[Word]) -> bool:
        """Whether every piece of the words that may be a path lies in the workspace, links followed."""
        if self._moved:
            return False
        texts = [text for word in words for text in ([word.text] if word.known else self._expanded(word) or ["/"])]
        return all(_under(self._resolved(piece), self._root) for text in texts for piece in self._candidates(text))

    def _paths(self, words: Sequence[Word]) -> tuple[str, ...]:
        """The existing files and folders that the words name, links followed."""
        texts = [text for word in words for text in ([word.text] if word.known else self._expanded(word) or ())]
        found = (self._resolved(piece) for text in texts for piece in self._candidates(text))
        return tuple(dict.fromkeys(path for path in found if os.path.lexists(path)))[:_MAX_PATHS]

    def _expanded(self, word: Word) -> list[str] | None:
        """The file names that a glob matches now, and the glob itself; None for any other word that is not known, and for more
        than 500 matches."""
        if not re.fullmatch(r"[\w./*?=-]+", word.text) or not re.search(r"[*?]", word.text) or self._moved:
            return None
        if word.text.startswith("/") or ".." in word.text.split("/") or word.text.count("*") > 4:
            return None
        found = list(islice(glob.iglob(word.text, root_dir=self._root), 501))  # noqa: PTH207 - bash's own rules
        return [*found, word.text] if len(found) <= 500 else None

    def _guarded(self, word: Word) -> str:
        """The guarded path that a word names, or could name; empty for none."""
        if word not in self._shared.places:
            self._shared.places[word] = self._guarded_path(word)
        return self._shared.places[word]

    def _new_and_hidden(self, word: Word) -> str:
        """The new hidden path at the top of the workspace that a command with this argument would create; empty for none."""
        paths = [self._resolved(piece) for piece in self._candidates(word.text)] if word.known else []
        inside = [path for path in paths if _under(path, self._root) and path != self._root]
        return next(
            filter(None, (new_and_hidden(Path(path), os.path.relpath(path, self._root)) for path in inside)), ""
        )

    def _guarded_path(self, word: Word) -> str:
        if not word.known:
            steps = re.split(r"[^\w.*?\[\]-]+", re.sub(r"""['"\\]""", "", word.text.casefold()))
            return next((hit for step in steps if step and (hit := guarded(step) or _guarded_match(step))), "")
        for piece in self._candidates(word.text):
            if hit := guarded(piece) if piece != "HEAD" else "":
                return hit
            path = self._resolved(piece)
            inside = _under(path, self._root) and path != self._root and piece != "HEAD"
            if inside and (hit := guarded(os.path.relpath(path, self._root))):
                return hit
        # A guarded name after an option's letters in the same word: `cf.git/hooks/x`.
        hidden = re.finditer(r"(?<=[^/])\.[\w.-]+(?=/)", word.text) if "://" not in word.text else ()
        return next((hit for found in hidden if (hit := guarded(found[0]))), "")


def _check_characters(command: str) -> None:
    """Raises _Unclear for characters that a shell and a person may read differently, or that a person does not see, and for a
    line that is too long."""
    if len(command) > MAX_LINE_CHARS or re.search(r"(?<![ \t])\\\n|\\\n#", command):
        raise _Unclear
    for character in set(command):
        if character not in " \t\n" and (unicodedata.category(character)[0] in "CZ" or character == _PLACEHOLDER):
            raise _Unclear


def _unquoted(raw: str) -> str | None:
    """A word without its quotes; None where the shell expands part of it. Raises _Unclear for text that is not one word."""
    out: list[str] = []
    known, at = True, 0
    while at < len(raw):
        character = raw[at]
        if character == "'":
            end = raw.find("'", at + 1)
            if end < 0:
                raise _Unclear
            out.append(raw[at + 1 : end])
            at = end
        elif character == '"':
            end, text, whole = _double_quoted(raw, at + 1)
            out.append(text)
            known = known and whole
            at = end
        elif character == "\\":
            if at + 1 == len(raw) or raw[at + 1] == "\n":
                raise _Unclear
            out.append(raw[at + 1])
            at += 1
        elif character == "$" and raw[at + 1 : at + 2] == "'":
            found = re.match(r"'(?:[^'\\]|\\.)*'", raw[at + 1 :], re.DOTALL)
            if not found:
                raise _Unclear
            known = False
            at += found.end()
        elif character == _PLACEHOLDER:
            known = False
        elif (
            (character == "$" and raw[at + 1 : at + 2])
            or character in "`;&|<>() \t\n"
            or (character == "#" and at == 0)
        ):
            raise _Unclear
        else:
            known = (
                known
                and not (character in "*?[]{}" and raw != "{}")
                and not (character == "~" and (at == 0 or raw[at - 1] in "=:"))
            )
            out.append(character)
        at += 1
    return "".join(out) if known else None


def _double_quoted(raw: str, at: int) -> tuple[int, str, bool]:
    """The index of the quote that closes a double-quoted text whose content begins at `at`, the text, and whether it holds no
    expansion. Raises _Unclear."""
    out: list[str] = []
    known = True
    while at < len(raw):
        character, following = raw[at], raw[at + 1 : at + 2]
        if character == '"':
            return at, "".join(out), known
        if character == "`" or (character == "$" and re.match(r"[\w{(\[@*#?!$-]", following)):
            raise _Unclear
        if character == "\\" and following and following in '$`"\\\n':
            out.append(following if following != "\n" else "")
            at += 2
            continue
        known = known and character != _PLACEHOLDER
        out.append(character)
        at += 1
    raise _Unclear


def _may_be_anything(word: Word) -> bool:
    """Whether a word depends on more than which files exist (a variable, a command's output): it may be an option or any path."""
    return not word.known and bool(re.search(r"[$`]|[<>]\(", word.text))


def _patterns(words: tuple[Word, ...]) -> tuple[str, ...]:
    exact = written(words)
    # A variable set by a loop or by `read` has another value each time.
    varies = any(not word.known and re.search(r"\$\{?[a-z_0-9@*#?!-]|\$'", word.text) for word in words)
    fits = len(exact) <= _MAX_RULE_CHARS and exact.isprintable() and exact == exact.strip() and not varies
    return (*((exact,) if fits else ()), *(() if any(map(_may_be_anything, words)) else breadths(words)))


def _node_text(node: Node) -> str:
    return (node.text or b"").decode()


def _first(node: Node, kind: str) -> Node | None:
    return next((child for child in node.named_children if child.type == kind), None)


def _trailing_arguments(redirect: Node) -> list[Node]:
    """The arguments after `> file`, which the grammar takes for further files of the redirection."""
    if redirect.type != "file_redirect":
        return []
    return [child for child in redirect.named_children if child.type != "file_descriptor"][1:]


def _assignment_words(node: Node) -> list[Node]:
    """The words of `export A=b`, `A=b C=d` or `A=b`."""
    if node.type == "variable_assignment":
        return [node]
    if any(child.type not in _WORDS and child.is_named for child in node.children) or not _gapless(node):
        raise _Unclear
    return list(node.children)


def _leaves(node: Node) -> list[Node]:
    found: list[Node] = []
    waiting: list[Node] = [node]
    while waiting:
        at = waiting.pop()
        if at.type in _WORDS or not at.children:
            found.append(at)
        else:
            waiting += reversed(at.children)
    return found


def _gapless(node: Node) -> bool:
    """Whether only blanks and continued line ends lie between the children of a node: the grammar has skipped nothing."""
    text, at = node.text or b"", node.start_byte
    for child in (*node.children, None):
        end = child.start_byte if child else node.end_byte
        if text[at - node.start_byte : end - node.start_byte].replace(b"\\\n", b"").strip(b" \t\n"):
            return False
        at = max(at, child.end_byte if child else at)
    return True


def _under(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _guarded_match(glob: str) -> str:
    """The guarded name that a glob could match; empty for none. One that begins with a wildcard matches no hidden file."""
    if glob[0] not in ".[":
        return ""
    return next((name for name in GUARDED if name.startswith(".") and fnmatchcase(name, glob)), "")
