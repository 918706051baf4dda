"""Tells what the value of an option means for the present session, in tokens of its window. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ctxchat.config.option_table import Option
from ctxchat.core.budget import Window, WorkingLimit, make_budget, working_limit
from ctxchat.core.context_usage import ContextUsage, inside_tokens, soft_tokens
from ctxchat.core.sections import OUTSIDE, Section
from ctxchat.core.view import Item, View
from ctxchat.presentation.text import short
from ctxchat.presentation.usage_text import PARTS, WORKING_LIMITS, percent

SHARE = "share of the limit"


def effect(option: Option, key: str, value: Any, context_usage: ContextUsage, view: View) -> str:
    """The effect of a value as a sentence without its full stop; empty if it has no effect in tokens, is of a wrong type, or is
    no share where one is due. `key` is the key that is set, where the option's own holds a placeholder."""
    if isinstance(value, bool) or not isinstance(value, int | float | list | str):
        return ""
    if isinstance(value, int | float) and value < 0:
        return ""
    if option.facts.unit == SHARE:
        return _share(key, float(value), context_usage) if not isinstance(value, str | list) else ""
    if key.startswith("context.sections.") and isinstance(value, int):
        return _section(key.split(".")[2], value, context_usage)
    words = WORDS.get(key)
    return words(value, context_usage, view) if words and (isinstance(value, int) or option.key in _LISTS) else ""


def with_marks(context_usage: ContextUsage, **given: float) -> ContextUsage:
    """The gauge as it would be with other marks: `compression_trigger`, `target` (shares of the limit; the target of the
    working limit, where there is one), `output_reserved`, `max_tokens` (tokens; 0: the window stays as it is). The trigger
    stays too, unless something given moves it."""
    window = int(given.get("max_tokens", 0)) or context_usage.window
    budget = make_budget(
        Window(window, context_usage.window_source),
        int(given.get("output_reserved", context_usage.reserved_output)),
        float(given.get("compression_trigger", context_usage.trigger_tokens / context_usage.limit)),
        float(given.get("target", context_usage.target_tokens / (context_usage.working_limit or context_usage.limit))),
        working=_working_limit(context_usage, window),
    )
    trigger = budget.trigger if {"compression_trigger", "max_tokens", "output_reserved"} & set(given) else None
    free = max(0, budget.window.tokens - budget.reserved - context_usage.used)
    outside = {"reserved": budget.reserved, "free": free}
    sections: tuple[Section, ...] = tuple(
        msgspec.structs.replace(s, tokens=outside[s.name]) if s.name in OUTSIDE else s for s in context_usage.sections
    )
    return msgspec.structs.replace(
        context_usage,
        window=budget.window.tokens,
        reserved_output=budget.reserved,
        limit=budget.limit,
        pressure=context_usage.used / budget.limit,
        trigger_tokens=context_usage.trigger_tokens if trigger is None else trigger,
        target_tokens=budget.target,
        working_limit=budget.working.tokens,
        working_limit_source=budget.working.source,
        sections=sections,
    )


def _working_limit(context_usage: ContextUsage, window: int) -> WorkingLimit:
    """The working limit in a window of another size."""
    if context_usage.working_limit_source == "configured":
        return WorkingLimit(context_usage.working_limit, "configured")
    step = context_usage.price_step
    return working_limit(window, price_step=step.above if step else 0)


def _share(key: str, value: float, context_usage: ContextUsage) -> str:
    if not 0 < value <= 1:
        return ""
    of = (context_usage.working_limit if key == "context.target" else 0) or context_usage.limit
    tokens = at = int(of * value)
    held = "the working limit lowers it"
    if key == "context.compression_trigger":
        after = with_marks(context_usage, compression_trigger=value)
        at = after.trigger_tokens
        held = held if at == after.working_limit else "held back so that one more round fits"
    elif key == "context.prepare.soft_mark":
        at = int(soft_tokens(context_usage, value))
    elif key == "context.reactive.micro_trigger":
        at = int(inside_tokens(context_usage, value))
    return f"{value:g} = at {short(at)} of {short(of)}{f', {held}' if at < tokens else ''}"


