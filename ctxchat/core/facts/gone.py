"""Finds what a call or a sentence makes untrue, and removes the facts that it makes so: files moved or removed, names and values
taken out of the code, edits undone by git, requests withdrawn, proposals that the person turned down.

These findings are kept with the facts from compaction to compaction, so that a later mention does not bring a thing back.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.expressions import expression
from ctxchat.core.facts.numbers import values_in
from ctxchat.core.facts.shared import FILES, name_in, plain
from ctxchat.core.facts.symbols import defined
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.record import Fact, FactKind, Gone
from ctxchat.core.tooluse import (
    BETWEEN,
    command_line,
    exchanges,
    exit_code,
    failed,
    patched,
    refused,
    use_of,
    without_git_options,
)

MAX_GONE = 300
"""The most findings that are kept, the newest."""

_SAID: frozenset[FactKind] = frozenset({"rule", "decision"})
_NAME = expression(r"[A-Za-z_$][\w$]{2,60}")
_SUBSTITUTED = expression(r"\bs([/|#,])(?:\\b|\\<)?([A-Za-z_]\w{2,60})(?:\\b|\\>)?\1[^\n]*?\1\w*g")
_TAKEN_BACK = expression(
    r"\b(?:never ?mind|forget (?:about )?|scrap|drop the|no longer|not any ?more|don't need|cancel|take back"
    r"|vergiss|nicht mehr|lass das mit|brauche? (?:ich |wir )?(?:doch )?(?:nicht|kein\w*)"
    r"|olvida\w*|ya no|esquece|não precisa mais|laisse tomber|oublie|plus besoin|dimentica|non serve più)\b"
    r"|不要了|算了|不用了|もういい|やめて|取り消",
    re.IGNORECASE,
)
FORBIDS = expression(r"\b(?:never|do not|don't|dont|avoid|not|nie|nicht|jamais|nunca|não|mai)\b", re.IGNORECASE)
_WORD = expression(r"[^\W\d_][\w-]{3,}|[\u3040-\u30ff\u4e00-\u9fff]{2}")
_EMPTY = frozenset(
    re.findall(r"\w+", "rule that this about thing idea request with more please them what have need want anymore")
)
_NO = expression(
    r"\s*(?:no+|nope|nah|nein|nee|non|não|nao|ne pas|stop|wait|wrong|incorrect|falsch|stimmt nicht|quatsch|halt|revert|undo"
    r"|don'?t|do not|not (?:like )?(?:that|this)|that'?s (?:not|wrong)|mach das nicht|lass das)\b(?! problem| worries| need)"
    r"|\s*(?:不[是对要行]|错|いいえ|違う|ダメ|だめ)",
    re.IGNORECASE,
)
"""The beginning of a message that turns down what was said before it."""
_ADDS = expression(r"insert|append|patch")
_ADDED_AT = frozenset({"insert_line", "line", "line_number", "after", "before"})
"""Arguments that show that a call inserts text into a file instead of replacing all of it."""
_MAX_RETRACTION_WORDS = 14
"""A sentence with more words than this is not taken for a retraction, since it says other things as well."""


def gone_of(group: Group) -> Iterator[Gone]:
    """The things that this group makes untrue."""
    if group.kind == "user":
        yield from _taken_back(group.first)
        if turns_down(group.first.text):
            yield Gone("proposal", plain(group.first.text[:80]), group.first.seq, turn=group.turn)
    results = {m.call_id: m for m in group.messages if m.role == "tool"} if group.kind == "round" else {}
    for call in group.first.calls if group.kind == "round" else ():
        result = results.get(call.id)
        if result is not None and not refused(result) and not result.synthetic:
            yield from _removed(call, result)


def turns_down(words: str) -> bool:
    """True where a person's message begins by turning down what was said or done before it."""
    return bool(_NO.match(words))


def newest(several: Iterable[Gone]) -> tuple[Gone, ...]:
    """The newest of these findings, each once, oldest first, at most `MAX_GONE`."""
    kept = {(gone.kind, gone.key, gone.where, gone.turn): gone for gone in sorted(several, key=lambda g: g.seq)}
    return tuple(sorted(kept.values(), key=lambda g: g.seq)[-MAX_GONE:])


def still_true(facts: Iterable[Fact], gone: Iterable[Gone]) -> list[Fact]:
    """The facts without those that `gone` makes untrue; files that were moved get their present path."""
    index = _Index(gone)
    return [now for fact in facts if (now := index.fact_now(fact)) is not None]


