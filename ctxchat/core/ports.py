"""What the agent needs from outside, as protocols. Adapters implement them; the agent is handed them and knows no more."""

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
    """One model call. `max_output` is how many tokens a reply has room for, 0 where that is not known: it may have fewer by the
    model's settings. `images` are those of the view that lie in the session's folder: data URLs by path. `session` names the
    conversation, so that its provider finds what it has cached of it; empty for a request that stands alone. `lasting`: pauses of
    up to an hour are to be expected before the next one. `effort` is one of the model's levels, empty for its usual one.
    `compaction`: no reply is wanted but a summary of all this by its provider's own compaction, told so; of models that can
    (`ModelPort.compacts`).
    """

    view: View
    max_output: int = 0
    images: Mapping[str, str] = {}
    session: str = ""
    lasting: bool = False
    effort: str = ""
    compaction: str = ""


class CallPiece(msgspec.Struct, frozen=True, tag="call"):
    """A fragment of a call that is still being written, for the eye and the gauge; the whole comes with ReplyEnd."""

    index: int
    name: str
    arguments: str


Finish = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]
"""Why a reply ended."""


class ReplyNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server tells about a request besides the reply. `message_id` is its id of the reply; `thoughts_dropped` counts
    earlier thoughts it left out, for `drop_reason`; `cache_miss` names why its cache was not read, with `cache_missed` tokens
    of it; `prefill` is how many tokens a second it read of the prompt, 0 where it does not say. `remark` is for a person: what of
    the request was made otherwise, since the server refused it."""

    message_id: str = ""
    thoughts_dropped: int = 0
    drop_reason: str = ""
    cache_miss: str = ""
    cache_missed: int = 0
    prefill: float = 0.0
    remark: str = ""


class ReplyEnd(msgspec.Struct, frozen=True, tag="end"):
    """The reply is whole. `usage` is None where the server sent none, `priced` where its cost is what the server says it was;
    `received` is the reply as its provider sent it, None where text and calls say all. `limit` is how many tokens it was allowed,
    0 where nobody set any. `thoughts`: characters at the beginning of its text that were none of the answer. One that ends with
    `tool_calls` and holds none announced a call that did not come. `unthought`: all that came as thoughts is the answer."""

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
        """litellm's name of it."""
        ...

    @property
    def address(self) -> str | None:
        """Where its server is; empty for where its provider is, None for an address that nobody may write down: one with a login
        in it."""
        ...

    @property
    def keeps_reasoning(self) -> bool:
        """True where the provider wants its reasoning back with the calls it led to."""
        ...

    @property
    def binds_thinking(self) -> bool:
        """True where a thought is only taken back behind exactly what it was thought after: an earlier message, tool or system
        prompt that changed is refused (ModelError `prefix_changed`), or the thoughts behind it are lost."""
        ...

    @property
    def compacts(self) -> bool:
        """True where its provider writes a summary that can be read, when it is asked to."""
        ...

    def takes_back(self, reply: Message) -> bool:
        """True where the reasoning of this reply goes back to it: what another model signed it may not be able to read."""
        ...

    @property
    def may_queue(self) -> bool:
        """True where its server, on this machine, may answer one request after another: what is asked beside a turn would hold
        that up."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """Pieces, then exactly one ReplyEnd. Raises ModelError; never retries by itself."""
        ...

    def stated(self) -> Window:
        """The window as far as it is known without asking its server: what is set, else the catalogue's, else an assumption."""
        ...

    async def window(self) -> Window:
        """The window the server really has, as far as it can be learned."""
        ...

    def prices(self) -> ModelPrices | None:
        """What it costs now, None where nobody says. Reads a file the first time."""
        ...

    def cache_rules(self, *, lasting: bool) -> CacheRules:
        """How its server keeps a request, `lasting` or not. Reads a file the first time."""
        ...

    @property
    def efforts(self) -> tuple[str, ...] | None:
        """The levels of effort it has, the least first; none for a model that has no such thing, None where nobody says. Reads a
        file the first time."""
        ...

    async def reached(self) -> bool:
        """False where nobody takes connections at its address. A provider's own service is not asked: that would be a call."""
        ...

    async def sampled(self) -> Calibration:
        """How its server counts, as far as it tells before any reply; the usual assumption where it does not."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text by the model's family; never raises."""
        ...

    def count_image(self, width: int, height: int) -> int:
        """Tokens of an image of so many pixels (0 × 0: unknown); 0 where the model is shown none, but words in its place."""
        ...


# ── tools ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class ToolLimits(msgspec.Struct, frozen=True):
    """What any call may take: output in characters, and seconds where the call itself does not say."""

    max_chars: int = 400_000
    seconds: float = 120.0


