"""Defines what the agent needs from outside, as protocols. Adapters implement them; the agent is given them and knows nothing
else of the adapters."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from ctxchat.core.budget import Window
from ctxchat.core.cache import CacheRules
from ctxchat.core.calibration import Calibration
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Delegated,
    FilesChanged,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolStatus,
    Usage,
)
from ctxchat.core.file_changes import Checkpoint, FileChange, FileState
from ctxchat.core.jobs import JobRow
from ctxchat.core.journal import Partial, PrefixRead, Record
from ctxchat.core.messages import Group, Message, Received, ToolCall
from ctxchat.core.permissions import Access, AccessRequest, Answer, Grant
from ctxchat.core.prices import ModelPrices
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.view import ToolSpec, View
from ctxchat.core.working_set import CurrentFile

# ── models ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class ModelRequest(msgspec.Struct, frozen=True):
    """One model call.

    `max_output` is the room for the reply in tokens, 0 where it is unknown; the model's settings may allow less. `images` are the
    view's images from the session's folder: data URLs by path. `session` identifies the conversation for the provider's cache;
    empty for a request on its own. `lasting`: up to an hour may pass before the next request. `effort` is one of the model's
    levels, empty for its default. `compaction` are instructions for the provider's own compaction, which then returns a summary
    of the view instead of a reply; only for models with `ModelPort.compacts`.
    """

    view: View
    max_output: int = 0
    images: Mapping[str, str] = {}
    session: str = ""
    lasting: bool = False
    effort: str = ""
    compaction: str = ""


class CallPiece(msgspec.Struct, frozen=True, tag="call"):
    """A fragment of a call that is still being written, for display and for the gauge; ReplyEnd has the whole call."""

    index: int
    name: str
    arguments: str


Finish = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]
"""Why a reply ended."""


class ReplyNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server reports about a request besides the reply.

    `message_id` is the server's id of the reply. `thoughts_dropped` is how many earlier thoughts it left out, `drop_reason` why.
    `cache_miss` is the reason why its cache was not read, `cache_missed` how many tokens that concerned. `prefill` is its speed
    of reading the prompt in tokens per second, 0 where unknown. `remark` tells a person what was changed in the request because
    the server refused it."""

    message_id: str = ""
    thoughts_dropped: int = 0
    drop_reason: str = ""
    cache_miss: str = ""
    cache_missed: int = 0
    prefill: float = 0.0
    remark: str = ""


class ReplyEnd(msgspec.Struct, frozen=True, tag="end"):
    """The end of a complete reply.

    `usage` is None where the server sent none; `priced`: its cost is the one the server stated. `received` is the reply as the
    provider sent it, None where text and calls hold everything. `limit` is how many tokens the reply was allowed, 0 for no limit.
    `thoughts` is the number of characters at the beginning of its text that are reasoning. `unthought`: what was streamed as
    reasoning is in fact the answer. A `finish` of `tool_calls` without calls means that an announced call never came."""

    finish: Finish
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    received: Received | None = None
    notes: ReplyNotes = ReplyNotes()
    priced: bool = False
    limit: int = 0
    thoughts: int = 0
    unthought: bool = False


ModelPiece = TextDelta | ReasoningDelta | CallPiece | ReplyEnd


