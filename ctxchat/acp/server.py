"""The agent's side of the Agent Client Protocol: handles the requests of an editor.

Imports nothing of a session before one is asked for, so that `initialize` is answered quickly. Each error is one sentence.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ParamSpec, TypeVar, cast

from acp import PROTOCOL_VERSION, Agent, Client, RequestError
from acp.agent.connection import AgentSideConnection
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    CloseSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from ctxchat import __version__
from ctxchat.acp.wire import FAILED, INVALID_PARAMS, NOT_FOUND_CODE, Wire
from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.sanitize import clean

if TYPE_CHECKING:
    from ctxchat.acp.editor import Editor
    from ctxchat.acp.editor_session import EditorSession
    from ctxchat.acp.files import OpenFiles
    from ctxchat.acp.prompts import Block
    from ctxchat.acp.settings import ConfigOption, EditorServer
    from ctxchat.agent.session import Session
    from ctxchat.bootstrap.program import Program

SESSIONS_A_PAGE = 100
"""Sessions on one page of a listing."""

P = ParamSpec("P")
T = TypeVar("T")

WriteDown = Callable[[Exception], str]
"""Logs an unexpected exception, and returns a sentence on it."""


async def serve(flags: Flags, source: BinaryIO, sink: BinaryIO, write_down: WriteDown) -> None:
    """Answer an editor until it closes the connection or this is cancelled; then close every session in good order."""
    wire = Wire(source, sink)
    agent = EditorAgent(flags, write_down, wire)
    logging.getLogger().addHandler(Faults())
    served = cast("Agent", agent)  # the library answers a method it lacks as unknown
    connection = AgentSideConnection(served, wire, listening=False, use_unstable_protocol=True)
    listening = asyncio.create_task(connection.listen())  # in a task of its own, since it would swallow a cancel
    try:
        await asyncio.wait({listening})
    finally:
        listening.cancel()
        await agent.close()
        await connection.close()


class Faults(logging.Handler):
    """Prints errors outside of requests, a line each, on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        problem = record.exc_info[1] if record.exc_info else None
        print(clean(f"ctxchat: {record.getMessage()}{f': {problem}' if problem else ''}"), file=sys.stderr)


