"""The values of permissions: what a tool call wants to touch (`AccessRequest`, made of `Part`s where it is a command line), a
person's answer to it, and standing rules.

Pure: tools resolve paths and make the requests (`tools.command_line`), `agent.turn.permissions` judges them, and `core.patterns`
compares rules.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ctxchat.core.patterns import Word

Access = Literal["none", "read", "write", "run", "network"]
"""`none`: touches nothing outside the conversation (a to-do list, recall, a question)."""

Verdict = Literal["once", "session", "always", "deny"]
"""A person's answer to a call: allowed this once, for this session, always in this folder, or denied."""

Mode = Literal["ask", "read-only", "plan", "auto-edit", "all"]


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a command may do beyond what its sandbox allows: reach the `network`, write in `folders` (absolute paths), or run
    `outside` of the sandbox. In a question it is what can be allowed, in an answer what was."""

    network: bool = False
    folders: tuple[str, ...] = ()
    outside: bool = False

    def __bool__(self) -> bool:
        return self != Grant()

    def __or__(self, other: Grant) -> Grant:
        """A grant of everything that one of the two allows."""
        folders = tuple(dict.fromkeys((*self.folders, *other.folders)))
        return Grant(self.network or other.network, folders, self.outside or other.outside)


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's answer to the question whether a call may run.

    `reason` says why not. `rule` holds the rules that `session` and `always` put in force, one a line as in settings
    (`shell: uv run pytest **`); empty for the first that was offered. `allowance` is what the call may do besides.
    """

    verdict: Verdict
    reason: str = ""
    rule: str = ""
    allowance: Grant = Grant()


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a command line does, and that is judged by itself: it runs a program (`words`) or writes a file (`writes`, a
    resolved path).

    `reads`: it cannot write, whatever its unknown words turn out to be. `inside`: it stays in the workspace. `plain`: it starts
    no other program and loads no code, so it only reads wherever it runs. `guarded` is the guarded place (`core.guarded`) it
    would write to, empty for none.

    `patterns` are the rules that can be offered for it, from exactly this command to the widest; empty where no rule may allow
    it. `open`: one of its words can turn out to be anything, so that only these patterns and `**` cover it. `paths` are the files
    it names, resolved; `below`: it goes through the folders among them, or through the one it runs in. `inner` is what it runs in
    turn (`make` in `timeout 5 make`); `through`: a rule that allows the inner parts allows it, too.
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
        """This part and everything that it runs in turn, at any depth."""
        return (self, *(deeper for inner in self.inner for deeper in inner.with_inner))


class AccessRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call would do, for the judgement and for the person who is asked.

    `target` is the resolved path, the command line or the URL. `inside` is true where a path lies in the workspace; `guarded` is
    the guarded place that a path leads to, empty for none. `summary` is one line, `preview` a diff or the whole command.

    `patterns` are the rules that can be offered for `session` and `always`, from exactly this call to the widest. `parts` are
    what a command line consists of, each with patterns of its own. `asks` is what the call cannot do without, so a yes grants it;
    `allowance` is what a person may grant besides. `shut_in`: the command runs in a sandbox, and can also run in a stricter one,
    where it writes nothing and sees nothing outside.
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
        """The texts in which the call may mention a file that it changes: all its words, except those of commands that only
        read."""
        pieces = [piece for part in self.parts for piece in part.with_inner if not piece.reads]
        words = [text for piece in pieces for text in (piece.writes, *piece.paths, *(w.text for w in piece.words))]
        return tuple(words) if self.parts else (self.target, self.preview)


SHELL_FOLDER = "shell-folder"
"""Stands for the tool in a rule whose pattern is an absolute folder, in which all shell commands may write."""


class Rule(msgspec.Struct, frozen=True):
    """A standing permission: calls of `tool` that `pattern` covers are allowed, or forbidden where it `denies`. `network`: a
    command may reach the network as well. It holds in the workspace `folder`, or everywhere where that is empty."""

    tool: str
    pattern: str
    folder: str = ""
    denies: bool = False
    network: bool = False

    @property
    def text(self) -> str:
        """The rule as it is shown, stored and parsed, without the folder: `shell: git commit **`, `shell+network: uv sync **`,
        `deny shell: rm **`, `shell-folder: /home/me/.cache/uv`."""
        deny, network = "deny " * self.denies, "+network" * self.network
        return f"{deny}{self.tool}{network}: {self.pattern}"


_RULE = re.compile(r"(deny\s+)?([^\s:+]+)(\+network)?\s*:\s*(\S(?:.*\S)?)")


def parse_rule(text: str) -> Rule | None:
    """The rule that a line of settings states; None where it is not a valid one."""
    found = _RULE.fullmatch(text.strip()) if text.isprintable() else None
    return found and Rule(found[2], found[4], denies=bool(found[1]), network=bool(found[3]))


def parse_rules(text: str) -> tuple[Rule, ...] | None:
    """The rules in a text, one a line; None where there are none or a line is not valid."""
    rules = [parse_rule(line) for line in text.splitlines() if line.strip()]
    return tuple(rule for rule in rules if rule) if rules and all(rules) else None