class EditorFiles(Protocol):
    """Files as an editor has them, which may not be saved yet. Paths are absolute."""

    def text(self, path: str) -> str | None:
        """A file as it stands there; None where the editor has none, or says nothing. Blocks: for a thread."""
        ...

    async def save(self, path: str) -> None:
        """Have what is not saved there yet lie on the disk, before it is changed: so it is what an undo brings back."""
        ...

    async def write(self, path: str, text: str) -> None:
        """Have the editor take over a text, as a change of the agent's, and save it; nothing where it does not."""
        ...


class ToolContext(msgspec.Struct, frozen=True):
    """What a call is told: its id, the workspace's resolved root, the session's own folder (where `tool-results/…` lies;
    empty for none), the cap for its output in characters, how long a command runs where the call does not say, what it may do
    beyond its sandbox, whether it may only read, because nobody was asked, the patterns of paths that nothing may read, and the
    `target` of the access request that it was judged by, empty before that, and the files of an editor, where one is at the other
    end."""

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
    """The end of a call. `text` and `images` are for the model; `diff` and `exit_code` for people."""

    text: str
    status: ToolStatus = "ok"
    diff: str = ""
    exit_code: int | None = None
    images: tuple[bytes, ...] = ()


class ToolText(msgspec.Struct, frozen=True):
    """Output while a call is still at work."""

    text: str


class ToolQuestion(msgspec.Struct, frozen=True):
    """The call waits for a person's word: a choice of `options`, or anything where there are none. `answered` takes it; an
    empty one means that nobody answered. `server` is the name of the MCP server that wants to know, where it is one."""

    text: str
    options: tuple[str, ...]
    answered: Callable[[str], None]
    server: str = ""


class ToolLeave(msgspec.Struct, frozen=True):
    """A call of the call's own needs a person's leave. `answered` takes what they say."""

    request: ApprovalRequested
    answered: Callable[[Answer], None]


class ToolNews(msgspec.Struct, frozen=True):
    """What came about in a conversation of the call's own that those who watch this one want to know."""

    event: ApprovalResolved | Delegated | FilesChanged


ToolPiece = ToolText | ToolQuestion | ToolLeave | ToolNews | ToolOutput


class ToolPort(Protocol):
    """One tool. Arguments arrive checked against its schema's required names only: it must cope with the rest."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema."""
        ...

    def reads(self, arguments: Mapping[str, object]) -> bool:
        """True when such a call changes nothing, so that several may run at once. Arguments are as they come: maybe none."""
        ...

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        """What the call would do. Paths are resolved first. Raises ToolError for arguments it cannot use."""
        ...

    def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolPiece]:
        """Pieces while it works, then one ToolOutput. Raises ToolError. Closing it ends what it started."""
        ...


class ServerPrompts(Protocol):
    """Prompts that MCP servers write when a person calls them; which there are may change at any time."""

    @property
    def prompts(self) -> Sequence[PromptFile]:
        """Those of all servers that are up."""
        ...

    async def get_prompt(self, prompt: PromptFile, arguments: Mapping[str, str]) -> ToolOutput:
        """The prompt for these arguments. Raises CtxchatError."""
        ...


class ServedSkills(Protocol):
    """Skills that MCP servers serve; which there are may change at any time."""

    @property
    def skills(self) -> Sequence[PromptFile]:
        """Those that the servers which are up list."""
        ...

    async def read_skill(self, skill: PromptFile, file: str = "") -> str:
        """The text of one, listed or not, or of the `file` of it. Raises CtxchatError, also where it is not what was listed."""
        ...


class BackgroundCommands(Protocol):
    """Commands that go on beside the conversation."""

    @property
    def rows(self) -> Sequence[JobRow]:
        """All of this session, the newest first."""
        ...

    def keep(self, id: str, *, going_on: bool) -> None:
        """Whether it goes on when the session is closed. Raises ToolError where there is none of that id."""
        ...

    async def stop(self, id: str) -> None:
        """End it and all it began. Raises ToolError where there is none of that id."""
        ...

    async def close(self) -> None:
        """End all of them but those that go on."""
        ...


class PersonCommands(Protocol):
    """Commands that the person types, in a shell of their own."""

    def run(self, line: str, *, outside: bool = False) -> AsyncGenerator[ToolText | ToolOutput, None]:
        """One of them, from its first output to its end; closing the generator ends it. `outside`: of the sandbox. Raises
        CtxchatError while another one runs."""
        ...


