"""Opens sessions: assembles each from its journal and state, its model, its tools with their approvals, and its settings.

A session that is open for writing elsewhere gets a journal that refuses to write; a sub-agent is a session under its caller's
approvals.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from ctxchat.agent.compaction.compactor import Compactor
from ctxchat.agent.compaction.policy import AutoCompactPolicy
from ctxchat.agent.conversation import Conversation, ConversationPorts
from ctxchat.agent.hooks import Hooks
from ctxchat.agent.session import Session
from ctxchat.agent.session_config import SessionConfig
from ctxchat.agent.session_parts import SessionParts
from ctxchat.agent.spending_budget import SpendingBudget, TaskBudget
from ctxchat.agent.turn.approvals import Approvals
from ctxchat.agent.turn.permissions import stricter
from ctxchat.agent.turn.tool_runner import ToolRunner, Workplace
from ctxchat.bootstrap.extensions import Extensions, with_plugins
from ctxchat.bootstrap.flags import in_force
from ctxchat.bootstrap.hooks import HookCommands
from ctxchat.bootstrap.model_choice import Overrides, price, settings_of
from ctxchat.bootstrap.recall import Recollection
from ctxchat.bootstrap.remembered import StoredDayTotal, StoredModelKnowledge
from ctxchat.bootstrap.session_settings import Configuring, remembered, remembered_mode
from ctxchat.bootstrap.shared import Shared, SystemClock, masked_record
from ctxchat.config import paths
from ctxchat.config.rules import add_rules
from ctxchat.core.errors import CtxchatError, SessionBusy, StorageError, UsageError
from ctxchat.core.events import Stamped
from ctxchat.core.head import ToolSpec
from ctxchat.core.journal import AgentChosen, ModeChosen, ModelChosen, SessionState
from ctxchat.core.memos import memos_of
from ctxchat.core.permissions import Rule
from ctxchat.core.ports import EditorFiles, JournalPort, ModelPort, ToolPort
from ctxchat.models.offline import OFFLINE_NAME
from ctxchat.models.settings import where
from ctxchat.storage import loading, private_files, sessions
from ctxchat.storage.journal import begin_journal, open_journal
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.checkpoints import Checkpoints
from ctxchat.tools.conversation import MakeRoom
from ctxchat.tools.delegating import Delegate, TaskNote
from ctxchat.tools.jobs import JobList, Jobs
from ctxchat.tools.mcp.finding import FindTools
from ctxchat.tools.memos import WriteMemo
from ctxchat.tools.person_shell import PersonShell
from ctxchat.tools.read_file import ReadNow
from ctxchat.tools.seen import SeenFiles
from ctxchat.tools.skills import ReadSkill
from ctxchat.tools.todo import Todo, TodoList

if TYPE_CHECKING:
    from ctxchat.bootstrap.telemetry import SpanWriter


def tools_for(
    shared: Shared, session: str, seen: SeenFiles, jobs: Jobs, shows_images: Callable[[], bool], continues: str = ""
) -> tuple[ToolPort, ...]:
    """The built-in tools, in the order in which they are sent to a model. `continues` is the session whose work was handed off to
    this one, if any."""
    recall = Recollection(shared.database, session, continues)
    return standard_tools(
        sandbox=shared.sandbox,
        environ=os.environ,
        asks_everything=shared.settings.permissions.ask == "everything",
        memory_file=paths.config_dir() / "AGENTS.md",
        search=recall.search,
        show=recall.fetch_text,
        web=True,
        seen=seen,
        jobs=jobs,
        shows_images=shows_images,
    )


OpenBelow = Callable[[str, Approvals], Awaitable[Session]]
"""Opens a sub-agent's session by its id, under the given approvals."""