class ModelPort(Protocol):
    """One model. Closing the iterator closes the connection."""

    @property
    def name(self) -> str:
        """The model's name in litellm."""
        ...

    @property
    def address(self) -> str | None:
        """The address of its server; empty for the provider's usual one, None where it must not be written down because it
        contains a login."""
        ...

    @property
    def keeps_reasoning(self) -> bool:
        """True where the provider wants reasoning sent back together with the calls it led to."""
        ...

    @property
    def binds_thinking(self) -> bool:
        """True where reasoning is only accepted after exactly the same beginning of the request: if an earlier message, tool or
        the system prompt has changed, the request is refused (ModelError `prefix_changed`) or the reasoning after it is lost."""
        ...

    @property
    def compacts(self) -> bool:
        """True where the provider offers a compaction of its own that returns a readable summary."""
        ...

    @property
    def refers_to_tools(self) -> bool:
        """True where results of `find_tools` are sent as references to definitions, and not in words."""
        ...

    def takes_back(self, reply: Message) -> bool:
        """True where the reasoning of this reply can be sent to this model: it may not be able to read what another one
        signed."""
        ...

    @property
    def may_queue(self) -> bool:
        """True where its server runs on this machine and may answer only one request at a time, so that a side request would
        delay the turn."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """Pieces, then exactly one ReplyEnd. Raises ModelError; never sends the same request again by itself."""
        ...

    def stated(self) -> Window:
        """The context window without asking the server: from the settings, else from its provider's list or the catalogue, else
        assumed."""
        ...

    async def window(self) -> Window:
        """The server's real context window, as far as it can be found out."""
        ...

    def prices(self) -> ModelPrices | None:
        """The model's present prices, None where unknown. Reads a file the first time."""
        ...

    def cache_rules(self, *, lasting: bool) -> CacheRules:
        """How its server caches requests; `lasting` as in ModelRequest. Reads a file the first time."""
        ...

    @property
    def efforts(self) -> tuple[str, ...] | None:
        """The model's levels of effort, the lowest first; empty where it has none, None where unknown. Reads a file the first
        time."""
        ...

    async def reached(self) -> bool:
        """False where its address accepts no connections. A provider's own service is not tried, since that would be a call."""
        ...

    async def sampled(self) -> Calibration:
        """The calibration to the server's token counts, as far as it can be had before a reply; else the usual assumption."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text, counted for the model's family; never raises."""
        ...

    def count_image(self, width: int, height: int) -> int:
        """Tokens of an image of this size in pixels (0 × 0: unknown); 0 where the model gets words instead of images."""
        ...


# ── tools ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class ToolLimits(msgspec.Struct, frozen=True):
    """Limits of a tool call: characters of output, and seconds where the call names no limit."""

    max_chars: int = 400_000
    seconds: float = 120.0


class EditorFiles(Protocol):
    """Files as they are in an editor, possibly unsaved. Paths are absolute."""

    def text(self, path: str) -> str | None:
        """A file's text in the editor; None where the editor does not have it or does not answer. Blocks: call it in a thread."""
        ...

    async def save(self, path: str) -> None:
        """Save the editor's unsaved text to disk before the file is changed, so that an undo brings it back."""
        ...

    async def write(self, path: str, text: str) -> None:
        """Give the editor a text as a change of the agent's and have it saved; does nothing where the editor refuses."""
        ...


class ToolContext(msgspec.Struct, frozen=True):
    """The surroundings of a call.

    `workspace` is the workspace's resolved root, `session_folder` the folder with `tool-results/…` (empty for none), `max_chars`
    the limit of its output and `seconds` that of a command where the call names none. `allowance` is what it may do beyond its
    sandbox; `read_only`: it may only read, because nobody was asked. `unreadable` are patterns of paths that nothing may read,
    `target` is that of the access request by which the call was judged (empty before), and `editor` the files of the editor that
    is connected, if any."""

    call_id: str
    workspace: str
    session_folder: str = ""
    max_chars: int = 400_000
    seconds: float = 120.0
    allowance: Grant = Grant()
    read_only: bool = False
    unreadable: tuple[str, ...] = ()
    target: str = ""
    editor: EditorFiles | None = None


class ToolOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """The final result of a call. `text` and `images` are for the model, `diff` and `exit_code` for people."""

    text: str
    status: ToolStatus = "ok"
    diff: str = ""
    exit_code: int | None = None
    images: tuple[bytes, ...] = ()


class ToolText(msgspec.Struct, frozen=True):
    """Output of a call that is still running."""

    text: str


class ToolQuestion(msgspec.Struct, frozen=True):
    """A question to a person for whose answer the call waits: one of `options`, or any text where there are none. `answered` is
    called with the answer, empty where nobody answered. `server` is the name of the MCP server that asks, empty for others."""

    text: str
    options: tuple[str, ...]
    answered: Callable[[str], None]
    server: str = ""


class ToolLeave(msgspec.Struct, frozen=True):
    """A request for a person's approval of a call made within this call. `answered` is called with their answer."""

    request: ApprovalRequested
    answered: Callable[[Answer], None]


class ToolNews(msgspec.Struct, frozen=True):
    """An event from a conversation within this call, for the observers of this conversation."""

    event: ApprovalResolved | Delegated | FilesChanged


ToolPiece = ToolText | ToolQuestion | ToolLeave | ToolNews | ToolOutput


