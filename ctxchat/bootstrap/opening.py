"""Opening a session: its journal and state, the model, the tools behind their gate, what stands around it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ctxchat.agent.compactor import Compactor
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.gate import Gate
from ctxchat.agent.prompts import prompt
from ctxchat.agent.session import Session
from ctxchat.agent.toolbox import Toolbox
from ctxchat.bootstrap.clock import SystemClock
from ctxchat.bootstrap.options import agent_options, compiler_of
from ctxchat.bootstrap.reading import ReadOnlyJournal
from ctxchat.bootstrap.surroundings import WorkspaceSurroundings
from ctxchat.bootstrap.tools import tools_for
from ctxchat.config import paths
from ctxchat.config.rules import add_rule, read_rules
from ctxchat.context.standard import standard_providers
from ctxchat.core.access import Rule, parse_rule
from ctxchat.core.errors import CtxchatError, SessionBusy
from ctxchat.core.journal import SessionState
from ctxchat.core.ports import JournalPort
from ctxchat.storage import files, loading, sessions
from ctxchat.storage.journal import open_journal

if TYPE_CHECKING:
    from ctxchat.bootstrap.program import Program


class Opening:
    """How sessions of a program are put together. `interactive` says that somebody can be asked."""

    def __init__(self, program: Program, interactive: bool) -> None:
        self._program = program
        self._interactive = interactive

    async def open(self, session_id: str) -> Session:
        """A new session, or a stored one. Raises UsageError and StorageError."""
        program = self._program
        database = program.database
        session = await program.find(session_id) if session_id else ""
        model = program.model(program.flags.model or (await self._model_of(session) if session else ""))
        if not session:
            session = await database.run(sessions.create, database, model=model.name)
        journal, state, why = await self._journal(session)
        folder = files.session_folder(database.folder, session)
        settings = program.settings
        gate = Gate(settings.permissions.mode, self._rules(), interactive=self._interactive, store=self._store)
        memory_file = paths.config_dir() / "AGENTS.md"
        await asyncio.to_thread(lambda: program.sandbox)
        tools = tools_for(program, session, memory_file, None)
        toolbox = Toolbox(tools, gate, SystemClock(), workspace=str(program.workspace), session_folder=str(folder))
        wanted = settings.context.providers
        providers = [p for p in standard_providers(program.workspace, trusted=program.trusted) if p.source_id in wanted]
        conversation = Conversation(
            journal,
            state,
            model,
            agent_options(settings, model.name, program.flags.max_rounds),
            SystemClock(),
            system=_system(program.workspace),
            tools=toolbox.specs,
            surroundings=WorkspaceSurroundings(
                program.workspace, memory_file, providers, with_memory="memory_files" in wanted
            ),
            compiler=compiler_of(settings),
        )
        return Session(conversation, toolbox, gate, Compactor(conversation), open_model=program.model, read_only=why)

    async def _journal(self, session: str) -> tuple[JournalPort, SessionState, str]:
        """The session's journal and state, and why it cannot be written where it cannot."""
        database = self._program.database
        try:
            opened = await database.run(open_journal, database, session)
        except SessionBusy as busy:
            loaded = await database.run(loading.load, database, session)
            return ReadOnlyJournal(session, str(busy)), loaded.state, str(busy)
        return opened.journal, opened.state, ""

    async def _model_of(self, session: str) -> str:
        """The model a stored session went on with, where it can still be had."""
        row = await self._program.database.run(sessions.row, self._program.database, session)
        try:
            self._program.model(row.model)
        except CtxchatError:
            return ""
        return row.model

    def _rules(self) -> list[Rule]:
        stored, _ = read_rules(paths.config_dir())
        written = [parse_rule(text) for text in self._program.settings.permissions.rules]
        return [*stored, *(rule for rule in written if rule)]

    async def _store(self, rule: Rule) -> None:
        try:
            await asyncio.to_thread(add_rule, paths.config_dir(), rule)
        except OSError as problem:
            raise CtxchatError(f"The rule could not be stored: {problem.strerror or problem}.") from problem


def _system(workspace: Path) -> str:
    return f"{prompt('system')}\n\nThe folder: {workspace}"
