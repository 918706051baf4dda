"""Builds the `SessionConfig` of one session from the current settings; expensive parts are reused until their settings change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from ctxchat.agent.compaction.summariser import ModelSummariser
from ctxchat.agent.prompts import prompt
from ctxchat.agent.session_config import SessionConfig
from ctxchat.agent.spending_budget import UNLIMITED
from ctxchat.agent.turn.permissions import stricter
from ctxchat.bootstrap.extensions import Extensions
from ctxchat.bootstrap.flags import in_force, unknown_tools
from ctxchat.bootstrap.hooks import hooks_of
from ctxchat.bootstrap.model_choice import Overrides
from ctxchat.bootstrap.shared import Shared, SystemClock
from ctxchat.config import paths
from ctxchat.config.consistency import with_values
from ctxchat.config.customizations.builtin import BUILTIN_PROMPTS
from ctxchat.config.rules import read_rules
from ctxchat.config.schema import AgentSettings, Settings
from ctxchat.context.gather import WorkspaceSources
from ctxchat.context.standard import SettingsNotes, standard_providers
from ctxchat.core.compilers import (
    Compiler,
    all_sections,
    current_tool_trace,
    limited,
    redacted,
    selected_sections,
)
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.limits import SpendingLimits
from ctxchat.core.options import Options
from ctxchat.core.permissions import Mode, Rule, parse_rule
from ctxchat.core.ports import ContextProvider, ModelPort, Summariser, ToolLimits
from ctxchat.core.prompt_files import PromptFile, skill_text
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import Transform
from ctxchat.models.offline import OFFLINE_NAME


def agent_options(settings: Settings, model: str, max_rounds: int = 0) -> Options:
    """The agent's options for a model. `max_rounds` is the command line's or the agent's own, which overrides the settings; 0 for
    none."""
    context, reactive = settings.context, settings.context.reactive
    return Options(
        output_reserved=context.output_reserved,
        working_limit=context.working_limit,
        compression_trigger=context.compression_trigger,
        target=context.target,
        keep_recent=context.keep_recent,
        keep_turns=context.keep_turns,
        strategy=context.strategy,
        auto_compact=context.auto_compact,
        auto_cold=context.auto_cold,
        min_messages=context.min_messages,
        summary_max_tokens=context.summary_max_tokens,
        facts_max_tokens=context.facts_max_tokens,
        working_set=context.working_set,
        tool_result_tokens=context.tool_results.max_tokens,
        recent_results=context.tool_results.keep_recent,
        recent_result_tokens=context.tool_results.max_recent_tokens,
        soft_mark=context.prepare.soft_mark,
        prepare=context.prepare.enabled,
        prepare_cost=context.prepare.max_cost,
        micro_trigger=reactive.micro_trigger,
        full_trigger=reactive.full_trigger,
        preserve_recent_rounds=reactive.preserve_recent_rounds,
        micro_batch_groups=reactive.micro_batch_groups,
        reactive_per_turn=reactive.max_per_turn if reactive.enabled else 0,
        emergency_floor=context.emergency.keep_floor,
        emergency_calls=context.emergency.max_calls,
        max_rounds=max_rounds or settings.tools.max_rounds,
        retries=settings.of_model(model).retries,
        section_budgets={name: section.budget for name, section in context.sections.items() if section.budget},
    )


def compiler_of(settings: Settings) -> Compiler:
    """The compiler set in the settings: it selects what of the conversation the model is sent."""
    context = settings.context
    match context.compiler:
        case "all_sections":
            compiler = all_sections
        case "current_tool_trace":
            compiler = current_tool_trace
        case sections:
            compiler = selected_sections(*sections)
    for pattern in context.redact:
        compiler = redacted(compiler, re.compile(pattern))
    return limited(compiler, context.shown_tokens, TokenCounter()) if context.shown_tokens else compiler


def rewriting(settings: Settings) -> tuple[str, ...]:
    """Names of the settings in use that make later requests send earlier messages in another form, which loses cache hits."""
    context = settings.context
    in_use = {
        "context.compiler": context.compiler != "all_sections",
        "context.shown_tokens": context.shown_tokens > 0,
        "context.transforms": bool(context.transforms),
    }
    return tuple(name for name, used in in_use.items() if used)


WEB = ("web_fetch",)
"""The tools that the setting `tools.web` switches on and off."""


class Configuring:
    """Builds the configuration of one session, again whenever settings, agent or model change.

    `lasting`: a person reads and thinks between its messages; `delegated`: it is a sub-agent's (see `SessionConfig`).
    """

    def __init__(self, shared: Shared, extensions: Extensions, *, lasting: bool, delegated: bool = False) -> None:
        self._shared = shared
        self._extensions = extensions
        self.lasting, self._delegated = lasting, delegated
        self._sources: tuple[object, WorkspaceSources] | None = None
        self._edits: tuple[tuple[str, ...], tuple[Transform, ...]] = ((), ())
        self.first = ""
        """Name of the model the session was opened with, to which the command line's flags apply."""
        self.tools: Callable[[], Sequence[str]] = tuple
        """Returns the names of all current tools, to check those that an agent lists."""
        self.spending = UNLIMITED
        """The budget that summaries are paid from."""
        self.kept: Callable[[], Mapping[str, Any]] = dict
        """Returns the settings, by key, whose values stay in force in this session until its next compaction."""
        self.own: Sequence[ContextProvider] = ()
        """Context providers of the session's tools; they come before those of the settings."""

    def settings(self, agent: str | None) -> tuple[Settings, AgentSettings]:
        """The settings for an agent, and the agent's own. Raises UsageError for an unknown agent."""
        return in_force(with_values(self._shared.loaded.settings, self.kept()), self._shared.flags, agent)

    def __call__(self, agent: str | None, model: str) -> SessionConfig:
        """The session's configuration for this agent and model; implements `agent.session_config.Configure`."""
        shared = self._shared
        settings, own = self.settings(agent)
        rules, problems = rules_in_force(settings)
        return SessionConfig(
            agent=settings.agent,
            options=agent_options(settings, model, shared.flags.max_rounds or own.max_rounds or 0),
            system=f"{_instructions(own, shared.loaded.prompts)}\n\nThe folder: {shared.workspace}",
            context_sources=self._context_sources(settings),
            compiler=compiler_of(settings),
            open_model=partial(self._open, settings),
            summariser_of=partial(self._summariser, settings),
            fallback_of=partial(self._fallback, settings),
            transforms=self._transforms(settings),
            tools=own.tools,
            disallowed_tools=own.disallowed_tools if settings.tools.web else (*own.disallowed_tools, *WEB),
            limits=ToolLimits(settings.tools.max_output_chars, settings.tools.shell_timeout),
            spending=msgspec.convert(msgspec.to_builtins(settings.limits), SpendingLimits),
            hooks=hooks_of(settings.hooks),
            mode=settings.permissions.mode,
            rules=rules,
            model=settings.model,
            own_model=own.model is not None,
            serving=(
                settings.of_model(model),
                settings.context.max_tokens,
                settings.context.max_output,
                settings.context.summary_model,
                settings.context.provider_compaction,
            ),
            address=settings.of_model(model).api_base,
            effort=settings.of_model(model).effort if own.effort is None else own.effort,
            lasting=self.lasting,
            delegated=self._delegated,
            rewriting=rewriting(settings),
            prompts=(*shared.loaded.prompts, *BUILTIN_PROMPTS),
            server_prompts=shared.servers,
            notices=(*self._notices(settings, own), *problems),
        )

    def _notices(self, settings: Settings, own: AgentSettings) -> tuple[str, ...]:
        from_server = self._shared.servers.theirs
        missing = unknown_tools(own, [*self.tools(), *(name for name in own.tools or () if from_server(name))])
        skills = _skills(self._shared.loaded.prompts)
        missing += [
            f"The agent's skill {name} is left out: there is no skill of that name."
            for name in own.skills
            if name not in skills
        ]
        return tuple(dict.fromkeys((*self._extensions.problems, *missing, *self._writer(settings)[1])))

    def _open(self, settings: Settings, name: str, at: str | None = None) -> ModelPort:
        overrides = self._shared.overrides(name, self.first)
        if at is not None:
            overrides = msgspec.structs.replace(overrides, api_base="", kept=at)
        return self._shared.model(name, overrides, settings)

    def _fallback(self, settings: Settings, name: str) -> ModelPort | None:
        """The model set to answer when the named one fails; None where none is set."""
        fallback = settings.of_model(name).fallback
        return self._shared.model(fallback, settings=settings) if fallback else None

    def _context_sources(self, settings: Settings) -> WorkspaceSources:
        """The context sources with the providers of the settings, in their order; reused where their settings are unchanged."""
        key = (settings.context.providers, settings.context.inject, settings.customizations)
        if self._sources is None or self._sources[0] != key:
            memory = paths.config_dir() / "AGENTS.md"
            notes = [SettingsNotes(settings.context.inject)] if settings.context.inject else []
            providers = [*self.own, *notes, *self._providers(settings.context.providers)]
            self._sources = (
                key,
                WorkspaceSources(
                    self._shared.workspace, memory, providers, self._shared.masking, also=_others_memory(settings)
                ),
            )
        return self._sources[1]

    def _providers(self, names: Sequence[str]) -> list[ContextProvider]:
        workspace: Path = self._shared.workspace
        built_in = {
            p.source_id: p for p in standard_providers(workspace, git=self._shared.git, prompts=self._shared.prompts)
        }
        providers = built_in | self._extensions.providers([n for n in names if n not in built_in], workspace)
        return [providers[name] for name in names if name in providers]

    def _transforms(self, settings: Settings) -> tuple[Transform, ...]:
        if self._edits[0] != settings.context.transforms:
            names = settings.context.transforms
            self._edits = (names, tuple(self._extensions.transforms(names)))
        return self._edits[1]

    def _summariser(self, settings: Settings, model: ModelPort) -> Summariser:
        """The summariser: with the model set for summaries, else the session's. For the offline assistant, code selects
        sentences."""
        writer = self._writer(settings)[0] or model
        if writer.name == OFFLINE_NAME:
            from ctxchat.models.offline.summary import OfflineSummariser

            return OfflineSummariser(writer.count)
        by_provider = settings.context.provider_compaction
        return ModelSummariser(writer, SystemClock(), self.spending, own=writer is model, by_provider=by_provider)

    def _writer(self, settings: Settings) -> tuple[ModelPort | None, tuple[str, ...]]:
        """The model set for summaries, or None, and a notice where it cannot be used; the session opens all the same."""
        chosen = settings.context.summary_model
        if not chosen.name:
            return None, ()
        try:
            return self._shared.model(
                chosen.name, Overrides(chosen.api_base, chosen.api_key_env, chosen.window), settings
            ), ()
        except CtxchatError as problem:
            return None, (
                f"context.summary_model.name: {problem} Until then the model you chat with writes summaries.",
            )