class ToolPort(Protocol):
    """One tool. Arguments arrive checked against its schema's required names only: it must cope with the rest."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema."""
        ...

    def reads(self, arguments: Mapping[str, object]) -> bool:
        """True when a call with these arguments changes nothing, so that several may run at once. The arguments are unchecked."""
        ...

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        """What the call would do, with paths resolved. Raises ToolError for arguments that it cannot use."""
        ...

    def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolPiece]:
        """Pieces while it runs, then one ToolOutput. Raises ToolError. Closing the iterator ends what the call started."""
        ...


class ServerPrompts(Protocol):
    """Prompts of MCP servers, filled in when a person calls them. The list may change at any time."""

    @property
    def prompts(self) -> Sequence[PromptFile]:
        """The prompts of all running servers."""
        ...

    async def await_server(self, name: str) -> None:
        """Wait for the server of this name, as it stands in its prompts, where it is starting. Raises CtxchatError where it
        failed."""
        ...

    async def get_prompt(self, prompt: PromptFile, arguments: Mapping[str, str]) -> ToolOutput:
        """The prompt's text for these arguments. Raises CtxchatError."""
        ...


class ServedSkills(Protocol):
    """Skills of MCP servers. The list may change at any time."""

    @property
    def skills(self) -> Sequence[PromptFile]:
        """The skills that the running servers list."""
        ...

    async def read_skill(self, skill: PromptFile, file: str = "") -> str:
        """The text of a skill, listed or not, or of a `file` in it. Raises CtxchatError, also where it differs from what was
        listed."""
        ...


class BackgroundCommands(Protocol):
    """Commands that run in the background of the conversation."""

    @property
    def rows(self) -> Sequence[JobRow]:
        """All commands of this session, the newest first."""
        ...

    def keep(self, id: str, *, going_on: bool) -> None:
        """Set whether a command goes on when the session is closed. Raises ToolError for an unknown id."""
        ...

    async def stop(self, id: str) -> None:
        """End a command and all processes it started. Raises ToolError for an unknown id."""
        ...

    async def close(self) -> None:
        """End all commands except those that were set to go on."""
        ...


class PersonCommands(Protocol):
    """Commands that the person types, run in a separate shell."""

    def run(self, line: str, *, outside: bool = False) -> AsyncGenerator[ToolText | ToolOutput, None]:
        """Run a command line and yield its output; closing the generator ends it. `outside`: without the sandbox. Raises
        CtxchatError while another command runs."""
        ...


class WorkspaceFiles(Protocol):
    """Tracks the files of a workspace: keeps what calls change, and can undo it. Works off the event loop."""

    async def begin_call(self, access: Access, target: str, words: Sequence[str] = ()) -> None:
        """Prepare for a call that may change `target` (an absolute path, for `write`) or anything; `words` are the texts in which
        it may name what it changes. Raises CtxchatError where its changes could not be undone."""
        ...

    async def end_call(self) -> tuple[str, tuple[FileChange, ...], tuple[str, ...]]:
        """An id for the call that began last, its changes, and the changed paths that it does not name (`file_changes.unnamed`),
        also where it was cancelled or killed. All empty where nothing changed. Raises CtxchatError."""
        ...

    def forget(self) -> None:
        """Drop the state of the last call: what `end_call` returned is in the journal now."""
        ...

    async def now(self, paths: Sequence[str]) -> dict[str, FileState | None]:
        """The present states of these paths."""
        ...

    async def stored_digests(self, digests: Collection[str]) -> frozenset[str]:
        """Those of the digests whose content is stored."""
        ...

    async def diff(self, change: FileChange) -> str:
        """The change as text for people."""
        ...

    async def texts(self, change: FileChange) -> tuple[str | None, str | None]:
        """The whole text before and after; None for a side that is no text, too large or not kept, empty where there was no
        file."""
        ...

    async def restore(self, checkpoint: Checkpoint, copies: Collection[str] = ()) -> Checkpoint:
        """Change the checkpoint's paths from `before` to `after`, all or none, and return what was done. The present files at
        `copies` are kept under another name beside them. Raises CtxchatError."""
        ...

    async def unfinished(self) -> Checkpoint | None:
        """Finish a restore that a kill interrupted and return it, None for none. Raises CtxchatError."""
        ...

    def end_restore(self) -> None:
        """Drop the state of the last restore: it is in the journal now."""
        ...

    async def close(self) -> None:
        """Release everything, at the end of the session."""
        ...