class WorkspaceFiles(Protocol):
    """The files of a workspace: what calls do to them is kept, and can be taken back. All of it off the event loop."""

    async def begin_call(self, access: Access, target: str, words: Sequence[str] = ()) -> None:
        """A call is about to run that may change `target` (an absolute path; for `write`), or anything; `words` are those by
        which it may name what it changes. Raises CtxchatError where what it does cannot be undone."""
        ...

    async def end_call(self) -> tuple[str, tuple[FileChange, ...], tuple[str, ...]]:
        """An id for the call that began last, what came of it, and the paths that it does not name (`core.files.unnamed`): also
        where a cancel or a kill cut it off. All empty where nothing came of it. Raises CtxchatError."""
        ...

    def forget(self) -> None:
        """What `end_call` gave is in the journal."""
        ...

    async def now(self, paths: Sequence[str]) -> dict[str, FileState | None]:
        """What stands at these paths."""
        ...

    async def stored_digests(self, digests: Collection[str]) -> frozenset[str]:
        """Those of them whose content is there."""
        ...

    async def diff(self, change: FileChange) -> str:
        """The change as text for people."""
        ...

    async def texts(self, change: FileChange) -> tuple[str | None, str | None]:
        """The whole text before and after; None for a side that is no text, is large or is not kept, empty for no file."""
        ...

    async def restore(self, checkpoint: Checkpoint, copies: Collection[str] = ()) -> Checkpoint:
        """Bring its paths from `before` to `after`, all or nothing, what stands at `copies` laid beside; what was done. Raises
        CtxchatError."""
        ...

    async def unfinished(self) -> Checkpoint | None:
        """A restore that a kill cut off, brought to its end. Raises CtxchatError."""
        ...

    def end_restore(self) -> None:
        """The restore is in the journal."""
        ...

    async def close(self) -> None:
        """The session is left."""
        ...


# ── storage, context, time ──────────────────────────────────────────────────────────────────────────────────────────


class JournalPort(Protocol):
    """The journal of one session, open for writing. One call is one transaction."""

    @property
    def session(self) -> str:
        """The session's id."""
        ...

    async def write(self, *records: Record) -> None:
        """Append; when it returns the entries are on disk. Clears the partial round. Raises StorageError."""
        ...

    async def keep(self, partial: Partial) -> None:
        """Remember a round that is not sealed yet, in place of the one before."""
        ...

    async def spill(self, name: str, text: str) -> str:
        """Save a text too large for the view in the session's folder; its path. Names are made safe."""
        ...

    async def attach(self, name: str, data: bytes) -> str:
        """Save an image in the session's folder; its path there, `attachments/…`. Raises StorageError."""
        ...

    async def attached(self, path: str) -> bytes:
        """An image by the path `attach` gave. Raises StorageError where it is gone."""
        ...

    async def close(self) -> None:
        """Give the session free for other writers."""
        ...


class ContextProvider(Protocol):
    """A text that stands around a conversation. What it says first is part of the head; later, before each message of the person,
    what has changed of it goes into the record as a note. One with an attribute `every_request` that is true is asked for every
    request instead, and its words are kept nowhere: what it said is gone from the next request, which costs what a provider has
    cached behind it."""

    @property
    def source_id(self) -> str:
        """Where the text is said to come from."""
        ...

    async def provide(self) -> str:
        """The text; empty for nothing."""
        ...


class FilesNow(Protocol):
    """Files as they are on disk, for who shows them again."""

    async def __call__(self, path: str) -> CurrentFile | None:
        """The file that a call named so; None where it is gone, is no text, or would have to be asked for. Marks nothing as
        seen."""
        ...


class Clock(Protocol):
    """Time, handed in so that tests can hold it still."""

    def now(self) -> str:
        """ISO 8601, UTC, to the millisecond."""
        ...

    def seconds(self) -> float:
        """A steadily rising count of seconds."""
        ...

    async def sleep(self, seconds: float, /) -> None:
        """Wait."""
        ...


class Written(msgspec.Struct, frozen=True):
    """What stands written of a part of a conversation, and the ids of the groups it stands for, in the order of the record."""

    text: str = ""
    covers: Sequence[str] = ()


class SummaryTask(msgspec.Struct, frozen=True):
    """What is to be summarised, and how.

    `groups` are as the record has them; `previous` is the summary that a model wrote of what came before, to be merged.
    `instead` are what code or another agent wrote of ever more of these groups, `previous` merged in: who cannot read them all
    begins from one of those (`summary_task.shortened`). `beside` tells what stays in view, as text, the dearest first;
    `instructions` are a person's. The summary may take `max_tokens`, 0 for as many as it likes. `shorten` is a record of the
    same summariser that came out too long: all it is asked for is that, in its room. `within` is the conversation's own request,
    which its server holds: whoever is the conversation's model may ask behind it instead of being given the groups as text.
    """

    groups: tuple[Group, ...]
    previous: str = ""
    beside: str = ""
    instructions: str = ""
    max_tokens: int = 0
    instead: tuple[Written, ...] = ()
    shorten: str = ""
    within: ModelRequest | None = None


SummaryNews = str | Usage | Notice | PrefixRead
"""What comes while a summary is written: a piece of it, the usage of a call, what a person should know of it, or what a call
behind the conversation itself read of that from the cache."""


class Summariser(Protocol):
    """Makes a summary of groups; may be a model, or code."""

    @property
    def model(self) -> str:
        """Who summarises, empty for code."""
        ...

    def summarise(self, task: SummaryTask) -> AsyncIterator[SummaryNews]:
        """The summary, as it is written.

        Raises ModelError, also for a summary that was cut off or turned into something else.
        """
        ...
