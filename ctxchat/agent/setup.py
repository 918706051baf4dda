"""Exchanges the model, the agent and the settings of an open session.

Settings edited during a turn apply from the next message on, except options and spending limits. The mode, a fallback model, and
what waited for a compaction come into force during a turn as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from ctxchat.agent.emitting import to_the_end
from ctxchat.agent.model_knowledge import ModelKnowledge
from ctxchat.agent.session_config import Configure, SessionConfig, next_model
from ctxchat.agent.session_lock import SessionLock
from ctxchat.agent.session_parts import SessionParts
from ctxchat.core.cache_state import NextCall
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError, StorageError, UsageError
from ctxchat.core.journal import AgentChosen, EffortChosen, ModeChosen, ModelChosen, SetupDeferred
from ctxchat.core.options import Options
from ctxchat.core.permissions import Mode, Rule
from ctxchat.core.ports import ModelPort, ToolOutput
from ctxchat.core.prices import next_cost
from ctxchat.core.prompt_files import FilledPrompt, PromptFile, named_arguments, skill_text
from ctxchat.core.times import epoch

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Levels of effort by the names that providers use. A model whose own levels are unknown is taken to have all of them."""


def levels_told(model: ModelPort) -> str:
    """The levels of effort that a model has, as a sentence."""
    levels = LEVELS if model.efforts is None else model.efforts
    if not levels:
        return f"{model.name} has no levels of effort."
    return f"{model.name} has {', '.join(levels[:-1])}{' and ' if levels[1:] else ''}{levels[-1]}."


