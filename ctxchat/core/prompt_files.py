"""Prompts that a person calls as `/name`: skills, command files, and prompts of MCP servers. The model reads skills by itself,
with the tool `skill`.

Finds the prompt that a message calls, fills in the arguments, and writes the list of skills that stands in the head (what
precedes the conversation in each request). Pure: reads no file, asks no server.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ctxchat.core.errors import UsageError

SKILL_TOOL = "skill"
"""The tool by which the model reads a skill: `name`, and `file` for one of the files beside it."""

MAX_NAME_CHARS, MAX_DESCRIPTION_CHARS = 64, 1_024
"""The longest name and description of a skill, by the open standard."""

MAX_INDEX_CHARS = 16_000
"""Characters of all descriptions of skills in the head together, and of those of agents; where they have more, each is cut to an
equal share."""

Origin = Literal["project", "user", "program", "server"]
"""Where a prompt comes from: the project's files, the person's own, this program, or an MCP server."""


class PromptArgument(msgspec.Struct, frozen=True):
    """An argument of a server's prompt, with a description."""

    name: str
    about: str = ""
    required: bool = False


class PromptFile(msgspec.Struct, frozen=True):
    """A skill, a command file, or a prompt of an MCP server, which the server writes when it is called.

    `name` is typed behind the slash. `path` is its file, or the address of a skill that a server offers; `body` its text, empty
    where a server has that. `folder` holds a skill's other files. `hint` describes the arguments in words, `arguments` lists
    those of a server's prompt. `by_model` and `by_person` say whether the model and the person may call it. `version` changes
    with the content.
    """

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
        """The name of its text where that is attached to a message: `skill /review`."""
        return f"{self.kind} /{self.name}"


# ── what the head says ──


def skills_index(skills: Sequence[PromptFile]) -> str:
    """The list of skills for the head, a line each; empty where the model may call none."""
    offered = [skill for skill in skills if skill.kind == "skill" and skill.by_model]
    if not offered:
        return ""
    texts: dict[str, str] = {}
    for skill in offered:
        texts.setdefault(skill.name, skill.description)
    lines = [f"- {name}: {text}" for name, text in cut_descriptions(texts).items()]
    opening = (
        f"Skills: how certain things are done here. Before you do what one is for, read it with the tool {SKILL_TOOL}."
    )
    return "\n".join([opening, *lines])


