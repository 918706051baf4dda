"""What a tool wants to do, and what a person said about it: access requests, verdicts and rules. Pure; nothing is resolved
here."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ctxchat.core.patterns import Word

Access = Literal["none", "read", "write", "run", "network"]
"""`none`: touches nothing outside the conversation (a to-do list, recall, a question)."""

Verdict = Literal["once", "session", "always", "deny"]

Mode = Literal["ask", "read-only", "plan", "auto-edit", "all"]


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a command may do beyond its sandbox: reach the `network`, write in `folders` (absolute) too, or run `outside` of it.

    In a question it says what can be allowed, in an answer what was.
    """

    network: bool = False
    folders: tuple[str, ...] = ()
    outside: bool = False

    def __bool__(self) -> bool:
        return self != Grant()

    def __or__(self, other: Grant) -> Grant:
        """What either of them allows."""
        folders = tuple(dict.fromkeys((*self.folders, *other.folders)))
        return Grant(self.network or other.network, folders, self.outside or other.outside)


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person said to a question: `reason` why not; `rule`, as written (`shell: uv run pytest **`), what `session` and
    `always` let through from now on, one a line, empty for the first that was offered."""

    verdict: Verdict
    reason: str = ""
    rule: str = ""
    allowance: Grant = Grant()


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing a command line does, judged by itself: run a program (`words`) or write a file (`writes`, its resolved path).

    `reads`: it cannot write, whatever becomes of words that are not known yet; `inside`: it stays in the workspace; `plain`: it
    starts no program and loads no code, so it reads only wherever it runs. `patterns`
    are the rules it could be given, from this very command to the widest; none where no rule can hold it. `open`: a word of it
    may become anything, so that only these and `**` cover it. `paths` are the files it names, resolved; `below`: it goes through
    the folders among them, or the one it runs in. `inner` is what runs
    below it (`timeout 5 make`); `through`: a rule for that is enough.
    """

    words: tuple[Word, ...] = ()
    writes: str = ""
    reads: bool = False
    inside: bool = False
    plain: bool = False
    guarded: str = ""
    patterns: tuple[str, ...] = ()
    open: bool = False
    paths: tuple[str, ...] = ()
    below: bool = False
    inner: tuple[Part, ...] = ()
    through: bool = False

    @property
    def with_inner(self) -> tuple[Part, ...]:
        """It and all that runs below it, however deep."""
        return (self, *(deeper for inner in self.inner for deeper in inner.with_inner))


class AccessRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one call would do, for a judgement and for the person who is asked.

    `target` is the resolved path, the command line or the URL. `inside` is True when a path lies in the workspace; `guarded` is
    the guarded place a path leads to. `summary` is one line, `preview` a diff or the whole command. `patterns` are the rules that
    can be offered for `session` and `always`, from this very call to the widest; `parts` what a command line consists of, each
    with patterns of its own. `asks` is what the call cannot do without, and has with a yes; `allowance` what a person could add.
    `shut_in`: a command is run in a sandbox, and can be run in one where nothing is written and nothing outside is seen.
    """

    access: Access
    target: str = ""
    inside: bool = True
    summary: str = ""
    preview: str = ""
    patterns: tuple[str, ...] = ()
    allowance: Grant = Grant()
    guarded: str = ""
    parts: tuple[Part, ...] = ()
    asks: Grant = Grant()
    shut_in: bool = False

    @property
    def changing_words(self) -> tuple[str, ...]:
        """The texts by which the call may name a file that it changes: all its words, but for commands that only read."""
        pieces = [piece for part in self.parts for piece in part.with_inner if not piece.reads]
        words = [text for piece in pieces for text in (piece.writes, *piece.paths, *(w.text for w in piece.words))]
        return tuple(words) if self.parts else (self.target, self.preview)


SHELL_FOLDER = "shell-folder"
"""In place of a tool: the pattern is a folder, absolute, in which every shell command may write."""


class Rule(msgspec.Struct, frozen=True):
    """A standing permission: calls of `tool` that `pattern` covers are allowed, or forbidden where it `denies`; `network` lets a
    command reach the network as well. It holds in the workspace `folder`, everywhere without one."""

    tool: str
    pattern: str
    folder: str = ""
    denies: bool = False
    network: bool = False

    @property
    def text(self) -> str:
        """As shown, stored and parsed, the folder apart: `shell: git commit **`, `shell+network: uv sync **`,
        `deny shell: rm **`, `shell-folder: /home/me/.cache/uv`."""
        deny, network = "deny " * self.denies, "+network" * self.network
        return f"{deny}{self.tool}{network}: {self.pattern}"


_RULE = re.compile(r"(deny\s+)?([^\s:+]+)(\+network)?\s*:\s*(\S(?:.*\S)?)")


def parse_rule(text: str) -> Rule | None:
    """A rule as written in settings, None when it is none."""
    found = _RULE.fullmatch(text.strip()) if text.isprintable() else None
    return found and Rule(found[2], found[4], denies=bool(found[1]), network=bool(found[3]))


def parse_rules(text: str) -> tuple[Rule, ...] | None:
    """Rules, one a line; None when a line is none."""
    rules = [parse_rule(line) for line in text.splitlines() if line.strip()]
    return tuple(rule for rule in rules if rule) if rules and all(rules) else None