def with_plain_errors(
    handler: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorates a handler so that its errors reach the editor as one sentence."""

    @wraps(handler)
    async def call(*args: P.args, **named: P.kwargs) -> T:
        try:
            return await handler(*args, **named)
        except UsageError as problem:
            raise RequestError(INVALID_PARAMS, _shown_error(str(problem))) from problem
        except (CtxchatError, ConnectionError) as problem:
            raise RequestError(FAILED, _shown_error(str(problem))) from problem
        except RequestError:
            raise
        except Exception as fault:
            agent = args[0]
            assert isinstance(agent, EditorAgent)
            raise RequestError(FAILED, _shown_error(agent.write_down(fault))) from fault

    return call


def _shown_error(text: str) -> str:
    from ctxchat.core.secrets import masked

    return clean(masked(text))


class EditorAgent:
    """Implements the library's `Agent`, as far as ctxchat supports it, for one connection."""

    def __init__(self, flags: Flags, write_down: WriteDown, wire: Wire) -> None:
        from ctxchat.acp.programs import Programs

        self.write_down = write_down
        self._programs = Programs(flags)
        self._wire = wire
        self._client: Client | None = None
        self._open: dict[str, EditorSession] = {}
        self._models: dict[Path, tuple[str, ...]] = {}  # by folder
        self._beside: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: Client) -> None:
        """Keep the proxy by which to call the editor."""
        self._client = conn

    async def close(self) -> None:
        """Cancel background tasks, and close every session and program."""
        for task in self._beside:
            task.cancel()
        for opened in list(self._open.values()):
            with suppress(CtxchatError):  # the conversation is in the journal already
                await opened.close()
        await self._programs.close()

    # ── the connection ──

    @with_plain_errors
    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **_: Any
    ) -> InitializeResponse:
        """Answer with our capabilities; those of the editor are kept by the wire."""
        self._start(self._programs.warm_up())
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            agent_info=Implementation(name="ctxchat", title="ctxchat", version=__version__),
            auth_methods=[],
        )

    # ── sessions ──

    @with_plain_errors
    async def new_session(
        self, cwd: str, mcp_servers: list[EditorServer] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Open a new session in a folder."""
        from ctxchat.acp.settings import modes

        program = await self._programs.program_for(cwd, mcp_servers or ())
        session = await program.open(keep_empty=True, editor=self._files)
        await self._take_in(program, session)
        return NewSessionResponse(session_id=session.id, modes=modes(session), config_options=self._options(session.id))

    @with_plain_errors
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[EditorServer] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Open a stored session, and send its whole record."""
        from ctxchat.acp.settings import modes

        opened = await self._stored(cwd, session_id, mcp_servers)
        await opened.retell()
        await opened.tell_notices()
        return LoadSessionResponse(modes=modes(opened.session), config_options=self._options(session_id))

    @with_plain_errors
    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: list[EditorServer] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Open a stored session without sending its record, for an editor that has kept it."""
        from ctxchat.acp.settings import modes

        opened = await self._stored(cwd, session_id, mcp_servers)
        await opened.tell_notices()
        return ResumeSessionResponse(modes=modes(opened.session), config_options=self._options(session_id))

    @with_plain_errors
    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """A page of stored sessions, with `cwd` only those of that folder, the last used first."""
        begin = int(cursor or 0) if (cursor or "0").isdecimal() else -1
        if begin < 0:
            raise UsageError(f"cursor: {clean(cursor or '')!r} is none of ours.")
        program = await self._programs.program_for(cwd or str(workspace_of("")))
        rows = [r for r in await program.sessions() if r.folder and not r.delegated]
        if cwd:
            rows = [r for r in rows if r.folder == str(program.workspace)]
        shown = [
            SessionInfo(session_id=r.id, cwd=r.folder, title=clean(r.title) or None, updated_at=r.updated)
            for r in rows[begin : begin + SESSIONS_A_PAGE]
        ]
        return ListSessionsResponse(
            sessions=shown, next_cursor=str(begin + SESSIONS_A_PAGE) if rows[begin + SESSIONS_A_PAGE :] else None
        )

    @with_plain_errors
    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Cancel the turn under way, and release the session for others."""
        opened = self._session(session_id)
        self._open.pop(session_id)
        await opened.close()
        return CloseSessionResponse()

    # ── one session ──

    @with_plain_errors
    async def prompt(self, session_id: str, prompt: list[Block], **_: Any) -> PromptResponse:
        """Run one turn."""
        return PromptResponse(stop_reason=await self._session(session_id).prompt(prompt))

    @with_plain_errors
    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the turn under way, if there is one."""
        if opened := self._open.get(session_id):
            await opened.cancel()

    @with_plain_errors
    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        """Set the permission mode."""
        from ctxchat.acp.settings import mode_of
        from ctxchat.acp.updates import config

        opened = self._session(session_id)
        await opened.session.setup.choose_mode(mode_of(mode_id))
        self._start(opened.tell(config(self._options(session_id))))
        return SetSessionModeResponse()

    @with_plain_errors
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Set the permission mode or the model."""
        from ctxchat.acp import updates
        from ctxchat.acp.settings import MODE, MODEL, mode_of

        opened = self._session(session_id)
        session = opened.session
        if config_id == MODE:
            await session.setup.choose_mode(mode_of(str(value)))
            self._start(opened.tell(updates.mode(session.permissions.mode)))
        elif config_id == MODEL:
            await session.setup.switch_model(str(value))
            self._start(opened.tell_figures())
        else:
            raise UsageError(f"There is no option {clean(config_id)!r}.", f"There are {MODE} and {MODEL}.")
        return SetSessionConfigOptionResponse(config_options=self._options(session_id))

    # ── internal ──

    def _files(self, session_id: str) -> OpenFiles:
        """The access to the editor's open files, for a session."""
        from ctxchat.acp.files import OpenFiles

        return OpenFiles(self._editor(), session_id)

    def _editor(self) -> Editor:
        from ctxchat.acp.editor import Editor

        assert self._client
        return Editor(self._client, self._wire)

    def _session(self, session_id: str) -> EditorSession:
        if session_id not in self._open:
            raise RequestError(NOT_FOUND_CODE, f"No session {clean(session_id)!r} is open. Begin one, or load it.")
        return self._open[session_id]

    async def _stored(self, cwd: str, session_id: str, given: list[EditorServer] | None) -> EditorSession:
        program = await self._programs.program_for(cwd, given or ())
        if session_id not in {row.id for row in await program.sessions()}:
            raise RequestError(NOT_FOUND_CODE, f"There is no session {clean(session_id)!r}.")
        if opened := self._open.pop(session_id, None):
            await opened.close()
        return await self._take_in(program, await program.open(session_id, keep_empty=True, editor=self._files))

    async def _take_in(self, program: Program, session: Session) -> EditorSession:
        """Register an opened session. Its commands, gauge and models are sent after the answer to the request."""
        from ctxchat.acp.editor_session import EditorSession

        renew = partial(self._programs.renew, program)
        opened = self._open[session.id] = EditorSession(program, session, self._editor(), renew)
        self._start(self._introduce(opened))
        return opened

    async def _introduce(self, opened: EditorSession) -> None:
        from ctxchat.acp.updates import config

        await opened.tell_commands()
        await opened.tell_figures()
        folder = opened.program.workspace
        if folder not in self._models:
            found = await opened.program.models()
            self._models[folder] = tuple(row.name for row in found if row.reachable)
            await opened.tell(config(self._options(opened.session.id)))
        await opened.program.servers_awaited()
        await opened.tell_commands()

    def _options(self, session_id: str) -> list[ConfigOption]:
        """The config options of a session. Its models are those that were found, or until then those of the settings."""
        from ctxchat.acp.settings import config_options

        opened = self._open[session_id]
        program = opened.program
        models = self._models.get(program.workspace, tuple(program.settings.models))
        return config_options(opened.session, models)

    def _start(self, work: Awaitable[None]) -> None:
        """Run work in the background, beginning after the answer to the present request. Its expected errors are ignored."""

        async def quietly() -> None:
            with suppress(CtxchatError, ConnectionError):
                await work

        task = asyncio.create_task(quietly())
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
