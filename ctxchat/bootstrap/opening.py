"""Opening a session: its journal and state, the model, the tools behind their gate, what stands around it."""

from __future__ import annotations

import asyncio
import os

import msgspec

from ctxchat.agent.compactor import Compactor
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.gate import Gate
from ctxchat.agent.hooks import Hooks
from ctxchat.agent.prompts import prompt
from ctxchat.agent.session import Session
from ctxchat.agent.summariser import ModelSummariser
from ctxchat.agent.toolbox import Toolbox
from ctxchat.bootstrap.agents import in_force, unknown_tools
from ctxchat.bootstrap.assumptions import StoredAssumptions
from ctxchat.bootstrap.choice import Overrides, price
from ctxchat.bootstrap.clock import SystemClock
from ctxchat.bootstrap.extensions import Extensions
from ctxchat.bootstrap.hooks import HookCommands, hooks_of
from ctxchat.bootstrap.options import agent_options, compiler_of
from ctxchat.bootstrap.reading import ReadOnlyJournal
from ctxchat.bootstrap.shared import Shared
from ctxchat.bootstrap.strategies import with_plugins
from ctxchat.bootstrap.surroundings import WorkspaceSurroundings
from ctxchat.bootstrap.tools import tools_for
from ctxchat.config import paths
from ctxchat.config.rules import add_rule, read_rules
from ctxchat.context.standard import standard_providers
from ctxchat.core.access import Rule, parse_rule
from ctxchat.core.errors import CtxchatError, SessionBusy
from ctxchat.core.hooks import replaces_automatic
from ctxchat.core.journal import SessionState
from ctxchat.core.ports import ContextProvider, JournalPort, ModelPort, Summariser
from ctxchat.models.offline import OfflineAssistant
from ctxchat.models.offline.summariser import OfflineSummariser
from ctxchat.storage import files, loading, sessions
from ctxchat.storage.journal import open_journal


class Stored(msgspec.Struct, frozen=True):
    """A session as it was found. `read_only` says why it cannot be written, `problems` what was damaged or cut off."""

    journal: JournalPort
    state: SessionState
    read_only: str = ""
    problems: tuple[str, ...] = ()


class Opening:
    """How sessions of a program are put together. `interactive` says that somebody can be asked."""

    def __init__(self, shared: Shared, interactive: bool) -> None:
        self._shared = shared
        self._interactive = interactive
        self._settings, self._agent = in_force(shared.loaded.settings, shared.flags, shared.agent)
        self._extensions = Extensions()
        self._missing: list[str] = []
        self._clock = SystemClock()
        self._memory_file = paths.config_dir() / "AGENTS.md"
        self._gate = Gate(
            self._settings.permissions.mode, self._rules(), interactive=interactive, store=self._keep_rule
        )

    async def open(self, session_id: str) -> Session:
        """A new session, or a stored one. Raises UsageError and StorageError."""
        shared = self._shared
        session = await shared.find(session_id) if session_id else ""
        model = shared.model(shared.flags.model or (await self._model_of(session) if session else ""))
        if not session:
            session = await shared.database.run(sessions.create, shared.database, model=model.name)
        stored = await self._stored(session)
        toolbox = await asyncio.to_thread(self._toolbox, session)
        conversation = Conversation(
            stored.journal,
            stored.state,
            model,
            agent_options(self._settings, model.name, shared.flags.max_rounds, ahead=self._interactive),
            self._clock,
            system=f"{self._instructions()}\n\nThe folder: {shared.workspace}",
            tools=toolbox.specs,
            surroundings=WorkspaceSurroundings(shared.workspace, self._memory_file, self._providers()),
            compiler=compiler_of(self._settings),
            transforms=self._extensions.transforms(self._settings.context.transforms),
            assumptions=StoredAssumptions(shared.database),
        )
        hooks = hooks_of(self._settings.hooks)
        compactor = Compactor(
            conversation,
            summariser=self.summariser(model),
            registry=with_plugins(),
            by_hooks=replaces_automatic(hooks),
            prices=price,
        )
        return Session(
            conversation,
            toolbox,
            self._gate,
            compactor,
            open_model=shared.model,
            summariser_of=self.summariser,
            hooks=Hooks(hooks, conversation, compactor, HookCommands(shared.workspace, os.environ)) if hooks else None,
            read_only=stored.read_only,
            notices=(*stored.problems, *self._extensions.problems, *self._missing),
        )

    async def _stored(self, session: str) -> Stored:
        database = self._shared.database
        try:
            opened = await database.run(open_journal, database, session)
        except SessionBusy as busy:
            loaded = await database.run(loading.load, database, session)
            return Stored(ReadOnlyJournal(session, str(busy)), loaded.state, str(busy), loaded.problems)
        return Stored(opened.journal, opened.state, "", opened.problems)

    async def _model_of(self, session: str) -> str:
        """The model a stored session went on with, where it can still be had."""
        row = await self._shared.database.run(sessions.row, self._shared.database, session)
        try:
            self._shared.model(row.model)
        except CtxchatError:
            return ""
        return row.model

    def _toolbox(self, session: str) -> Toolbox:
        shared = self._shared
        folder = files.session_folder(shared.database.folder, session)
        tools = list(tools_for(shared, session, self._memory_file, None))
        tools += self._extensions.tools([tool.spec.name for tool in tools])
        if (wanted := self._agent.tools) is not None:
            self._missing = unknown_tools(self._agent, [tool.spec.name for tool in tools])
            tools = [tool for tool in tools if tool.spec.name in wanted]
        return Toolbox(tools, self._gate, self._clock, workspace=str(shared.workspace), session_folder=str(folder))

    def _instructions(self) -> str:
        """The agent's own, else the usual ones."""
        return prompt("system") if self._agent.prompt is None else self._agent.prompt.strip()

    def _providers(self) -> list[ContextProvider]:
        """The providers of the settings, in their order."""
        names, workspace = self._settings.context.providers, self._shared.workspace
        ours = {p.source_id: p for p in standard_providers(workspace, trusted=self._shared.trusted)}
        theirs = self._extensions.providers([n for n in names if n not in ours], workspace)
        found = ours | theirs
        return [found[name] for name in names if name in found]

    def summariser(self, model: ModelPort) -> Summariser:
        """Who writes summaries: the model set for it, else the one of the session; without one, sentences chosen by code."""
        chosen = self._settings.context.summary_model
        writer = (
            self._shared.model(chosen.name, Overrides(chosen.api_base, chosen.api_key_env, chosen.window))
            if chosen.name
            else model
        )
        if isinstance(writer, OfflineAssistant):
            return OfflineSummariser(writer.count)
        return ModelSummariser(writer, self._clock)

    def _rules(self) -> list[Rule]:
        stored, _ = read_rules(paths.config_dir())
        written = [parse_rule(text) for text in self._settings.permissions.rules]
        return [*stored, *(rule for rule in written if rule)]

    async def _keep_rule(self, rule: Rule) -> None:
        try:
            await asyncio.to_thread(add_rule, paths.config_dir(), rule)
        except OSError as problem:
            raise CtxchatError(f"The rule could not be stored: {problem.strerror or problem}.") from problem
