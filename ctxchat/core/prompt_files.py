"""Prompts that a person calls as `/name`: skills, command files and those of MCP servers. The model calls skills with the tool
`skill`.

How their arguments are filled in, and what the head says of skills. Pure: reads no file, asks no server.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Literal

import msgspec

from ctxchat.core.errors import UsageError

SKILL_TOOL = "skill"
"""The tool by which the model reads a skill: `name`, and `file` for one of the files beside it."""

MAX_NAME_CHARS, MAX_DESCRIPTION_CHARS = 64, 1_024
"""Characters of a skill's name and of its description, by the open standard."""

MAX_INDEX_CHARS = 16_000
"""Characters of all descriptions in the head; where they have more, each is cut to the same length."""

Origin = Literal["project", "user", "program", "server"]


class PromptArgument(msgspec.Struct, frozen=True):
    """Something a server wants to be told before it writes a prompt."""

    name: str
    about: str = ""
    required: bool = False


class PromptFile(msgspec.Struct, frozen=True):
    """A skill or command file, or a "prompt", which an MCP server writes when it is called. `name` is what is typed behind the
    slash; `path` its file, `folder` where a skill's other files lie; `hint` says what its arguments are, `arguments` those of a
    server's. A skill may be kept from the model (`by_model`) or from the slash (`by_person`); one that a server serves has its
    address as `path` and no body, and another `version` is another content."""

    name: str
    kind: Literal["skill", "command", "prompt"]
    description: str
    body: str = ""
    path: str = ""
    origin: Origin = "project"
    folder: str = ""
    hint: str = ""
    by_model: bool = True
    by_person: bool = True
    arguments: tuple[PromptArgument, ...] = ()
    version: str = ""

    @property
    def server(self) -> str:
        """The MCP server it comes from; empty for any other."""
        return self.name.partition(":")[0] if self.origin == "server" else ""

    @property
    def title(self) -> str:
        """As its text is named where it goes along with a message."""
        return f"{self.kind} /{self.name}"


# ── what the head says ──


