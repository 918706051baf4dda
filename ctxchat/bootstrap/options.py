"""From settings to how an agent behaves."""

from __future__ import annotations

import re

from ctxchat.config.schema import Settings
from ctxchat.core.compilers import (
    Compiler,
    all_sections,
    current_tool_trace,
    injecting,
    limited,
    redacted,
    selected_sections,
)
from ctxchat.core.grouping import single
from ctxchat.core.messages import Message
from ctxchat.core.options import Options
from ctxchat.core.tokens import Meter


def agent_options(settings: Settings, model: str, max_rounds: int = 0, *, ahead: bool = True) -> Options:
    """The agent's options for a model; `max_rounds` from the command line wins. `ahead`: there is time between turns in
    which a summary can be prepared."""
    context, reactive = settings.context, settings.context.reactive
    return Options(
        output_reserved=context.output_reserved,
        compression_trigger=context.compression_trigger,
        target=context.target,
        keep_recent=context.keep_recent,
        keep_turns=context.keep_turns,
        strategy=context.strategy,
        consent=context.auto_compact,
        min_messages=context.min_messages,
        summary_max_tokens=context.summary_max_tokens,
        facts_max_tokens=context.facts_max_tokens,
        tool_result_tokens=context.tool_results.max_tokens,
        recent_results=context.tool_results.keep_recent,
        recent_result_tokens=context.tool_results.max_recent_tokens,
        soft_mark=context.prepare.soft_mark,
        prepare=context.prepare.enabled and ahead,
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
    """What of the conversation the model is shown."""
    context = settings.context
    match context.compiler:
        case "all_sections":
            compiler = all_sections
        case "current_tool_trace":
            compiler = current_tool_trace
        case sections:
            compiler = selected_sections(*sections)
    if context.inject:
        notes = [Message(-n, "user", text) for n, text in enumerate(context.inject, 1)]
        compiler = injecting(compiler, [single("note", note, 0, source="buffer:settings") for note in notes])
    for pattern in context.redact:
        compiler = redacted(compiler, re.compile(pattern))
    return limited(compiler, context.shown_tokens, Meter()) if context.shown_tokens else compiler