class _Index:
    """An index of what is gone by the words that an affected fact must have, since there are hundreds of both."""

    def __init__(self, gone: Iterable[Gone]) -> None:
        self._by: defaultdict[str, list[Gone]] = defaultdict(list)
        self._said: list[Gone] = []
        self._proposals: list[Gone] = []
        self._taken_out: list[Gone] = []
        self._removed: dict[str, list[Gone]] = defaultdict(list)
        gone = list(gone)
        self._commits = [one.seq for one in gone if one.kind == "commit"]
        for one in gone:
            if one.kind in {"said", "proposal"}:
                self._said.append(one)
                self._proposals += [one] if one.kind == "proposal" else []
            elif one.kind == "edit":
                self._taken_out.append(one)
            elif one.kind != "commit":
                name = name_in(one.key)
                self._by[name].append(one)
                if one.kind == "file" and not one.now and "." in name:
                    self._removed[name].append(one)

    def fact_now(self, fact: Fact) -> Fact | None:
        """The fact as it is now; None where it no longer holds."""
        now: Fact | None = fact
        for one in self._about(fact):
            now = now and _fact_after(now, one)
        if now and now.kind == "changed" and any(self._undoes(one, now) for one in self._taken_out):
            return None
        return now

    def _undoes(self, gone: Gone, changed: Fact) -> bool:
        """True where `gone` discards this change to a file, which was not committed before."""
        if changed.seq >= gone.seq or any(changed.seq < seq < gone.seq for seq in self._commits):
            return False
        return not gone.key or _moved(changed.key, gone) is not None

    def _about(self, fact: Fact) -> Iterable[Gone]:
        """The findings that may affect a fact, in the order in which they were made."""
        match fact.kind:
            case "rule" | "decision":
                return self._said
            case "error":
                return [one for name, some in self._removed.items() if name in fact.key for one in some]
            case "command":
                return [one for name in map(name_in, fact.key.split()) for one in self._by.get(name, ())]
            case "number":
                return [*self._by.get(fact.key.rpartition(" ")[2], ()), *self._said]
            case "symbol" | "changed" | "read" | "path":
                words = {*fact.key.split("/"), *(fact.value.split("/") if fact.kind == "symbol" else ())}
                about = [one for word in words for one in self._by.get(word, ())]
                moved = {word for one in about if one.now for word in one.now.split("/")} - words
                about += [one for word in moved for one in self._by.get(word, ())]  # the file may have been moved twice
                about += self._proposals if fact.kind == "symbol" else []
                return sorted(about, key=lambda one: one.seq)
            case _:
                return ()


def _fact_after(fact: Fact, gone: Gone) -> Fact | None:
    """The fact after something was found to be gone: unchanged, with the new path of a moved file, or None where it no longer
    holds. Facts that are newer than the finding mostly hold again."""
    match gone.kind:
        case "file" if fact.kind in FILES:
            if (now := _moved(fact.key, gone)) is None or (fact.seq >= gone.seq and fact.kind != "path"):
                return fact
            return msgspec.structs.replace(fact, key=now) if now else None
        case "file" if fact.kind == "symbol" and fact.value and fact.seq < gone.seq:
            now = _moved(fact.value, gone)
            return fact if now is None else msgspec.structs.replace(fact, value=now) if now else None
        case "file" if fact.kind == "command" and fact.seq < gone.seq:
            return None  # the command would no longer run
        case "file" if fact.kind == "error" and fact.seq < gone.seq and not gone.now:
            return None if name_in(gone.key) in fact.key else fact
        case "name" if fact.kind == "symbol" and fact.key == gone.key:
            elsewhere = gone.where and fact.value and not same_file(fact.value, gone.where)
            return fact if elsewhere or (fact.seq >= gone.seq and fact.value) else None
        case "name" if fact.kind == "number" and fact.key.rpartition(" ")[2] == gone.key and fact.seq < gone.seq:
            return None
        case "rewritten" if fact.kind == "symbol" and fact.value and fact.seq < gone.seq:
            return None if same_file(fact.value, gone.key) else fact
        case "value" if fact.kind == "number" and fact.seq < gone.seq and fact.value == gone.where:
            return None if fact.key.rpartition(" ")[2] == gone.key else fact
        case "proposal" if fact.kind == "symbol" and (fact.value or fact.turns > 1):
            return fact  # the name is in a file, or was mentioned before the proposal
        case "proposal" if fact.kind in {"decision", "number", "symbol"} and fact.by != "user" and fact.seq < gone.seq:
            return None if fact.turn >= gone.turn - 1 else fact
        case "said" if fact.kind in _SAID and fact.seq < gone.seq and not FORBIDS.search(fact.key):
            about = _content_words(gone.key)
            return None if about and about <= _content_words(fact.key) else fact
        case _:
            return fact


def same_file(one: str, other: str) -> bool:
    """True where two paths may name one file: they are equal, or one is the end of the other."""
    one, other = one.removeprefix("./"), other.removeprefix("./")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _moved(path: str, gone: Gone) -> str | None:
    """The present path of a file that was moved or removed, by itself or with a folder above it; empty where it was removed, None
    where `gone` is about another file."""
    if same_file(path, gone.key):
        return gone.now
    folder = gone.key.rstrip("/") + "/"
    at = path.find(folder) if folder.count("/") > 1 else 0 if path.startswith(folder) else -1
    if at < 0 or (at and path[at - 1] != "/"):
        return None
    if not gone.now:
        return ""
    above = "" if gone.now.startswith("/") else path[:at]
    return f"{above}{gone.now.rstrip('/')}/{path[at + len(folder) :]}"