class Setup:
    """Exchanges model, agent and edited settings of one session. `config` is the configuration it was opened with; `configure`
    makes a new one from the present settings, and without it only the model can be exchanged."""

    def __init__(
        self,
        parts: SessionParts,
        lock: SessionLock,
        config: SessionConfig,
        configure: Configure | None,
    ) -> None:
        self._conversation = parts.conversation
        self._lock = lock
        self._tool_runner = parts.tool_runner
        self._compactor = parts.compactor
        self._hooks = parts.hooks
        self._config = config
        self._configure = configure
        self._late = False  # settings were edited during a turn
        self._limits = config.spending
        parts.compactor.follow_deferred = self._follow_deferred
        self.fallback_answers = False
        """Whether a fallback answers in the turn under way, in place of the chosen model."""
        self.doubted: set[str] = set()
        """Names of models that failed when last asked; choosing a model removes its name."""

    @property
    def agent(self) -> str:
        """The agent's name, empty for the usual one."""
        return self._config.agent

    @property
    def notices(self) -> tuple[str, ...]:
        """A sentence for each thing wrong with the present settings."""
        model, wanted = self._conversation.model, self._config.effort
        wrong = wanted and model.efforts is not None and wanted not in model.efforts
        return (*self._config.notices, *((f"effort = {wanted!r} is left out: {levels_told(model)}",) if wrong else ()))

    @property
    def effort(self) -> str:
        """The level of effort in force, empty for the model's usual one."""
        return self._conversation.effort

    @property
    def levels(self) -> str:
        """The levels of effort that the model has, as a sentence."""
        return levels_told(self._conversation.model)

    async def choose_effort(self, level: str) -> None:
        """Use this level of effort from the next request on; empty for that of the settings. Raises UsageError for a level that
        the model does not have."""
        self.check_level(level)
        async with self._lock.alone():
            await self._conversation.write(EffortChosen(level), *self._put_off_no_more("effort"))

    async def choose_mode(self, mode: Mode) -> None:
        """Use this permission mode from now on, also where the session is opened again, but for `all`."""
        self._tool_runner.approvals.mode = mode
        if not self._lock.read_only:
            self._conversation.write_later(ModeChosen(mode))
        if not (self._lock.read_only or self._lock.busy):  # during a turn it is written with what comes next
            async with self._lock.alone():
                with suppress(StorageError):
                    await self._conversation.flush()

    def check_level(self, level: str) -> None:
        """Raises UsageError for a level of effort that the model does not have."""
        model = self._conversation.model
        known = LEVELS if model.efforts is None else model.efforts
        if level and level not in known:
            raise UsageError(levels_told(model))

    @property
    def prompts(self) -> Sequence[PromptFile]:
        """Skills, command files and prompts of servers that a person can call as `/name`."""
        servers = self._config.server_prompts
        return [*(prompt for prompt in self._config.prompts if prompt.by_person), *(servers.prompts if servers else ())]

    async def await_server(self, name: str) -> None:
        """Wait for a server whose prompt is called, where it is starting. Raises CtxchatError where it failed."""
        if self._config.server_prompts:
            await self._config.server_prompts.await_server(name)

    async def get_prompt(self, called: FilledPrompt) -> ToolOutput:
        """The text of a server's prompt, filled in by the server. Raises CtxchatError where the server fails, or where an
        argument is missing."""
        assert self._config.server_prompts
        if called.file.kind == "skill":
            written = await self._config.server_prompts.get_prompt(called.file, {})
            skill = msgspec.structs.replace(called.file, body=written.text)
            return ToolOutput(skill_text(skill, called.arguments))
        arguments = named_arguments(called.file, called.arguments)
        return await self._config.server_prompts.get_prompt(called.file, arguments)

    @property
    def options(self) -> Options:
        """The options in force."""
        return self._conversation.options

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools on offer."""
        return self._tool_runner.names

    @property
    def rules(self) -> Sequence[Rule]:
        """The permission rules in force."""
        return self._tool_runner.approvals.rules

    def thoughts_lost_with(self, name: str) -> int:
        """The number of replies in view whose reasoning is sent back to the present model but would not be to model `name`.
        Raises UsageError for a model that cannot be opened."""
        now, then = self._conversation.model, self._config.open_model(name)
        thought = [item.message for item in self._conversation.view.items if item.message.reasoning]
        return sum(now.takes_back(reply) and not then.takes_back(reply) for reply in thought)

    async def switch_model(self, name: str) -> ContextUsage:
        """Switch to another model. What does not fit its window is compacted before the next request, or by `make_room`. Raises
        UsageError for a model that cannot be opened."""
        model = self._config.open_model(name)
        async with self._lock.alone():
            await self._conversation.write(*self._put_off_no_more("model"))
            await self._answer_with(model)
            return await self._conversation.refresh()

    async def _answer_with(self, model: ModelPort) -> None:
        self.doubted.discard(model.name)
        after = await self._config_of(self.agent, model.name)
        await self._conversation.write(ModelChosen(model.name, model.address))
        await self._conversation.knowledge.remember()
        self.use(await self._conversation.learned_of(model))
        self._compactor.policy.start_over()
        await self._exchange(after)

    async def price_with(self, name: str) -> NextCall:
        """What the next request takes with model `name`, which has read nothing of the conversation; nothing where its server
        still holds some of it. Raises UsageError for a model that cannot be opened."""
        model, conversation = self._config.open_model(name), self._conversation
        if any(epoch(conversation.clock.now()) < each.until for each in conversation.state.held.get(model.name, ())):
            return NextCall()
        prices = await asyncio.to_thread(model.prices)
        long_life = model.cache_rules(lasting=self._config.lasting).long
        used = conversation.context_usage.used
        return NextCall(next_cost(prices, 0, used, long_life=long_life) if prices else None)

    async def switch_agent(self, name: str) -> ContextUsage:
        """Switch to another agent; empty for the usual one. Raises UsageError for an unknown one, or if its model cannot be
        opened."""
        after, model = await self._agent_config(name)
        async with self._lock.alone():
            await self._become(name, after, model)
            return await self._conversation.refresh()

    async def _agent_config(self, name: str) -> tuple[SessionConfig, ModelPort | None]:
        """The configuration of the session with that agent, and the agent's model where it differs from the present. Raises
        UsageError."""
        before, current = self._config, self._conversation.model.name
        after = await self._config_of(name, current)
        if after is None:
            raise UsageError(f"There is no agent {name} here.", "[agents.NAME] in config.toml makes one.")
        if (wanted := next_model(before, after, current)) == current:
            return after, None
        model = after.open_model(wanted)
        return await self._config_of(name, model.name) or after, model

    async def _become(self, name: str, after: SessionConfig, model: ModelPort | None) -> None:
        """Put an agent in force: its configuration, and its model where it has one of its own."""
        conversation = self._conversation
        chosen = [ModelChosen(model.name, model.address)] if model else []
        await conversation.write(AgentChosen(name), *chosen, *self._put_off_no_more("agent"))
        await self._exchange(after)
        if model:
            await conversation.knowledge.remember()
            self.use(await conversation.learned_of(model))

    # ── put off until the next compaction ──

    @property
    def deferred(self) -> SetupDeferred:
        """The changes of model setup that wait for the next compaction."""
        return self._conversation.state.setup_deferred

    async def defer_setup(self, **changed: Any) -> SetupDeferred:
        """Set or clear what waits for the next compaction. `changed` holds fields of `SetupDeferred`, None to clear one; returns
        all that waits now. Raises UsageError for an unknown agent or level of effort or a model that cannot be opened, and like
        `SessionLock.alone` where nothing may be written."""
        record = msgspec.structs.replace(self.deferred, **changed)
        if record.agent is not None:
            await self._config_of(record.agent, self._conversation.model.name)
        if record.effort and record.model is None:
            self.check_level(record.effort)
        if record.model is not None:
            self._config.open_model(record.model)
        if self._lock.under_way:
            self._conversation.apply_now_write_later(record)
            return record
        async with self._lock.alone():
            await self._conversation.write(record)
        return record

    def _put_off_no_more(self, field: Literal["agent", "effort", "model"]) -> tuple[SetupDeferred, ...]:
        waits = getattr(self.deferred, field) is not None
        return (msgspec.structs.replace(self.deferred, **{field: None}),) if waits else ()

    async def _follow_deferred(self) -> str:
        """After a compaction: apply what waited for it, since the beginning of the request has changed anyway. Returns a sentence
        on what that was, empty for nothing."""
        if not self.deferred or self.fallback_answers:
            return ""
        return await to_the_end(self._followed(self.deferred))

    async def _followed(self, waiting: SetupDeferred) -> str:
        """Put deferred settings in force. Returns a sentence for the person; an agent that is gone meanwhile is left out, and
        named."""
        conversation, gone = self._conversation, ""
        effort = [EffortChosen(waiting.effort)] if waiting.effort is not None else []
        await conversation.write(SetupDeferred(), *effort)
        try:
            if waiting.agent is None:
                await self._exchange(await self._config_now())
            else:
                await self._become(waiting.agent, *await self._agent_config(waiting.agent))
        except UsageError as problem:
            waiting, gone = msgspec.structs.replace(waiting, agent=None), f" {problem}"
            await self._exchange(await self._config_now())
        if waiting.model is not None:
            try:
                await self._answer_with(self._config.open_model(waiting.model))
            except UsageError as problem:
                waiting, gone = msgspec.structs.replace(waiting, model=None), f"{gone} {problem}"
        await conversation.renew_head()
        await conversation.refresh()
        return f"In force with this compaction: {waiting.words}.{gone}" if waiting else gone.strip()

    def use(self, knowledge: ModelKnowledge) -> None:
        """Switch to the model of `knowledge`, and to the summariser that belongs to it. What does not fit is compacted before the
        next request."""
        self._compactor.scheduler.switched()
        self._conversation.use(knowledge)
        self._write_for(knowledge.model)

    def fallback(self) -> ModelPort | None:
        """The model that answers when the present one fails, None for none. Raises CtxchatError if it cannot be opened."""
        return self._config.fallback_of(self._conversation.model.name)

    @property
    def address(self) -> str:
        """The address of the present model's server, empty for its provider's usual one."""
        return self._conversation.model.address or ""

    async def unreached(self) -> bool:
        """Whether the present model's server takes no connections, and there is no fallback."""
        try:
            if self.fallback() is not None:
                return False
        except CtxchatError:
            pass  # a fallback that cannot be opened does not help
        return not await self._conversation.model.reached()

    async def adapt(self) -> ContextUsage:
        """Apply the settings as they are now; during a turn only options and spending limits."""
        after = await self._config_now()
        if self._lock.under_way:
            self._late = True
            if after:  # a person may be lowering a limit because of this very turn
                self._conversation.options = after.options
                self._limit(after)
            return self._conversation.remeasured()
        if self._lock.read_only:
            return await self._exchanged(after)
        async with self._lock.alone():
            return await self._exchanged(after)

    async def catch_up(self) -> None:
        """At the beginning of a turn: apply settings that were edited during the previous one."""
        if self._late:
            await self._exchange(await self._config_now())

    async def _config_of(self, agent: str, model: str) -> SessionConfig | None:
        return await asyncio.to_thread(self._configure, agent, model) if self._configure else None

    async def _config_now(self) -> SessionConfig | None:
        """The configuration by the present settings: with the present agent, or the usual one where that no longer exists."""
        model = self._conversation.model.name
        try:
            return await self._config_of(self.agent, model)
        except UsageError:
            return await self._config_of("", model)

    def _write_for(self, model: ModelPort) -> None:
        if self._config.summariser_of is not None:
            self._compactor.planner.summariser = self._config.summariser_of(model)

    async def _exchanged(self, after: SessionConfig | None) -> ContextUsage:
        await self._exchange(after)
        return await self._conversation.refresh()

    def _limit(self, after: SessionConfig) -> None:
        """Apply the spending limits of the settings if these changed: a limit raised in this session otherwise stays."""
        if after.spending != self._limits:
            self._conversation.spending.limits = self._limits = after.spending

    async def _exchange(self, after: SessionConfig | None) -> None:
        """Apply what differs in `after`. A mode set in this session stays unless the mode of the settings changed."""
        conversation, before, approvals = self._conversation, self._config, self._tool_runner.approvals
        if after is None:
            return
        self._late, self._config = False, after
        if after.mode != before.mode:
            approvals.mode = after.mode
            self._conversation.write_later(ModeChosen(""))
        approvals.rules = after.rules
        self._hooks.use(after.hooks)
        if after.serving != before.serving:
            was = conversation.model.address
            model = after.open_model(conversation.model.name, was if after.address == before.address else None)
            conversation.use(await conversation.learned_of(model))
            self._write_for(conversation.model)
            if conversation.model.address != was:
                conversation.write_later(ModelChosen(conversation.model.name, conversation.model.address))
        if after.options != before.options or after.serving != before.serving:
            self._compactor.policy.start_over()
        self._tool_runner.offer(after.tools, after.disallowed_tools)
        self._tool_runner.limits = after.limits
        self._limit(after)
        await conversation.configure(after, self._tool_runner.specs)