def _section(name: str, value: int, context_usage: ContextUsage) -> str:
    part = next((p.label for n, p in PARTS.items() if n == name), name)
    held = context_usage.tokens(name)
    over = f", {short(held - value)} over it" if 0 < value < held else ""
    return f"{part}: {short(held)} now{over}"


def _window(value: Any, context_usage: ContextUsage, view: View) -> str:
    return (
        f"the window here is {short(context_usage.window)}"
        if not value
        else f"{percent(context_usage.used / value)} of it used"
    )


def _reserved(value: Any, context_usage: ContextUsage, view: View) -> str:
    after = with_marks(context_usage, output_reserved=value)
    clamped = ", the most that is kept free here" if after.reserved_output < value else ""
    kept = f"{short(after.reserved_output)}{clamped}; " if clamped else ""
    return f"{kept}{short(after.limit)} left for the prompt"


def _working(value: Any, context_usage: ContextUsage, view: View) -> str:
    if value:
        return _of_limit(value, context_usage, view)
    step = context_usage.price_step
    working = working_limit(context_usage.window, price_step=step.above if step else 0)
    return f"{short(working.tokens)}, {WORKING_LIMITS[working.source]}" if working.source else ""


def _messages(value: Any, context_usage: ContextUsage, view: View) -> str:
    items = [item for item in view.items if item.group]
    return _newest(value, items, context_usage, view)


def _results(value: Any, context_usage: ContextUsage, view: View) -> str:
    items = [item for item in view.items if item.section == "tool_results"]
    return _newest(value, items, context_usage, view)


def _newest(value: int, items: Sequence[Item], context_usage: ContextUsage, view: View) -> str:
    held = _held_text(items[-value:] if value else (), context_usage, view)
    return f"the newest {min(value, len(items))} hold {held} now" if items and value >= 0 else ""


def _longest(value: Any, context_usage: ContextUsage, view: View) -> str:
    results = [item.tokens for item in view.items if item.section == "tool_results"]
    over = sum(tokens > value for tokens in results)
    said = f"{over} of {len(results)} results are longer; " if results else ""
    return f"{said}{percent(value / context_usage.limit)} of the limit"


def _of_limit(value: Any, context_usage: ContextUsage, view: View) -> str:
    return f"{percent(value / context_usage.limit)} of the limit" if value else ""


def _count(value: Any, context_usage: ContextUsage, view: View) -> str:
    return f"{sum(bool(item.group) for item in view.items)} messages are in view"


def _injected(value: Any, context_usage: ContextUsage, view: View) -> str:
    return f"injected context holds {short(context_usage.tokens('injected'))} now"


def _held_text(items: Sequence[Item], context_usage: ContextUsage, view: View) -> str:
    """The tokens of these items, as the gauge counts them."""
    scale = context_usage.used / view.raw if view.raw else 1.0
    return short(round(sum(item.tokens for item in items) * scale))


WORDS: dict[str, Callable[[Any, ContextUsage, View], str]] = {
    "context.max_tokens": _window,
    "context.output_reserved": _reserved,
    "context.keep_recent": _messages,
    "context.working_limit": _working,
    "context.min_messages": _count,
    "context.summary_max_tokens": _of_limit,
    "context.facts_max_tokens": _of_limit,
    "context.tool_results.max_tokens": _longest,
    "context.tool_results.keep_recent": _results,
    "context.tool_results.max_recent_tokens": _of_limit,
    "context.emergency.keep_floor": _messages,
    "context.providers": _injected,
}
"""What tells the effect of a value, by the option's key. Each function gets the value, the gauge and the view."""
_LISTS = frozenset({"context.providers"})
MARKS = {
    "context.compression_trigger": "compression_trigger",
    "context.target": "target",
    "context.output_reserved": "output_reserved",
    "context.max_tokens": "max_tokens",
}
"""The options that move a mark on the gauge, each with its parameter of `with_marks`."""