# ── finding what is gone ──


def _removed(call: ToolCall, result: Message) -> Iterator[Gone]:
    """What a call made untrue: files it removed or moved, and names and values that its edit took out."""
    use = use_of(call)
    if use.kind != "run" and failed(result):
        return
    for change in patched(call):
        if change.kind in {"delete", "move"}:
            yield Gone("file", change.path, result.seq, now=change.now)
    if use.kind == "run":
        line = command_line(use.target)
        if line.masked or (not failed(result) and exit_code(result.text) in {None, 0}):
            yield from _by_command(use.target, line.folder, result.seq)
    elif use.kind == "change":
        words = call.name.lower()
        if "delete" in words or "remove" in words:
            yield Gone("file", use.target, result.seq)
            return
        fields = fields_of(call.arguments) or {}
        everywhere = fields.get("replace_all") is True
        for old, new in exchanges(call):
            if old is None and not _ADDS.search(words) and _ADDED_AT.isdisjoint(fields):
                yield Gone("rewritten", use.target, result.seq)
            elif old is not None:
                given = values_in(new)
                again = {name for name, _ in given}
                yield from (
                    Gone("value", name, result.seq, value)
                    for name, value in sorted(values_in(old) - given)
                    if name in again
                )
                names = {old} if everywhere and _NAME.fullmatch(old) else set(defined(old)) - set(_NAME.findall(new))
                yield from (Gone("name", name, result.seq, use.target) for name in sorted(names))


def _by_command(command: str, folder: str, seq: int) -> Iterator[Gone]:
    """What a command line made untrue, part by part: `rm`, `mv`, git, and replacements by `sed` or `perl`. `folder` is where it
    ran."""
    for part in BETWEEN.split(command):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            continue
        words = words[words.index("xargs") + 1 :] if "xargs" in words else words
        words = words[1:] if words[:1] == ["sudo"] else words
        bare = without_git_options(words)
        options = words[1 : 1 + len(words) - len(bare)]
        there = _below(folder, options[options.index("-C") + 1]) if "-C" in options[:-1] else folder
        yield from _by_git(bare, there, seq)
        words = bare[1:] if bare[:1] == ["git"] else bare
        program, rest = (words or [""])[0], [word for word in words[1:] if not word.startswith(("-", ">", "2>", "|"))]
        paths = [_below(there, path) for path in rest]
        if program == "rm":
            yield from (Gone("file", path, seq) for path in paths if not re.search(r"[*?\[$]", path))
        elif program == "mv" and len(paths) > 1:
            into = _below(there, "") if rest[-1] == "." else paths[-1]
            for path in paths[:-1]:
                inside = (
                    len(paths) > 2
                    or rest[-1].endswith(("/", "."))
                    or ("." in name_in(path) and "." not in name_in(into))
                )
                yield Gone("file", path, seq, now=_below(into.rstrip("/"), name_in(path)) if inside else into)
        elif program in {"sed", "perl"} and re.search(r"\s-\w*i", part):
            where = rest[-1] if len(rest) == 2 and not re.search(r"[*?$]", rest[-1]) else ""
            yield from (Gone("name", match[2], seq, where) for match in _SUBSTITUTED.finditer(part))


def _by_git(words: list[str], folder: str, seq: int) -> Iterator[Gone]:
    """What a git command does to uncommitted changes: a commit keeps them, other commands discard them."""
    match words:
        case ["git", "commit", *_]:
            yield Gone("commit", str(seq), seq)
        case ["git", "reset", *rest] if "--hard" in rest:
            yield Gone("edit", "", seq)
        case ["git", "restore" | "checkout", *rest] if "--staged" not in rest and not {"-b", "-B"} & {*rest}:
            at = rest.index("--") + 1 if "--" in rest else 0
            paths = [p for p in rest[at:] if not p.startswith("-")]
            if not at and words[1] == "checkout":  # without `--` a word may be a branch
                paths = [p for p in paths if p == "." or "." in name_in(p)]
            yield from (Gone("edit", "" if p in {".", "./"} else _below(folder, p), seq) for p in paths)
        case _:
            return


def _below(folder: str, path: str) -> str:
    path = path.removeprefix("./")
    return path if not folder or path.startswith(("/", "~")) else f"{folder.rstrip('/')}/{path}"


def _taken_back(message: Message) -> Iterator[Gone]:
    for sentence in re.split(r"[.!?。！？\n;]+", message.text):
        if _TAKEN_BACK.search(sentence) and len(sentence.split()) <= _MAX_RETRACTION_WORDS:
            yield Gone("said", plain(sentence), message.seq)


def _content_words(sentence: str) -> set[str]:
    """The meaningful words of a sentence, in lower case."""
    return {w for w in map(str.lower, _WORD.findall(_TAKEN_BACK.sub(" ", sentence))) if w not in _EMPTY}