# ── storage, context, time ──────────────────────────────────────────────────────────────────────────────────────────


class JournalPort(Protocol):
    """The journal of one session. One call is one transaction; where nothing can be written, each raises SessionBusy."""

    @property
    def session(self) -> str:
        """The session's id."""
        ...

    @property
    def read_only(self) -> str:
        """Why nothing can be written; empty where that is possible."""
        ...

    async def write(self, *records: Record) -> None:
        """Append records, which are on disk when this returns. Clears the partial round. Raises StorageError."""
        ...

    async def keep(self, partial: Partial) -> None:
        """Store a round that is not sealed yet, replacing the one stored before."""
        ...

    async def spill(self, name: str, text: str) -> str:
        """Save a text that is too large for the view in the session's folder and return its path. The name is made safe."""
        ...

    async def attach(self, name: str, data: bytes) -> str:
        """Save an image in the session's folder and return its path there, `attachments/…`. Raises StorageError."""
        ...

    async def attached(self, path: str) -> bytes:
        """The image at a path that `attach` returned. Raises StorageError where it is gone."""
        ...

    async def close(self, estimate: int = 0) -> None:
        """Release the session for other writers. `estimate` are the tokens in use by the gauge, for lists; 0 if unknown. It does
        not replace a count by a server."""
        ...


class ContextProvider(Protocol):
    """Provides a text about the surroundings of a conversation.

    Its first text is part of the head; later, before each message of the person, its changes go into the record as a note. A
    provider whose attribute `every_request` is true is asked for every request instead, and its text is not kept: it is gone from
    the next request, so the provider's cache of everything after it is lost."""

    @property
    def source_id(self) -> str:
        """The name of the source to which the text is attributed."""
        ...

    async def provide(self) -> str:
        """The text; empty for nothing."""
        ...


class FilesNow(Protocol):
    """Reads files as they are on disk now, for the working set."""

    async def __call__(self, path: str) -> CurrentFile | None:
        """The file that a call named by this path; None where it is gone, is no text, or reading it would need approval. Does not
        mark the file as seen by the agent."""
        ...


class Clock(Protocol):
    """The time, passed in so that tests can control it."""

    def now(self) -> str:
        """The present time in ISO 8601, UTC, with milliseconds."""
        ...

    def seconds(self) -> float:
        """A monotonic time in seconds."""
        ...

    async def sleep(self, seconds: float, /) -> None:
        """Wait."""
        ...


class Written(msgspec.Struct, frozen=True):
    """A text about a part of a conversation, and the ids of the groups it stands for, in the order of the record."""

    text: str = ""
    covers: Sequence[str] = ()


class SummaryTask(msgspec.Struct, frozen=True):
    """What to summarise, and how.

    `groups` are as in the record; `previous` is a model's summary of what came before them, to be merged in. `instead` are texts
    by code or another agent that stand for more and more of these groups, `previous` included: a summariser that cannot read all
    groups starts from one of them (`summary_task.shortened`). `beside` says what stays in view, the most important first;
    `instructions` are a person's. `max_tokens` is the limit of the summary, 0 for none; `share` is what the summary of these
    groups may take of the tokens that the agent wrote in them, 0 for as much as there is room. `shorten` is a summary by the
    same summariser that was too long: the task is then only to shorten it. `within` is the conversation's own request, which
    its server has cached: the conversation's model may be asked after it instead of being given the groups as text.
    """

    groups: tuple[Group, ...]
    previous: str = ""
    beside: str = ""
    instructions: str = ""
    max_tokens: int = 0
    share: float = 0.0
    instead: tuple[Written, ...] = ()
    shorten: str = ""
    within: ModelRequest | None = None


SummaryNews = str | Usage | Notice | PrefixRead
"""What arrives while a summary is written: a piece of its text, the usage of a call, a notice for the person, or how much of the
conversation a call after it (`SummaryTask.within`) read from the cache."""


class Summariser(Protocol):
    """Writes summaries of groups, by a model or by code."""

    @property
    def model(self) -> str:
        """The name of the model that summarises, empty for code."""
        ...

    def summarise(self, task: SummaryTask) -> AsyncIterator[SummaryNews]:
        """The summary, as it is written.

        Raises ModelError, also for a summary that was cut off or turned into something else.
        """
        ...