def _others_memory(settings: Settings) -> tuple[Path, ...]:
    """The person's own memory files for other agents, where the settings include those."""
    files = (".claude/CLAUDE.md", ".codex/AGENTS.md", ".gemini/GEMINI.md")
    return tuple(paths.expanded(f"~/{file}") for file in files) if settings.customizations == "all" else ()


def remembered(configuring: Configuring, agent: str | None) -> tuple[str | None, tuple[str, ...]]:
    """The agent a stored session last used, or None (the settings' own) where it no longer exists, with a notice about that."""
    try:
        configuring.settings(agent)
    except UsageError as gone:
        return None, (f"{gone.text} This session goes on as the usual one. /agent shows those there are.",)
    return agent, ()


def remembered_mode(usual: Mode, chosen: Mode | Literal[""], *, interactive: bool) -> tuple[Mode, tuple[str, ...]]:
    """The permission mode in which a stored session is opened, and what to say of it: the one `chosen` in it, in place of the
    `usual` one of the settings. `all` never comes back, and where nobody can be asked nothing that allows more."""
    if not chosen or chosen == usual:
        return usual, ()
    if chosen == "all":
        return usual, (f"Mode all does not come back by itself: the session goes on in mode {usual}. Choose it again.",)
    if not interactive and stricter(usual, chosen) == usual:
        more = f"Mode {chosen}, chosen in this session, allows more than {usual} and nobody can be asked here: not in force."
        return usual, (more,)
    return chosen, (f"Mode {chosen}, as it was chosen in this session.",)


def _instructions(own: AgentSettings, prompts: Sequence[PromptFile]) -> str:
    """The system prompt: the agent's own with the rules, else the default one; and its skills."""
    rules = prompt("rules")
    text = f"{prompt('system')}\n{rules}" if own.prompt is None else f"{own.prompt.strip()}\n\n{rules}".lstrip()
    skills = _skills(prompts)
    known = [f"Skill {name}:\n\n{skill_text(skills[name], '')}" for name in own.skills if name in skills]
    return "\n\n".join([text, *known])


def _skills(prompts: Sequence[PromptFile]) -> dict[str, PromptFile]:
    """The skills by name; of two with one name the first."""
    return {file.name: file for file in reversed(prompts) if file.kind == "skill"}


def rules_in_force(settings: Settings) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """The stored permission rules with those of the settings, and the errors in the stored ones."""
    stored, problems = read_rules(paths.config_dir())
    configured = [parse_rule(text) for text in settings.permissions.rules]
    return (*stored, *(rule for rule in configured if rule)), tuple(problem.text for problem in problems)