class SubAgents:
    """Opens sub-agents' sessions for the session `caller`; implements `tools.delegating.Open`. `address` returns the caller's
    current model address, `approvals` are the caller's."""

    def __init__(
        self,
        shared: Shared,
        caller: str,
        address: Callable[[], str | None],
        approvals: Approvals,
        open_below: OpenBelow,
    ) -> None:
        self._shared = shared
        self._caller = caller
        self._address = address
        self._approvals = approvals
        self._open_below = open_below
        self._names: dict[str, str] = {}  # agent by session id, for sessions opened by this object

    async def __call__(self, agent: str, session: str = "") -> Session:
        """A new session for this agent (empty: the default one), with the caller's model unless the agent sets its own; or the
        stored session of this id. It has no more permissions than the caller has now. Raises UsageError for an unknown agent, and
        for a session that the caller did not begin."""
        shared = self._shared
        if session:
            return await self._reopen(session)
        settings, own = in_force(shared.loaded.settings, shared.flags, agent)
        caller = await shared.database.run(sessions.row, shared.database, self._caller)
        model = caller.model if own.model is None else settings.model
        records = (AgentChosen(agent), ModelChosen(model, self._address() if model == caller.model else None))
        session = await shared.database.run(
            sessions.create,
            shared.database,
            model=model,
            parent=self._caller,
            folder=str(shared.workspace),
            delegated=True,
            records=records,
        )
        self._names[session] = agent
        return await self._open_below(session, self._approvals.below(own.permissions or "all"))

    async def _reopen(self, session: str) -> Session:
        shared = self._shared
        row = await shared.database.run(sessions.row, shared.database, await shared.find(session))
        if not row.delegated or row.parent != self._caller:
            raise UsageError(f"Session {row.id} is no sub-agent's of this conversation.")
        loaded = await shared.database.run(loading.load_state, shared.database, row.id)
        agent = self._names[row.id] = loaded.state.agent or ""
        own = in_force(shared.loaded.settings, shared.flags, agent)[1]
        return await self._open_below(row.id, self._approvals.below(own.permissions or "all"))

    def only_reads(self, agent: str, session: str = "") -> bool:
        """Whether this agent, or that of a continued `session`, can change nothing, by its own current permissions or by those of
        its caller. For a session not opened since the program started only the caller's are known."""
        own = self._shared.loaded.settings.all_agents.get(self._names.get(session, "") if session else agent)
        mode = own.permissions if own else None
        return stricter(self._approvals.mode, mode or "all") in {"read-only", "plan"}


class ReadOnlyJournal:
    """A `JournalPort` whose every write, and every read for a request, raises SessionBusy with the reason `read_only`."""

    def __init__(self, session: str, read_only: str) -> None:
        self.session = session
        self.read_only = read_only

    async def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise SessionBusy(self.read_only, "Close the other window, or fork the session.")

    write = keep = spill = attach = attached = _refuse

    async def close(self, estimate: int = 0) -> None:
        """Do nothing: no lock is held."""


_ONLY_READ = "This session was opened to be read only."


class Stored(msgspec.Struct, frozen=True):
    """A session as loaded from the store; `problems` name what was damaged or cut off."""

    journal: JournalPort
    state: SessionState
    problems: tuple[str, ...] = ()


class Caller(msgspec.Struct, frozen=True):
    """The session that calls a sub-agent, by its id, and what of it the sub-agent's session uses: the approvals that its actions
    need, where its changes are kept, a budget under the caller's, the reports that its events are written to, and the open files
    of the caller's editor."""

    session: str
    approvals: Approvals
    checkpoints: Checkpoints
    spending: SpendingBudget
    reports: SpanWriter | None
    editor: EditorFiles | None