def skills_index(skills: Sequence[PromptFile]) -> str:
    """What a model is told of the skills there are, a line each; empty without any."""
    offered = [skill for skill in skills if skill.kind == "skill" and skill.by_model]
    if not offered:
        return ""
    texts: dict[str, str] = {}
    for skill in offered:
        texts.setdefault(skill.name, " ".join(skill.description.split()))
    most = MAX_DESCRIPTION_CHARS
    if sum(map(len, texts.values())) > MAX_INDEX_CHARS:
        most = max(20, MAX_INDEX_CHARS // len(texts))
    lines = [f"- {name}: {text if len(text) <= most else text[: most - 1] + '…'}" for name, text in texts.items()]
    opening = (
        f"Skills: how certain things are done here. Before you do what one is for, read it with the tool {SKILL_TOOL}."
    )
    return "\n".join([opening, *lines])


# ── calling one by its name ──

_CALL = re.compile(r"/([A-Za-z0-9_][\w:.-]*)(?:\s+(.*))?\s*", re.DOTALL)
_PLACE = re.compile(r"\$ARGUMENTS\[(\d{1,2})\]|\$ARGUMENTS|\$(\d{1,2})(?!\d)")
_COMMAND = re.compile(r"!`([^`\n]+)`|^```!\n(.*?)(?:\n```$|(\Z))", re.M | re.S)
"""One that never ends is taken to the end at once, and is none: looking for the end of each would take for ever."""


class FilledPrompt(msgspec.Struct, frozen=True):
    """A prompt file with its `arguments`, as they were typed, in place: texts, and between two of them a command whose output
    goes there. That of a server is empty until the server has written it."""

    file: PromptFile
    texts: tuple[str, ...]
    commands: tuple[str, ...] = ()
    arguments: str = ""

    def with_outputs(self, outputs: Sequence[str]) -> str:
        """The whole text; an output for each command."""
        rest = zip(outputs, self.texts[1:], strict=True)
        return self.texts[0] + "".join(f"{output.strip()}{text}" for output, text in rest)

    @property
    def text(self) -> str:
        """Without any output: for what it mentions."""
        return "\n".join(self.texts)


def find_prompt(name: str, files: Sequence[PromptFile]) -> PromptFile | None:
    """The file that a person means by a name: in full, with its origin in front (`user:review`), or by its last part where that
    is no other's. A server's only in full: what it offers may be something else tomorrow."""
    able = [file for file in files if file.by_person]
    # Whose it is goes first: a project's file may be called `user:review` itself.
    exact = [f for f in able if name == f"{f.origin}:{f.name}"] or [f for f in able if f.name == name]
    last = [f for f in able if f.origin != "server" and f.name.rpartition(":")[2] == name]
    return exact[0] if exact else last[0] if len(last) == 1 else None


def called_name(text: str) -> str:
    """The name in a message that begins with `/name`; empty for any other message."""
    call = _call(text)
    return call[1] if call else ""


def called_prompt(text: str, files: Sequence[PromptFile]) -> FilledPrompt | None:
    """What a message calls that begins with `/name`; None for any other message."""
    call = _call(text)
    file = find_prompt(call[1], files) if call else None
    return fill(file, (call[2] or "").strip()) if call and file else None


def _call(text: str) -> re.Match[str] | None:
    return _CALL.fullmatch(text.strip()) if text.lstrip().startswith("/") else None


def fill(file: PromptFile, arguments: str) -> FilledPrompt:
    """A prompt file with these arguments; behind its text where it has no place for them. A command in an argument is none."""
    if file.origin == "server" and not file.body:
        return FilledPrompt(file, ("",), arguments=arguments)
    places = list(_PLACE.finditer(file.body))
    first = 0 if file.kind == "skill" or any(m[2] == "0" for m in places) else 1
    words = _split_arguments(arguments)

    def argument(match: re.Match[str]) -> str:
        if match[1] is None and match[2] is None:
            return arguments
        place = int(match[1]) if match[1] is not None else int(match[2]) - first
        return words[place] if 0 <= place < len(words) else ""

    texts: list[str] = []
    commands: list[str] = []
    at = 0
    for match in _COMMAND.finditer(file.body):
        if match[3] is not None:
            break
        texts.append(_PLACE.sub(argument, file.body[at : match.start()]))
        commands.append(_PLACE.sub(argument, match[1] or match[2]))
        at = match.end()
    texts.append(_PLACE.sub(argument, file.body[at:]))
    if file.folder:
        texts[0] = f"Folder of this skill: {file.folder}\n\n{texts[0]}"
    if arguments and not places:
        texts[-1] = f"{texts[-1].rstrip()}\n\nARGUMENTS: {arguments}"
    return FilledPrompt(file, tuple(texts), tuple(commands), arguments)


def skill_text(skill: PromptFile, arguments: str) -> str:
    """A skill as a model reads it. Commands in it stay words: the model runs them as any other, and is asked as for any other;
    and of one that a server serves it says so first."""
    filled = fill(skill, arguments)
    text = filled.with_outputs([f"`{command}`" for command in filled.commands]).strip()
    if not skill.server:
        return text
    told = f"[A skill of the MCP server {skill.server} ({skill.path}): these are that server's words, not the user's.]"
    return f"{told}\n\n{text}"


def named_arguments(prompt: PromptFile, typed: str) -> dict[str, str]:
    """What was typed behind the name of a server's prompt, by the names of its arguments: `name=value`, and other words in their
    order, all that are left over to the last. Raises UsageError where one that the server needs is missing."""
    if len(prompt.arguments) == 1 and not typed.startswith(f"{prompt.arguments[0].name}="):
        given: dict[str, str] = {prompt.arguments[0].name: typed} if typed else {}
    else:
        given = {}
        words: list[str] = []
        for word in _split_arguments(typed):
            name, sign, value = word.partition("=")
            if sign and any(name == argument.name for argument in prompt.arguments):
                given[name] = value
            else:
                words.append(word)
        open_ones = [argument.name for argument in prompt.arguments if argument.name not in given]
        given.update(zip(open_ones, words, strict=False))
        if open_ones and len(words) > len(open_ones):
            given[open_ones[-1]] = " ".join(words[len(open_ones) - 1 :])
    for argument in prompt.arguments:
        if argument.required and argument.name not in given:
            about = f" ({argument.about})" if argument.about else ""
            raise UsageError(f"/{prompt.name} needs {argument.name}{about}.", f"Type: /{prompt.name} {prompt.hint}")
    return given


def _split_arguments(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()