def cut_descriptions(descriptions: Mapping[str, str]) -> dict[str, str]:
    """Descriptions by name as the head has them: each on one line, cut to `MAX_DESCRIPTION_CHARS`, or to less where all of them
    would have more than `MAX_INDEX_CHARS`."""
    texts = {name: " ".join(text.split()) for name, text in descriptions.items()}
    most = MAX_DESCRIPTION_CHARS
    if sum(map(len, texts.values())) > MAX_INDEX_CHARS:
        most = max(20, MAX_INDEX_CHARS // len(texts))
    return {name: text if len(text) <= most else f"{text[: most - 1]}…" for name, text in texts.items()}


# ── calling one by its name ──

_CALL = re.compile(r"/([A-Za-z0-9_][\w:.-]*)(?:\s+(.*))?\s*", re.DOTALL)
_PLACE = re.compile(r"\$ARGUMENTS\[(\d{1,2})\]|\$ARGUMENTS|\$(\d{1,2})(?!\d)")
_COMMAND = re.compile(r"!`([^`\n]+)`|^```!\n(.*?)(?:\n```$|(\Z))", re.M | re.S)
"""Matches a command in a prompt, whose output takes its place: in one line, or a block. A block without an end matches up to the
end of the text, with the third group; it is no command, and matching it keeps the search linear."""


class FilledPrompt(msgspec.Struct, frozen=True):
    """A prompt with its arguments filled in: `texts`, and between each two of them a command whose output goes there.

    `arguments` are as they were typed. A server's prompt has an empty text until the server has written it.
    """

    file: PromptFile
    texts: tuple[str, ...]
    commands: tuple[str, ...] = ()
    arguments: str = ""

    def with_outputs(self, outputs: Sequence[str]) -> str:
        """The whole text with the commands' `outputs`, one for each command."""
        following = zip(outputs, self.texts[1:], strict=True)
        return self.texts[0] + "".join(f"{output.strip()}{text}" for output, text in following)

    @property
    def text(self) -> str:
        """The text without commands and outputs, in which mentions of files are looked for."""
        return "\n".join(self.texts)


def find_prompt(name: str, files: Sequence[PromptFile]) -> PromptFile | None:
    """The prompt that a person means by a name; None for none.

    The name is the full one, or has the origin in front (`user:review`), or is the last part of a full name where only one prompt
    has it. A server's prompt goes by its full name only, since another may come to have the same last part any time.
    """
    callable_ones = [file for file in files if file.by_person]
    # with the origin first, since a project's file may have the name `user:review`
    exact = [f for f in callable_ones if name == f"{f.origin}:{f.name}"] or [f for f in callable_ones if f.name == name]
    by_last_part = [f for f in callable_ones if f.origin != "server" and f.name.rpartition(":")[2] == name]
    return exact[0] if exact else by_last_part[0] if len(by_last_part) == 1 else None


def called_name(text: str) -> str:
    """The name in a message that begins with `/name`; empty for any other message."""
    call = _call(text)
    return call[1] if call else ""


def called_prompt(text: str, files: Sequence[PromptFile]) -> FilledPrompt | None:
    """The prompt that a message of the form `/name arguments` calls, filled in; None for any other message or an unknown name."""
    call = _call(text)
    file = find_prompt(call[1], files) if call else None
    return fill(file, (call[2] or "").strip()) if call and file else None


def _call(text: str) -> re.Match[str] | None:
    """The name and the arguments of a message of the form `/name arguments`, as two groups; None for any other message."""
    return _CALL.fullmatch(text.strip()) if text.lstrip().startswith("/") else None


def fill(file: PromptFile, arguments: str) -> FilledPrompt:
    """A prompt with the arguments filled in, or added at its end where it has no placeholder for them.

    Placeholders are filled after the commands were found, so that no argument can bring in a command.
    """
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
    """The text of a skill for the model. Commands in it are not run but shown: the model can run them itself, which is subject to
    approval like any command. A server's skill begins with a line that says whose words it holds."""
    filled = fill(skill, arguments)
    text = filled.with_outputs([f"`{command}`" for command in filled.commands]).strip()
    if not skill.server:
        return text
    origin = (
        f"[A skill of the MCP server {skill.server} ({skill.path}): these are that server's words, not the user's.]"
    )
    return f"{origin}\n\n{text}"


def named_arguments(prompt: PromptFile, typed: str) -> dict[str, str]:
    """The arguments of a server's prompt, by name, from what was typed behind `/name`: words of the form `name=value`, and other
    words in order, those left over added to the last argument. Raises UsageError where a required one is missing."""
    if len(prompt.arguments) == 1 and not typed.startswith(f"{prompt.arguments[0].name}="):
        given: dict[str, str] = {prompt.arguments[0].name: typed} if typed else {}
    else:
        given = {}
        words: list[str] = []
        for word in _split_arguments(typed):
            name, equals, value = word.partition("=")
            if equals and any(name == argument.name for argument in prompt.arguments):
                given[name] = value
            else:
                words.append(word)
        unnamed = [argument.name for argument in prompt.arguments if argument.name not in given]
        given.update(zip(unnamed, words, strict=False))
        if unnamed and len(words) > len(unnamed):
            given[unnamed[-1]] = " ".join(words[len(unnamed) - 1 :])
    for argument in prompt.arguments:
        if argument.required and argument.name not in given:
            about = f" ({argument.about})" if argument.about else ""
            raise UsageError(f"/{prompt.name} needs {argument.name}{about}.", f"Type: /{prompt.name} {prompt.hint}")
    return given


def _split_arguments(arguments: str) -> list[str]:
    """The words of some arguments, split as a shell does; at blanks where a quote is left open."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()