class Opening:
    """Opens one session of a program.

    `interactive`: there is a person who can be asked. `editor` returns the open files of the editor connected to a session, by
    the session's id. `caller` is given for a sub-agent's session.
    """

    def __init__(
        self,
        shared: Shared,
        interactive: bool,
        editor: Callable[[str], EditorFiles] | None = None,
        caller: Caller | None = None,
    ) -> None:
        self._shared = shared
        self._caller = caller
        self._editor = editor
        self._spending: SpendingBudget | None = caller.spending if caller else None
        self._reports = caller.reports if caller else None
        self._interactive = interactive
        self._extensions = Extensions()
        self._clock = SystemClock()
        self._notices: list[str] = []
        self._conversation: Conversation  # both are set in `_session`; the tools that use them run later
        self._policy: AutoCompactPolicy
        below = caller is not None
        self._configuring = Configuring(shared, self._extensions, lasting=interactive and not below, delegated=below)

    async def open(self, session_id: str, *, only_read: bool = False, keep_empty: bool = False) -> Session:
        """A new session, or the stored one of this id. `only_read` opens it without its write lock, `keep_empty` keeps it for a
        day in the store though nothing is written. Raises UsageError and StorageError."""
        shared, database = self._shared, self._shared.database
        if not session_id and not database.only_read:
            model = self._model(None).name
            begun = await database.run(begin_journal, database, model, str(shared.workspace), keep_empty)
            return await self._open_stored(Stored(begun.journal, begun.state))
        session = await shared.find(session_id)
        if only_read and self._caller is None:
            self._configuring.lasting = True  # nothing is sent; its next message is priced as if the chat sent it
        return await self._open_stored(
            await (self._load_read_only(session, _ONLY_READ) if only_read else self._stored(session, keep_empty))
        )

    async def _open_stored(self, stored: Stored) -> Session:
        """The session for this record; closes the journal where opening it fails."""
        try:
            return await self._session(stored.journal.session, stored)
        except BaseException:
            await stored.journal.close()  # otherwise the session would stay locked
            raise

    async def _session(self, session: str, stored: Stored) -> Session:
        shared, state = self._shared, stored.state
        self._configuring.kept = lambda: state.setup_deferred.settings
        agent, agent_notices = remembered(self._configuring, state.agent)
        model = self._model(agent, state, reading=bool(stored.journal.read_only))
        self._configuring.first = model.name
        await asyncio.to_thread(model.stated)  # the first call reads the large model catalogue
        settings = self._configuring.settings(agent)[0]
        mode = settings.permissions.mode
        if not (shared.flags.permissions or stored.journal.read_only):
            mode, mode_notices = remembered_mode(mode, state.mode, interactive=self._interactive)
            agent_notices += mode_notices
        caller = self._caller
        approvals = (
            caller.approvals
            if caller
            else Approvals(mode, folder=str(shared.workspace), interactive=self._interactive, store=self._keep_rules)
        )
        self._spending = self._spending or SpendingBudget(
            session=session, cost_usd=state.cost_usd, day=StoredDayTotal(shared.database)
        )
        self._configuring.spending = self._spending
        missed = await shared.database.run(shared.database.missing_writes)
        tool_runner, checkpoints, seen = await asyncio.to_thread(self._tool_runner, session, approvals, state)
        config, telemetry_notices = await asyncio.to_thread(self._config, agent, model.name)
        approvals.rules = config.rules
        tool_runner.offer(config.tools, config.disallowed_tools)
        tool_runner.limits = config.limits
        if caller is None:
            self._spending.limits = config.spending
        conversation = await self._begin_conversation(stored, model, config, tool_runner.specs)
        self._configuring.kept = lambda: conversation.state.setup_deferred.settings
        if not self._notices and (state.model, state.address) != (model.name, model.address):
            chosen = ModelChosen(model.name, model.address)  # it continues with this model even if the settings change
            conversation.write_later(chosen)
        if state.mode == "all" != approvals.mode:
            conversation.write_later(ModeChosen(""))  # said once
        if state.agent is None and settings.agents and not state.ledger.groups:
            conversation.write_later(AgentChosen(config.agent))
        files_now = ReadNow(
            seen,
            str(shared.workspace),
            lambda access_request: approvals.judge("read_file", access_request).verdict == "allow",
            shared.masking,
        )
        summariser = config.summariser_of(model) if config.summariser_of else None
        compactor = Compactor(
            conversation, summariser=summariser, registry=with_plugins(), prices=price, files_now=files_now
        )
        self._conversation, self._policy = conversation, compactor.policy
        folder = str(private_files.session_folder(shared.database.folder, session))
        own = caller is None and not stored.journal.read_only  # a person opened it, and it can be written
        commands = self._hook_commands(folder)
        hooks = Hooks(
            config.hooks, conversation, compactor, commands, str(shared.workspace), caller.session if caller else ""
        )
        opened = Session(
            SessionParts(conversation, tool_runner, compactor, hooks),
            config,
            configure=self._configuring,
            files=checkpoints if own else None,
            person_commands=PersonShell(shared.sandbox, os.environ, str(shared.workspace), folder, shared.masking)
            if own
            else None,
            notices=(*missed, *stored.problems, *agent_notices, *self._notices, *telemetry_notices, *config.notices),
        )
        if opened.files and state.ledger.groups and (recovered := await opened.files.recover()):
            opened.notices = (*opened.notices, recovered)
        return opened

    def _config(self, agent: str | None, model: str) -> tuple[SessionConfig, tuple[str, ...]]:
        """The session's configuration, with a listener that passes its events to telemetry and followers, and a notice where
        telemetry is unavailable. Blocks."""
        config = self._configuring(agent, model)
        notices: tuple[str, ...] = ()
        try:
            telemetry = self._shared.telemetry
        except UsageError as problem:
            telemetry, notices = None, (str(problem),)
        caller = self._caller
        self._reports = telemetry and telemetry.of_session(config.agent, caller.reports if caller else None)
        followed = self._shared.followers.get(caller.session) if caller else None
        listeners = [each for each in (self._reports, followed) if each]

        def listener(stamped: Stamped) -> None:
            for each in listeners:
                each(stamped)

        return msgspec.structs.replace(config, listener=listener if listeners else None), notices

    async def _begin_conversation(
        self, stored: Stored, model: ModelPort, config: SessionConfig, tools: Sequence[ToolSpec]
    ) -> Conversation:
        """The conversation of a stored session, with what earlier sessions have learned about its model."""
        knowledge_store = StoredModelKnowledge(self._shared.database)
        ports = ConversationPorts(
            self._clock,
            knowledge_store,
            known=await asyncio.to_thread(knowledge_store.load, model.name),
            masked=masked_record(self._shared.masking),
            spending=self._spending or SpendingBudget(),
        )
        return Conversation(stored.journal, stored.state, model, config, ports, tools)

    def _hook_commands(self, folder: str) -> HookCommands:
        """The runner for hook commands; `folder` is the session's own."""
        shared = self._shared
        return HookCommands(
            shared.workspace,
            os.environ,
            lambda: shared.loaded,
            shared.masking,
            sandbox=lambda: shared.sandbox,
            session_folder=folder,
        )

    async def _stored(self, session: str, keep_empty: bool) -> Stored:
        database = self._shared.database
        if database.only_read:
            return await self._load_read_only(session, database.only_read)
        try:
            opened = await database.run(open_journal, database, session, keep_empty)
        except StorageError as problem:  # another has it, or a page it would be written to is damaged
            return await self._load_read_only(session, str(problem))
        return Stored(opened.journal, opened.state, opened.problems)

    async def _load_read_only(self, session: str, why: str) -> Stored:
        """Without holding it: what others write meanwhile is not seen."""
        loaded = await self._shared.database.run(loading.load_state, self._shared.database, session)
        return Stored(ReadOnlyJournal(session, why), loaded.state, loaded.problems)

    def _model(self, agent: str | None, state: SessionState | None = None, *, reading: bool = False) -> ModelPort:
        """The model to begin with: that of the flags, else the one a stored session went on with, at its address, else the
        agent's. A name nobody serves is a notice, and the offline assistant answers, where somebody is there to choose another
        one or nothing is to be sent; else UsageError."""
        shared, settings = self._shared, self._configuring.settings(agent)[0]
        try:
            if state and state.model and not shared.flags.model and self._can_be_asked(state):
                kept = msgspec.structs.replace(shared.overrides("", ""), kept=state.address)
                return shared.model(state.model, kept, settings)
            return shared.model(shared.flags.model, settings=settings)
        except CtxchatError as problem:
            if not (self._interactive or reading):
                raise
            answers = "Until then the offline assistant answers; /model shows what else is there."
            self._notices.append(f"{problem} {answers}")
            return shared.model(OFFLINE_NAME, Overrides(), settings)

    def _can_be_asked(self, state: SessionState) -> bool:
        """False for a model that only its replies name, as in a session brought in from elsewhere, and that has no key here:
        such a session goes on with the settings' model."""
        if state.address is not None or state.model.startswith(OFFLINE_NAME.partition("/")[0]):
            return True
        try:
            keys = settings_of(state.model, self._shared.loaded.settings, Overrides()).provider.keys
        except UsageError:
            return False
        return not keys or bool(where(keys, os.environ, keyring=False))

    def _shows_images(self) -> bool:
        return self._conversation.model.count_image(0, 0) > 0

    def _tool_runner(
        self, session: str, approvals: Approvals, state: SessionState
    ) -> tuple[ToolRunner, Checkpoints, SeenFiles]:
        shared = self._shared
        folder = private_files.session_folder(shared.database.folder, session)
        kept = folder / private_files.CHECKPOINTS
        seen = SeenFiles(kept)
        caller = self._caller
        checkpoints = (
            caller.checkpoints if caller else Checkpoints(shared.workspace, kept, (str(shared.database.folder),))
        )
        checkpoints.seen.append(seen)
        editor = caller.editor if caller else self._editor(session) if self._editor else None
        jobs = Jobs(str(folder))
        tools = list(tools_for(shared, session, seen, jobs, self._shows_images, state.continues))
        for todo in (tool for tool in tools if isinstance(tool, Todo)):
            todo.resume(state.ledger.groups)
            self._configuring.own = (TodoList(todo), JobList(jobs))
        tools.append(MakeRoom(lambda keep: self._policy.wanted_by_model(keep)))
        tools.append(WriteMemo(lambda: {m.name: m.text for m in memos_of(self._conversation.ledger).values()}))
        if caller is None:  # a sub-agent has none of its own
            open_below = partial(self._open_below, checkpoints, session, editor)
            below = SubAgents(shared, session, lambda: self._conversation.model.address, approvals, open_below)
            known = {n: a.description for n, a in shared.loaded.settings.all_agents.items()}
            tools.append(Delegate(below, known, below.only_reads, lambda: shared.loaded.settings.limits.task_seconds))
        else:
            self._configuring.own = (*self._configuring.own, TaskNote())
        if (
            shared.loaded.prompts or shared.loaded.untrusted or shared.servers.rows
        ):  # which may be trusted, or come up, later
            tools.append(ReadSkill(lambda: shared.loaded.prompts, shared.unchanged, shared.servers))
        if shared.servers.rows:
            tools.append(FindTools(lambda: tool_runner.guest_specs))
        tools += self._extensions.tools([tool.spec.name for tool in tools])
        tool_runner = ToolRunner(
            tools,
            approvals,
            self._clock,
            Workplace(
                str(shared.workspace),
                str(folder),
                files=checkpoints,
                editor=editor,
                background=jobs,
            ),
            servers=shared.servers if shared.servers.rows else None,
            mask=shared.masking,
        )
        self._configuring.tools = lambda: tool_runner.every
        return tool_runner, checkpoints, seen

    async def _open_below(
        self, checkpoints: Checkpoints, above: str, editor: EditorFiles | None, session: str, approvals: Approvals
    ) -> Session:
        spending = TaskBudget(self._spending or SpendingBudget())
        caller = Caller(above, approvals, checkpoints, spending, self._reports, editor)
        return await Opening(self._shared, self._interactive, caller=caller).open(session)

    async def _keep_rules(self, rules: Sequence[Rule]) -> None:
        try:
            await asyncio.to_thread(add_rules, paths.config_dir(), rules)
        except OSError as problem:
            raise CtxchatError(
                f"The rule could not be stored in {paths.config_dir()}: {problem.strerror or problem}.",
                "It holds for this session.",
            ) from problem
