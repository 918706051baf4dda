"""The messages between the program and the worker process that holds the connections to MCP servers (`worker`): one JSON value a
line, orders to it and news from it. Connections and calls have numbers. Knows neither end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.prompt_files import PromptArgument


class Address(msgspec.Struct, frozen=True):
    """How to reach a server: by a `command` with its arguments, or at a `url`. `timeout` is in seconds, for one call; `env` is
    added to the few variables every server gets; `headers_env` maps headers to environment variables. `client_id` and the fields
    after it are for a login: our id at the server, the one server that may get the secret (`issuer`, empty for the server's own
    origin), and the port that the browser comes back to; without them the server registers us, and any port will do. `older`: it
    is spoken to in the protocol before 2026-07-28, though it may know a newer one."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}
    headers_env: Mapping[str, str] = {}
    timeout: float = 60.0
    client_id: str = ""
    client_secret_env: str = ""
    issuer: str = ""
    callback_port: int = 0
    older: bool = False


MAX_EARLIER_LOG_CHARS = 20_000
"""Characters of a server's log that are kept when it is started anew."""


class LoginWanted(ToolError):
    """A server over HTTP wants a person to log in."""


class OlderWanted(ToolError):
    """A call of a server asks in the way of before 2026-07-28, for which the connection has no place."""


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool as its server describes it: foreign text, all of it, in a shape that providers take."""

    name: str
    description: str
    schema: dict[str, Any]


class OfferedResource(msgspec.Struct, frozen=True):
    """A resource as its server lists it: foreign text, all of it."""

    uri: str
    name: str = ""


class OfferedPrompt(msgspec.Struct, frozen=True):
    """A prompt as its server describes it: foreign text, all of it."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class OfferedSkill(msgspec.Struct, frozen=True):
    """A skill as its server lists it, foreign text, all of it. `uri` is the address of its SKILL.md, `files` the others, named
    from its folder; another `digest` is another content."""

    uri: str
    name: str
    description: str = ""
    digest: str = ""
    files: tuple[str, ...] = ()
    hint: str = ""
    by_model: bool = True
    by_person: bool = True


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Connect to a server; what its process says beside the protocol goes to the file `log`, beside which logins are kept.
    `login`: a person is there to log in, now."""

    id: int
    address: Address
    workspace: str
    log: str
    login: bool = False


class RunTool(msgspec.Struct, frozen=True, tag="call"):
    """Run a tool of the server behind `connection`."""

    id: int
    connection: int
    tool: str
    arguments: dict[str, Any]


class ReadResource(msgspec.Struct, frozen=True, tag="read"):
    """Read a resource of the server behind `connection`; news of it are those of a call."""

    id: int
    connection: int
    uri: str


class GetPrompt(msgspec.Struct, frozen=True, tag="prompt"):
    """Have the server behind `connection` write a prompt; news of it are those of a call."""

    id: int
    connection: int
    name: str
    arguments: Mapping[str, str]


class ReadSkillFile(msgspec.Struct, frozen=True, tag="skill"):
    """Read a skill of the server behind `connection`, or the `file` of it; news of it are those of a call. `digest` is that of
    what was looked at before, empty for a skill that is not listed."""

    id: int
    connection: int
    uri: str
    file: str = ""
    digest: str = ""


class LoginCallback(msgspec.Struct, frozen=True, tag="login_callback"):
    """The address that the browser came back to at the end of a login, as a person copied it from there."""

    id: int
    address: str


class ServerAnswer(msgspec.Struct, frozen=True, tag="answer"):
    """A person's answer to a question that the server asked during a call; without `content` they gave none."""

    id: int
    content: dict[str, str | int | float | bool | list[str]] | None = None


class End(msgspec.Struct, frozen=True, tag="end"):
    """Close a connection or break off a call."""

    id: int


Request = Open | RunTool | ReadResource | ReadSkillFile | GetPrompt | LoginCallback | ServerAnswer | End


class ServerTool(msgspec.Struct, frozen=True, tag="tool"):
    """One of the tools a server offers."""

    id: int
    tool: OfferedTool


class ServerResource(msgspec.Struct, frozen=True, tag="resource"):
    """One of the resources a server lists."""

    id: int
    resource: OfferedResource


class ServerPrompt(msgspec.Struct, frozen=True, tag="offered_prompt"):
    """One of the prompts a server lists."""

    id: int
    prompt: OfferedPrompt


class ServerSkill(msgspec.Struct, frozen=True, tag="offered_skill"):
    """One of the skills a server lists."""

    id: int
    skill: OfferedSkill


class LoginPage(msgspec.Struct, frozen=True, tag="login"):
    """The address where a person logs in; a `LoginCallback` may answer it."""

    id: int
    address: str


class Up(msgspec.Struct, frozen=True, tag="up"):
    """Connected, and all it offers told; once more each time that this is something else. `left_out` names those
    that cannot be offered, each with why."""

    id: int
    left_out: tuple[str, ...] = ()


class QuestionField(msgspec.Struct, frozen=True):
    """One field of a server's question: text, or one of `options`."""

    name: str
    text: str
    kind: Literal["string", "integer", "number", "boolean", "list"] = "string"
    options: tuple[str, ...] = ()


class ServerQuestion(msgspec.Struct, frozen=True, tag="ask"):
    """A server asks a person during a call, and waits for a `ServerAnswer`; without fields, whether they agree."""

    id: int
    text: str
    fields: tuple[QuestionField, ...] = ()


class CallProgress(msgspec.Struct, frozen=True, tag="progress"):
    """A line of progress of a running call."""

    id: int
    text: str


class ResultPiece(msgspec.Struct, frozen=True, tag="piece"):
    """A piece of a result."""

    id: int
    text: str


class ImagePiece(msgspec.Struct, frozen=True, tag="image"):
    """A piece of the base64 of an image among a result; `place` is the image's number in it."""

    id: int
    place: int
    data: str


class CallEnded(msgspec.Struct, frozen=True, tag="over"):
    """The end of a result. `failed`: the tool says so."""

    id: int
    failed: bool = False


class Down(msgspec.Struct, frozen=True, tag="down"):
    """A connection or a call that came to nothing, or is closed. `gone`: the server is. `forgotten`: it is there, and knows
    nothing of us any more. `login`: it wants one. `older`: as `OlderWanted`."""

    id: int
    why: str = ""
    gone: bool = False
    forgotten: bool = False
    login: bool = False
    older: bool = False


News = (
    ServerTool
    | ServerResource
    | ServerPrompt
    | ServerSkill
    | LoginPage
    | Up
    | ServerQuestion
    | CallProgress
    | ResultPiece
    | ImagePiece
    | CallEnded
    | Down
)

encode = msgspec.json.Encoder().encode
read_request = msgspec.json.Decoder(Request).decode
read_news = msgspec.json.Decoder(News).decode
